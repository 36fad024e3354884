"""Content is found in attributes, numbered attributes, span events and log records, and read once."""

from __future__ import annotations

from reach_otel.span import Answer, Call, Event, Text, normalise_log
from tests.unit.span.spans import record, step, text

ARGS = {"sku": "SKU-7"}
STOCK = {"sku": "SKU-7", "stock": 3}
TEXTS = (Text("system", "Be kind."), Text("user", "Check SKU-7."))
CALLS = (Call("check", "c2", ARGS),)
ANSWERS = (Answer("c1", "check", STOCK),)

NUMBERED = {
    "openinference.span.kind": "LLM",
    "llm.model_name": "m",
    "llm.input_messages.0.message.role": "system",
    "llm.input_messages.0.message.content": "Be kind.",
    "llm.input_messages.1.message.role": "user",
    "llm.input_messages.1.message.contents.0.message_content.type": "text",
    "llm.input_messages.1.message.contents.0.message_content.text": "Check SKU-7.",
    "llm.input_messages.2.message.role": "assistant",
    "llm.input_messages.2.message.tool_calls.0.tool_call.id": "c1",
    "llm.input_messages.2.message.tool_calls.0.tool_call.function.name": "check",
    "llm.input_messages.2.message.tool_calls.0.tool_call.function.arguments": text(ARGS),
    "llm.input_messages.3.message.role": "tool",
    "llm.input_messages.3.message.tool_call_id": "c1",
    "llm.input_messages.3.message.content": text(STOCK),
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c2",
    "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "check",
    "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": text(ARGS),
}
OLD_NUMBERED = {
    "llm.request.type": "chat",
    "gen_ai.prompt.0.role": "system",
    "gen_ai.prompt.0.content": "Be kind.",
    "gen_ai.prompt.1.role": "user",
    "gen_ai.prompt.1.content": "Check SKU-7.",
    "gen_ai.prompt.2.role": "assistant",
    "gen_ai.prompt.2.tool_calls.0.id": "c1",
    "gen_ai.prompt.2.tool_calls.0.name": "check",
    "gen_ai.prompt.2.tool_calls.0.arguments": text(ARGS),
    "gen_ai.prompt.3.role": "tool",
    "gen_ai.prompt.3.tool_call_id": "c1",
    "gen_ai.prompt.3.content": text(STOCK),
    "gen_ai.completion.0.content": '""',
    "gen_ai.completion.0.role": "assistant",
    "gen_ai.completion.0.tool_calls.0.id": "c2",
    "gen_ai.completion.0.tool_calls.0.name": "check",
    "gen_ai.completion.0.tool_calls.0.arguments": text(ARGS),
}
EVENTS = (
    Event("gen_ai.system.message", 1, {"content": text([{"text": "Be kind."}])}),
    Event("gen_ai.user.message", 1, {"content": text([{"text": "Check SKU-7."}])}),
    Event(
        "gen_ai.assistant.message",
        1,
        {"content": text([{"toolUse": {"toolUseId": "c1", "name": "check", "input": ARGS}}])},
    ),
    Event(
        "gen_ai.tool.message",
        1,
        {"content": text([{"toolResult": {"toolUseId": "c1", "status": "success", "content": [{"json": STOCK}]}}])},
    ),
    Event(
        "gen_ai.choice",
        2,
        {
            "message": text([{"toolUse": {"toolUseId": "c2", "name": "check", "input": ARGS}}]),
            "finish_reason": "tool_use",
        },
    ),
)
STANDARD = {
    "gen_ai.system_instructions": text([{"type": "text", "content": "Be kind."}]),
    "gen_ai.input.messages": text(
        [
            {"role": "user", "parts": [{"type": "text", "content": "Check SKU-7."}]},
            {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "check", "arguments": ARGS}]},
            {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": text(STOCK)}]},
        ]
    ),
    "gen_ai.output.messages": text(
        [{"role": "assistant", "parts": [{"type": "tool_call", "id": "c2", "name": "check", "arguments": ARGS}]}]
    ),
}
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}


def test_attributes() -> None:
    found = step(CHAT | STANDARD)
    assert (found.kind, found.texts, found.answers, found.calls) == ("model", TEXTS, ANSWERS, CALLS)


def test_numbered_attributes_of_openinference() -> None:
    found = step(NUMBERED)
    assert (found.kind, found.texts, found.answers, found.calls) == ("model", TEXTS, ANSWERS, CALLS)


def test_numbered_attributes_of_old_openllmetry() -> None:
    found = step(OLD_NUMBERED)
    assert (found.kind, found.texts, found.answers, found.calls) == ("model", TEXTS, ANSWERS, CALLS)
    assert found.output is None


def test_numbers_are_sorted_as_numbers() -> None:
    attributes = {"openinference.span.kind": "LLM"}
    for number in (10, 9, 0, 2):
        attributes[f"llm.input_messages.{number}.message.role"] = "user"
        attributes[f"llm.input_messages.{number}.message.content"] = str(number) + "!"
    assert [told.text for told in step(attributes).texts] == ["0!", "2!", "9!", "10!"]


def test_span_events() -> None:
    found = step(CHAT, events=EVENTS)
    assert (found.texts, found.calls) == (TEXTS, CALLS)
    assert found.answers == (Answer("c1", None, STOCK),)


def test_one_event_that_holds_all() -> None:
    found = step(CHAT, events=(Event("gen_ai.client.inference.operation.details", 1, STANDARD),))
    assert (found.texts, found.answers, found.calls) == (TEXTS, ANSWERS, CALLS)


def test_a_span_of_two_dialects_tells_nothing_twice() -> None:
    found = step(CHAT | STANDARD | NUMBERED, events=EVENTS)
    assert (found.texts, found.answers, found.calls) == (TEXTS, ANSWERS, CALLS)
    found = step(CHAT | NUMBERED, events=EVENTS)
    assert (found.texts, found.answers, found.calls) == (TEXTS, ANSWERS, CALLS)


def test_blotted_out_content_is_absent() -> None:
    found = step(
        {
            "openinference.span.kind": "LLM",
            "llm.model_name": "m",
            "llm.token_count.prompt": 1,
            "input.value": "__REDACTED__",
            "output.value": "__REDACTED__",
        }
    )
    assert (found.kind, found.texts, found.output) == ("model", (), None)
    tool = step(
        {
            "openinference.span.kind": "TOOL",
            "tool.name": "check",
            "input.value": "__REDACTED__",
            "output.value": "__REDACTED__",
        }
    )
    assert (tool.has_args, tool.has_result) == (False, False)


def test_log_records_of_the_old_convention() -> None:
    bodies = [
        record("gen_ai.system.message", {"content": "Be kind."}),
        record("gen_ai.user.message", {"content": "Check SKU-7."}),
        record("gen_ai.assistant.message", {"tool_calls": [{"id": "c1", "function": {"name": "check"}}]}),
        record("gen_ai.tool.message", {"id": "c1", "content": text(STOCK)}),
        record(
            "gen_ai.choice",
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {"tool_calls": [{"id": "c2", "function": {"name": "check", "arguments": text(ARGS)}}]},
            },
        ),
    ]
    system, user, tool, choice = (made for body in bodies for made in normalise_log(body))
    assert {made.kind for made in (system, user, tool, choice)} == {"content"}
    assert system.texts + user.texts == TEXTS
    assert tool.answers == (Answer("c1", None, STOCK),)
    assert choice.calls == CALLS
    assert choice.parent_id == "b" * 16
    assert choice.span_id.startswith("b" * 16 + "#")
    assert (choice.start_ns, choice.end_ns) == (1_002_000_000, 1_002_000_000)


def test_a_log_record_that_holds_all() -> None:
    held = {
        "gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": "Check SKU-7."}]}],
        "gen_ai.output.messages": [{"role": "assistant", "parts": [{"type": "text", "content": "3 left."}]}],
    }
    (made,) = normalise_log(record("gen_ai.client.inference.operation.details", None, held))
    assert (made.texts, made.output) == (TEXTS[1:], "3 left.")
    (in_body,) = normalise_log(record("gen_ai.client.inference.operation.details", held))
    assert (in_body.texts, in_body.output) == (TEXTS[1:], "3 left.")


def test_log_records_of_adk() -> None:
    (user,) = normalise_log(
        record("gen_ai.user.message", {"content": {"role": "user", "parts": [{"text": "Check SKU-7."}]}})
    )
    assert user.texts == TEXTS[1:]
    parts = [{"function_call": {"id": "c2", "name": "check", "args": ARGS}}]
    (choice,) = normalise_log(record("gen_ai.choice", {"index": 0, "content": {"role": "model", "parts": parts}}))
    assert choice.calls == CALLS
    parts = [{"function_response": {"id": "c1", "name": "check", "response": STOCK}}]
    (answer,) = normalise_log(record("gen_ai.user.message", {"content": {"role": "user", "parts": parts}}))
    assert answer.answers == ANSWERS


def test_other_log_records_are_no_content() -> None:
    assert normalise_log(record("app.log", "Check SKU-7.")) == ()
    assert normalise_log(record("gen_ai.user.message")) == ()
    assert normalise_log(record("gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": {}})) == ()


def test_the_same_record_twice_is_one_step() -> None:
    one, other = (normalise_log(record("gen_ai.user.message", {"content": "Hi there."}))[0] for _ in range(2))
    (third,) = normalise_log(record("gen_ai.user.message", {"content": "Hi there!"}))
    assert one == other
    assert one.span_id != third.span_id
