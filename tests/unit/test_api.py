"""Check what hand instrumentation puts on spans, for functions of every kind."""

from __future__ import annotations

import asyncio
import gc
import inspect
import json
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider

import reach_otel
from reach_otel.api.context import hand
from reach_otel.testing import Collected, collect


@pytest.fixture
def collected() -> Iterator[Collected]:
    with collect() as found:
        yield found


def names_of(collected: Collected) -> list[str]:
    return [span.name for span in collected.spans]


def only(collected: Collected) -> ReadableSpan:
    (span,) = collected.spans
    return span


def attributes_of(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def content_of(span: ReadableSpan, which: str) -> list[tuple[str, str]]:
    messages = json.loads(attributes_of(span)[f"gen_ai.{which}.messages"])
    return [(message["role"], message["parts"][0]["content"]) for message in messages]


def current_span_id() -> int:
    return trace.get_current_span().get_span_context().span_id


# Tools.


def test_a_tool_call_is_an_execute_tool_span(collected: Collected) -> None:
    """Name, arguments by their names, and the result are on the span, as the conventions have it."""

    @reach_otel.tool
    def lookup(customer_id: str, *notes: str, deep: bool = False, **more: int) -> dict[str, Any]:
        """Look a customer up."""
        return {"name": "Ada", "tags": ["a"]}

    assert lookup("C-1", "x", more=1) == {"name": "Ada", "tags": ["a"]}
    assert lookup.__doc__ == "Look a customer up."
    span = only(collected)
    assert span.name == "execute_tool lookup"
    assert attributes_of(span) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "lookup",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.arguments": '{"customer_id":"C-1","notes":["x"],"more":1}',
        "gen_ai.tool.call.result": '{"name":"Ada","tags":["a"]}',
    }
    assert span.status.is_unset


def test_a_tool_may_have_another_name(collected: Collected) -> None:
    """A given name wins over the function's."""
    reach_otel.tool("read_ticket")(lambda ticket_id: "text")("T-1")
    span = only(collected)
    assert span.name == "execute_tool read_ticket"
    assert attributes_of(span)["gen_ai.tool.call.result"] == "text"


def test_an_error_is_told_and_raised(collected: Collected) -> None:
    """The exception goes on to the caller; status, error.type and an exception event tell of it."""

    @reach_otel.tool
    def fail() -> None:
        raise LookupError("no such customer")

    with pytest.raises(LookupError, match="no such customer"):
        fail()
    span = only(collected)
    assert attributes_of(span)["error.type"] == "LookupError"
    assert span.status.description == "LookupError: no such customer"
    assert not span.status.is_ok
    assert [event.name for event in span.events] == ["exception"]
    assert "gen_ai.tool.call.result" not in attributes_of(span)


def test_a_wrong_call_raises_what_python_raises(collected: Collected) -> None:
    """A call that does not fit the signature fails as without the decorator, and is a failed call."""

    @reach_otel.tool
    def add(a: int, b: int) -> int:
        return a + b

    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        add(1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword"):
        add(1, 2, c=3)  # type: ignore[call-arg]
    first, second = collected.spans
    assert attributes_of(first)["gen_ai.tool.call.arguments"] == '{"a":1}'
    assert json.loads(attributes_of(second)["gen_ai.tool.call.arguments"]) == {"args": [1, 2], "c": 3}


class Desk:
    """Have tools of every kind of method."""

    def __init__(self) -> None:
        self.secret = "s"

    @reach_otel.tool
    def read(self, ticket_id: str) -> str:
        return self.secret + ticket_id

    @reach_otel.tool
    @classmethod
    def make(cls, size: int) -> str:
        return cls.__name__ * size

    @reach_otel.tool("twice")
    @staticmethod
    def double(value: int) -> int:
        return 2 * value

    @reach_otel.tool
    async def fetch(self, url: str) -> str:
        return url


def test_methods_are_tools_without_self(collected: Collected) -> None:
    """Methods, class methods and static methods work, and self is no argument."""
    desk = Desk()
    assert desk.read("T") == "sT"
    assert Desk.make(2) == "DeskDesk"
    assert desk.double(4) == 8
    assert asyncio.run(desk.fetch("u")) == "u"
    assert [attributes_of(span)["gen_ai.tool.call.arguments"] for span in collected.spans] == [
        '{"ticket_id":"T"}',
        '{"size":2}',
        '{"value":4}',
        '{"url":"u"}',
    ]
    assert names_of(collected)[2] == "execute_tool twice"


def test_only_functions_are_decorated() -> None:
    """Anything else is refused where it is written."""
    with pytest.raises(TypeError, match="@tool decorates functions, not int"):
        reach_otel.tool(3)  # type: ignore[call-overload]


# Agents.


def test_an_agent_call_has_input_and_output(collected: Collected) -> None:
    """The one argument is the user's message, the result the assistant's; tools inside are children."""

    @reach_otel.tool
    def look() -> str:
        return "ok"

    @reach_otel.agent("ticket-agent")
    def work(request: str) -> str:
        return look() + "!"

    assert work("please") == "ok!"
    tool, agent = collected.spans
    assert agent.name == "invoke_agent ticket-agent"
    assert attributes_of(agent)["gen_ai.agent.name"] == "ticket-agent"
    assert content_of(agent, "input") == [("user", "please")]
    assert content_of(agent, "output") == [("assistant", "ok!")]
    assert tool.parent is not None
    assert agent.context is not None
    assert tool.parent.span_id == agent.context.span_id


def test_an_agent_is_named_like_its_function(collected: Collected) -> None:
    """Without a name the function's is taken, with dashes."""

    @reach_otel.agent
    def stock_agent() -> None: ...

    stock_agent()
    assert attributes_of(only(collected)) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "stock-agent",
        "gen_ai.input.messages": '[{"role": "user", "parts": [{"type": "text", "content": "{}"}]}]',
    }


def test_chat_messages_keep_their_roles(collected: Collected) -> None:
    """A list of messages is put down as such; several arguments as JSON."""

    @reach_otel.agent
    def chat(messages: list[dict[str, Any]]) -> dict[str, int]:
        return {"n": 1}

    @reach_otel.agent
    def two(a: str, b: int) -> None: ...

    chat([{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}])
    two("x", 2)
    first, second = collected.spans
    assert content_of(first, "input") == [("system", "Be kind."), ("user", "Hi")]
    assert content_of(first, "output") == [("assistant", '{"n":1}')]
    assert content_of(second, "input") == [("user", '{"a":"x","b":2}')]


# Async.


def test_async_calls_at_the_same_time_keep_their_own_children(collected: Collected) -> None:
    """Two agents that run interleaved do not mix up their tools."""

    @reach_otel.tool
    async def look(what: str) -> str:
        await asyncio.sleep(0)
        return what

    @reach_otel.agent
    async def work(what: str) -> str:
        await asyncio.sleep(0)
        return await look(what)

    async def both() -> list[str]:
        return list(await asyncio.gather(work("a"), work("b")))

    assert inspect.iscoroutinefunction(work)
    assert asyncio.run(both()) == ["a", "b"]
    agents = {span.context.span_id: span for span in collected.spans if span.name.startswith("invoke") and span.context}
    for tool in (span for span in collected.spans if span.name.startswith("execute")):
        assert tool.parent is not None
        asked = content_of(agents[tool.parent.span_id], "input")[0][1]
        assert json.loads(attributes_of(tool)["gen_ai.tool.call.arguments"]) == {"what": asked}


def test_a_cancelled_call_is_a_failed_call(collected: Collected) -> None:
    """Cancellation ends the span as failed and goes on."""

    @reach_otel.tool
    async def wait() -> None:
        await asyncio.sleep(60)

    async def cancel() -> None:
        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert attributes_of(only(collected))["error.type"] == "asyncio.exceptions.CancelledError"


# Generators.


@reach_otel.agent
def stream(words: int) -> Generator[str, str | None, str | None]:
    """Yield words, and what it is sent."""
    try:
        for n in range(words):
            sent = yield f"w{n} "
            if sent:
                yield sent
    except KeyError:
        yield "caught"
    finally:
        with trace.get_tracer("t", tracer_provider=None).start_as_current_span("inner"):
            pass
    return None


def test_a_generator_is_one_span_over_its_items(collected: Collected) -> None:
    """The span starts with the first item, ends with the last, and its output is the whole text."""
    assert inspect.isgeneratorfunction(stream)
    items = stream(3)
    assert collected.spans == ()
    assert next(items) == "w0 "
    assert collected.spans == ()
    assert list(items) == ["w1 ", "w2 "]
    assert content_of(only(collected), "output") == [("assistant", "w0 w1 w2 ")]


def test_a_generator_leaks_no_context(collected: Collected) -> None:
    """Its span is current while its body runs, and not in the code that takes the items."""
    inside: list[int] = []

    @reach_otel.agent
    def spans() -> Iterator[int]:
        for n in range(3):
            inside.append(current_span_id())
            yield n

    outside = [current_span_id() for _ in spans()]
    span = only(collected)
    assert span.context is not None
    assert set(inside) == {span.context.span_id}
    assert set(outside) == {0}


def test_spans_that_a_body_keeps_open_over_a_yield_stay_its_own(collected: Collected) -> None:
    """A span that the body has made current before a yield is current again after it, and only there."""
    tracer = collected.tracer_provider.get_tracer("body")
    seen: list[bool] = []

    @reach_otel.agent
    def body() -> Iterator[int]:
        with tracer.start_as_current_span("held") as held:
            for n in range(2):
                yield n
                seen.append(current_span_id() == held.get_span_context().span_id)

    for _ in body():
        assert current_span_id() == 0
    assert seen == [True, True]
    held, agent = collected.spans
    assert held.parent is not None
    assert agent.context is not None
    assert held.parent.span_id == agent.context.span_id


def test_two_generators_taken_in_turn_do_not_mix(collected: Collected) -> None:
    """Children belong to the generator whose body made them."""

    @reach_otel.tool
    def look(n: int) -> int:
        return n

    @reach_otel.agent
    def work(start: int) -> Iterator[int]:
        for n in (start, start + 1):
            yield look(n)

    assert list(zip(work(0), work(10), strict=True)) == [(0, 10), (1, 11)]
    agents = {
        s.context.span_id: content_of(s, "input")[0][1] for s in collected.spans if "agent" in s.name and s.context
    }
    for span in (s for s in collected.spans if "tool" in s.name):
        number = json.loads(attributes_of(span)["gen_ai.tool.call.arguments"])["n"]
        assert span.parent is not None
        assert agents[span.parent.span_id] == str(number // 10 * 10)


def test_a_generator_takes_what_is_sent_and_thrown(collected: Collected) -> None:
    """send() and throw() reach the body; what it makes of them comes out."""
    items = stream(2)
    next(items)
    assert items.send("hello ") == "hello "
    assert items.throw(KeyError()) == "caught"
    assert list(items) == []
    assert content_of(only(collected), "output") == [("assistant", "w0 hello caught")]


def test_a_closed_generator_ends_its_span_well(collected: Collected) -> None:
    """Who stops taking items early has made no error; the output is what came so far."""
    items = stream(5)
    next(items)
    items.close()
    span = only(collected)
    assert span.status.is_unset
    assert content_of(span, "output") == [("assistant", "w0 ")]


def test_a_forgotten_generator_ends_its_span(collected: Collected) -> None:
    """Nobody needs to close it."""
    items = stream(5)
    next(items)
    del items
    gc.collect()
    assert names_of(collected) == ["invoke_agent stream"]


def test_a_generator_that_raises_is_a_failed_call(collected: Collected) -> None:
    """The exception goes to who takes the items."""

    @reach_otel.tool
    def rows() -> Iterator[dict[str, int]]:
        yield {"row": 1}
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        list(rows())
    assert attributes_of(only(collected))["error.type"] == "OSError"


def test_an_async_generator_is_one_span(collected: Collected) -> None:
    """Items, closing and context are as with a plain generator."""
    inside: list[int] = []

    @reach_otel.agent
    async def talk(words: int) -> AsyncIterator[str]:
        for n in range(words):
            inside.append(current_span_id())
            await asyncio.sleep(0)
            yield f"w{n} "

    async def take() -> list[int]:
        outside = [current_span_id() async for _ in talk(3)]
        early = talk(3)
        await anext(early)
        await early.aclose()  # type: ignore[attr-defined]
        return outside

    assert inspect.isasyncgenfunction(talk)
    assert asyncio.run(take()) == [0, 0, 0]
    whole, part = collected.spans
    assert content_of(whole, "output") == [("assistant", "w0 w1 w2 ")]
    assert content_of(part, "output") == [("assistant", "w0 ")]
    assert whole.context is not None
    assert inside[0] == whole.context.span_id


def test_an_async_generator_that_raises_is_a_failed_call(collected: Collected) -> None:
    """So is one into which an exception is thrown."""

    @reach_otel.tool
    async def rows() -> AsyncIterator[int]:
        yield 1
        raise OSError("gone")

    async def take() -> None:
        with pytest.raises(OSError, match="gone"):
            async for _ in rows():
                pass
        items = rows()
        await anext(items)
        with pytest.raises(KeyError):
            await items.athrow(KeyError("k"))  # type: ignore[attr-defined]

    asyncio.run(take())
    assert [attributes_of(span)["error.type"] for span in collected.spans] == ["OSError", "KeyError"]


# Threads.


def test_carry_takes_run_and_span_into_other_threads(collected: Collected) -> None:
    """A carried function runs as a part of the agent, in many threads at once."""

    @reach_otel.tool
    def look(n: int) -> int:
        return n

    @reach_otel.agent
    def work() -> list[int]:
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(reach_otel.carry(look), range(8)))

    with reach_otel.run(task="t") as run:
        assert sorted(work()) == list(range(8))
    agent = next(span for span in collected.spans if span.name == "invoke_agent work")
    tools = [span for span in collected.spans if span.name == "execute_tool look"]
    assert len(tools) == 8
    for span in tools:
        assert span.parent is not None
        assert agent.context is not None
        assert span.parent.span_id == agent.context.span_id
        assert attributes_of(span)["reach.run.id"] == run.id


# Runs, steps, plans, handoffs.


def test_everything_inside_an_explicit_run_is_marked(collected: Collected) -> None:
    """Hand-made and foreign spans bear run, task, variant and conversation; spans outside bear none."""
    tracer = collected.tracer_provider.get_tracer("foreign")
    with reach_otel.run(task="ticket", variant="v2", conversation_id="c1") as run, tracer.start_as_current_span("chat"):
        reach_otel.tool("inside")(lambda: None)()
    with tracer.start_as_current_span("after"):
        pass
    for span in collected.spans[:3]:
        told = attributes_of(span)
        assert (told["reach.run.id"], told["reach.task"], told["reach.variant"]) == (run.id, "ticket", "v2")
        assert told["gen_ai.conversation.id"] == "c1"
    assert names_of(collected) == ["execute_tool inside", "chat", "invoke_workflow ticket", "after"]
    assert attributes_of(collected.spans[3]) == {}


def test_a_run_inside_a_run_is_another_run(collected: Collected) -> None:
    """The inner run's spans are its own, and the outer one's go on afterwards."""
    with reach_otel.run(task="a") as outer:
        with reach_otel.run() as inner:
            reach_otel.tool("x")(lambda: None)()
        reach_otel.tool("y")(lambda: None)()
    marks = {span.name: attributes_of(span)["reach.run.id"] for span in collected.spans}
    assert marks["execute_tool x"] == inner.id
    assert marks["execute_tool y"] == outer.id
    assert "reach.task" not in attributes_of(collected.spans[0])


def test_a_run_that_raises_tells_so(collected: Collected) -> None:
    """The exception goes on, the run's span says it."""
    with pytest.raises(ValueError, match="x"), reach_otel.run():
        raise ValueError("x")
    assert attributes_of(only(collected))["error.type"] == "ValueError"


def test_a_model_step_tells_text_and_tokens(collected: Collected) -> None:
    """A model call that no library instruments is told by hand."""
    with reach_otel.step("gpt-4o", kind="model", given="Hi") as step:
        step.gave("Hello")
        step.used(input_tokens=10, output_tokens=3, reasoning_tokens=1)
    span = only(collected)
    assert span.name == "chat gpt-4o"
    told = attributes_of(span)
    assert told["gen_ai.request.model"] == "gpt-4o"
    assert told["gen_ai.usage.input_tokens"] == 10
    assert told["gen_ai.usage.output_tokens"] == 3
    assert told["gen_ai.usage.reasoning.output_tokens"] == 1
    assert "gen_ai.usage.cache_read.input_tokens" not in told
    assert content_of(span, "input") == [("user", "Hi")]
    assert content_of(span, "output") == [("assistant", "Hello")]


def test_a_step_is_a_plain_span_unless_told(collected: Collected) -> None:
    """A step of no kind is for people; a retrieval has its query."""
    with reach_otel.step("tidy up"):
        pass
    with reach_otel.step("handbook", kind="retrieval", given={"query": "refunds"}) as step:
        step.gave([{"id": 1}])
    plain, retrieval = collected.spans
    assert (plain.name, attributes_of(plain)) == ("tidy up", {})
    assert retrieval.name == "retrieval handbook"
    assert attributes_of(retrieval)["gen_ai.retrieval.query.text"] == "refunds"
    assert attributes_of(retrieval)["gen_ai.tool.call.result"] == '[{"id":1}]'


def test_a_plan_and_a_handoff_are_told(collected: Collected) -> None:
    """A plan lists its steps; a handoff is a transfer tool with what is given along."""
    reach_otel.plan(["read_ticket", {"tool": "update_ticket", "inputs": ["customer"], "depends_on": ["read_ticket"]}])
    reach_otel.handoff("billing", invoice="I-1")
    planned, handed = collected.spans
    assert attributes_of(planned)["gen_ai.operation.name"] == "plan"
    assert json.loads(attributes_of(planned)["reach.plan"])[0] == {"tool": "read_ticket"}
    assert handed.name == "execute_tool transfer_to_billing"
    assert attributes_of(handed)["gen_ai.tool.call.arguments"] == '{"invoice":"I-1"}'


# Content and odd values.


def test_content_can_be_left_out(collected: Collected) -> None:
    """A decorator's switch wins over the process's; names and errors stay."""

    @reach_otel.tool("quiet", capture_content=False)
    def quiet(secret: str) -> str:
        return secret

    quiet("s3cret")
    reach_otel.plan(["x"], capture_content=False)
    reach_otel.handoff("y", capture_content=False, secret="s3cret")
    with reach_otel.step("m", kind="model", given="s3cret", capture_content=False) as step:
        step.gave("s3cret")
    assert "s3cret" not in "".join(span.to_json() for span in collected.spans)


class Spiteful:
    """Raise at whatever one does."""

    def __repr__(self) -> str:
        raise RuntimeError("no")

    def __str__(self) -> str:
        raise RuntimeError("no")

    @property
    def model_dump(self) -> Any:
        raise RuntimeError("no")


class SpitefulError(Exception):
    """Be an exception that cannot be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no")


def test_no_value_can_break_a_call(collected: Collected) -> None:
    """Objects that raise, loops, iterators, surrogates and huge numbers are put down somehow, and left alone."""
    loop: list[Any] = []
    loop.append(loop)
    items = iter([1, 2])

    @reach_otel.tool
    def take(**values: Any) -> Any:
        return values

    given = {
        "spite": Spiteful(),
        "loop": loop,
        "items": items,
        "text": "half \ud800",
        "number": 10**5000,
        "nan": float("nan"),
        "keys": {Spiteful: 1, (1, 2): 2},
        "raw": b"\x00\xff",
        "mixed": {1, "a"},
    }
    assert take(**given) is not None
    assert list(items) == [1, 2]
    told = json.loads(attributes_of(only(collected))["gen_ai.tool.call.arguments"])
    assert told["spite"] == "<Spiteful>"
    assert told["text"] == "half ?"
    assert told["number"] == "<int>"
    assert told["nan"] == "nan"
    assert told["raw"] == "<2 bytes>"
    assert sorted(map(str, told["mixed"])) == ["1", "a"]


def test_no_error_can_break_the_telling(collected: Collected) -> None:
    """An exception that cannot be shown is raised on all the same."""

    @reach_otel.tool
    def fail() -> None:
        raise SpitefulError

    with pytest.raises(SpitefulError):
        fail()
    assert attributes_of(only(collected))["error.type"].endswith("SpitefulError")


def test_huge_values_are_cut(collected: Collected, monkeypatch: pytest.MonkeyPatch) -> None:
    """No text is much longer than the limit, and what is JSON stays whole."""
    monkeypatch.setattr(hand, "content_max", 1_000)

    @reach_otel.tool
    def take(text: str, rows: list[dict[str, str]]) -> str:
        return text

    take("x" * 10_000_000, [{"k": "y" * 100}] * 1_000)
    told = attributes_of(only(collected))
    assert len(told["gen_ai.tool.call.arguments"]) < 1_200
    assert json.loads(told["gen_ai.tool.call.arguments"])["text"].startswith("xxx")
    assert len(told["gen_ai.tool.call.result"]) == 1_001


# Without an SDK, and with a broken one.


def test_nothing_is_recorded_without_a_provider() -> None:
    """With no SDK set up the decorators run the function and nothing else; arguments are not even looked at."""
    assert reach_otel.tool("x")(lambda value: value)(Spiteful()) is not None


class BrokenProvider(TracerProvider):
    """Make tracers that raise."""

    def get_tracer(self, *args: Any, **kwargs: Any) -> Any:
        return self

    def start_span(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("broken")


def test_a_broken_provider_does_not_reach_the_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    """When no span can be started, the function runs without."""
    monkeypatch.setattr(hand, "tracer", BrokenProvider(shutdown_on_exit=False))
    monkeypatch.setattr(hand, "warned", False)
    with reach_otel.run():
        assert reach_otel.tool("x")(lambda: 3)() == 3
    assert hand.warned


def test_the_api_imports_no_sdk() -> None:
    """Decorating tools costs an application neither the SDK nor Prometheus nor Pydantic."""
    code = (
        "import sys, reach_otel; reach_otel.tool(len);"
        "heavy = ('opentelemetry.sdk', 'prometheus_client', 'pydantic', 'msgspec', 'cel', 'fastapi');"
        "sys.exit(', '.join(name for name in heavy if name in sys.modules) or None)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_threads_have_no_run_by_themselves(collected: Collected) -> None:
    """Without carry() a thread starts outside of the run."""
    with reach_otel.run():
        thread = threading.Thread(target=reach_otel.tool("alone")(lambda: None))
        thread.start()
        thread.join()
    assert "reach.run.id" not in attributes_of(collected.spans[0])
