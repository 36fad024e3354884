"""Check what tokens are said to be spent on."""

from __future__ import annotations

from typing import Any

from reach_otel.span.step import Tokens
from tests.support.engines import verdict
from tests.support.steps import Steps, call
from tests.support.tasks import goal, task


def tokens_of(steps: Steps, **more: Any) -> tuple[dict[str, int], float | None]:
    record = verdict(task(goal("find"), goal("send"), match={"agent": "bot"}, **more), steps.made)
    return record["tokens"], record["utilisation"]


def test_tokens_go_to_the_actions_that_a_model_asked_for() -> None:
    """Shared equally, the remainder to the first; a model that asked for nothing and led to nothing has answered."""
    steps = Steps()
    asks = (call("find", "c1"), call("other", "c2"), call("find", "c3"))
    steps.model(0, 1, parent="root", calls=asks, tokens=Tokens(input=90, output=12))
    for n, asked in enumerate(asks):
        error = "boom" if n == 0 else None
        steps.tool(asked.tool, 2 + n, 3 + n, parent="root", call_id=asked.id, args={"n": n}, error=error)
    steps.model(8, 9, parent="root", tokens=Tokens(input=50, output=10), output="done")
    steps.agent("bot", 0, 10, span_id="root", tokens=Tokens(input=999))
    tokens, utilisation = tokens_of(steps)
    assert tokens == {"effective": 34, "retry": 34, "ineffective": 34, "answer": 60, "total": 162}
    assert utilisation == 34 / 162


def test_without_messages_the_next_actions_count() -> None:
    """A model that shows no calls is taken to have asked for the actions that start before the next model step."""
    steps = Steps()
    steps.model(0, 1, parent="root", tokens=Tokens(input=10))
    steps.tool("find", 1, 2, parent="root")
    steps.tool("other", 2, 3, parent="root")
    steps.model(3, 4, parent="root", tokens=Tokens(input=7))
    steps.tool("send", 4, 5, parent="root")
    steps.agent("bot", 0, 6, span_id="root")
    assert tokens_of(steps)[0] == {"effective": 12, "retry": 0, "ineffective": 5, "answer": 0, "total": 17}


def test_one_model_call_in_two_spans_counts_once() -> None:
    """Of model spans in each other the inner one counts; what it asks for may stand on the outer."""
    steps = Steps()
    steps.model(0, 3, parent="root", span_id="outer", calls=(call("find", "c1"),), tokens=Tokens(input=10))
    steps.model(1, 2, parent="outer", tokens=Tokens(input=10))
    steps.tool("find", 3, 4, parent="root", call_id="c1")
    steps.agent("bot", 0, 6, span_id="root")
    assert tokens_of(steps)[0]["effective"] == tokens_of(steps)[0]["total"] == 10


def test_sums_on_agents_count_only_without_model_steps() -> None:
    """Tokens repeated on agent spans are not double; alone they are all there is, spent on nobody knows what."""
    steps = Steps()
    steps.agent("inner", 1, 2, parent="root", tokens=Tokens(input=5))
    steps.agent("bot", 0, 6, span_id="root", tokens=Tokens(input=5, output=2))
    assert tokens_of(steps)[0] == {"effective": 0, "retry": 0, "ineffective": 0, "answer": 0, "total": 7}


def test_no_tokens_have_no_utilisation() -> None:
    """There is nothing to use well or badly."""
    steps = Steps()
    steps.agent("bot", 0, 6, span_id="root")
    assert tokens_of(steps)[1] is None
