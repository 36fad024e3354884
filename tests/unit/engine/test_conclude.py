"""Check the record of a run: outcome, content, final output, steps."""

from __future__ import annotations

from typing import Any

import pytest

from reach_otel.span.step import Text
from tests.support.engines import Driver, verdict
from tests.support.steps import Steps, call
from tests.support.tasks import goal, task

GOALS = [goal("find"), goal("send")]


def story(*tools: str, output: str | None = "Done.", root: bool = True, ok: bool = True) -> Steps:
    steps = Steps()
    for n, tool in enumerate(tools):
        steps.tool(tool, 2 * n, 2 * n + 1, parent="root", args={"n": n}, result=n)
    if root:
        end = 2 * len(tools) + 1
        steps.agent("bot", 0, end, span_id="root", user="Go.", output=output, ok=ok, error=None if ok else "broke")
    return steps


@pytest.mark.parametrize(
    ("steps", "outcome"),
    [
        (story("find", "send"), "success"),
        (story("find", "send", ok=False), "partial"),
        (story("find", "send", output=None), "partial"),
        (story("find"), "partial"),
        (story("other"), "failed"),
        (story(), "failed"),
        (story("find", "send", "refund"), "failed"),
        (story("find", "send", root=False), "abandoned"),
        (story("refund", root=False), "abandoned"),
    ],
)
def test_outcome(steps: Steps, outcome: str) -> None:
    """All reached, ended well and delivered is success; some partial; none or a trap failed; no end abandoned."""
    of = task(*GOALS, match={"agent": "bot"}, traps=[{"id": "t", "verify": {"tool": "refund"}}])
    assert verdict(of, steps.made)["outcome"] == outcome


@pytest.mark.parametrize(("steps", "outcome"), [(story("x"), "success"), (story("x", ok=False), "failed")])
def test_outcome_without_a_task(steps: Steps, outcome: str) -> None:
    """A run of no task can only end well or badly."""
    record = verdict(None, steps.made)
    assert (record["task"], record["outcome"], record["high_risk"]) == ("unmatched", outcome, False)


@pytest.mark.parametrize(("output", "outcome"), [("No.", "success"), (None, "failed")])
def test_outcome_of_a_task_of_traps(output: str | None, outcome: str) -> None:
    """Where the right thing is to change nothing, an output is all that is asked."""
    of = task(traps=[{"id": "t", "verify": {"tool": "refund"}}], match={"agent": "bot"})
    assert verdict(of, story("find", output=output).made)["outcome"] == outcome


def test_high_risk_stands_beside_the_composite() -> None:
    """Less than half of the deepest layer reached is a risk, whatever else was."""
    assert verdict(task(*GOALS), story("find").made)["high_risk"] is False
    assert verdict(task(goal("find"), goal("send", after=["find"])), story("find").made)["high_risk"] is True


def bare(*, with_args: bool = False, told: bool = False, **call_fields: Any) -> str:
    steps = Steps()
    steps.tool("find", 0, 1, parent="root", **({"args": {}} if with_args else {}))
    steps.tool("send", 1, 2, parent="root", **call_fields)
    steps.agent("bot", 0, 3, span_id="root", output="hello" if told else None)
    content: str = verdict(task(*GOALS), steps.made)["content"]
    return content


def test_content_is_full_partial_or_missing() -> None:
    """Nothing captured, everything that counts, or some; what a handoff carries does not matter."""
    assert bare() == "missing"
    assert bare(told=True) == bare(with_args=True) == "partial"
    assert bare(with_args=True, result=1) == "full"
    assert bare(with_args=True, kind="handoff") == "full"


def outputs(*spoken: tuple[str, str, int, int, str | None, str | None]) -> str | None:
    """Tell steps of (kind, span id, start, end, parent, output), and give the reason for which L4 fails."""
    steps = Steps()
    for kind, span_id, start, end, parent, output in spoken:
        asks = {"calls": (call("find"),)} if output == "asks" else {}
        steps.add(kind, start, end, parent=parent, span_id=span_id, output=output, **asks)
    reason: str | None = verdict(task(goal("find"), goal("t")), steps.made)["levels"]["L4"]["reason"]
    return reason


def test_without_an_output_nothing_was_delivered() -> None:
    """An output within a tool, or beside a call that is asked for, is not the run's."""
    root = ("agent", "root", 0, 9, None, None)
    assert outputs(root, ("tool", "t", 1, 4, "root", None), ("agent", "in", 2, 3, "t", "hi")) == "no_output"
    assert outputs(root, ("model", "m", 1, 2, "root", "asks")) == "no_output"
    assert outputs(root, ("model", "m", 1, 2, "root", "hi")) is None


def test_the_outermost_agent_speaks_for_the_run() -> None:
    """Its output goes before that of an inner agent or of a model, whoever spoke last."""
    of = task(goal("find", used=True))

    def state(root: str | None, inner: str | None, model: str | None) -> str:
        steps = Steps()
        steps.tool("find", 1, 2, parent="root", args={}, result={"ref": "REF-1234"})
        steps.agent("inner", 3, 5, parent="root", output=inner)
        steps.model(6, 7, parent="root", output=model)
        steps.agent("bot", 0, 8, span_id="root", output=root)
        found: str = verdict(of, steps.made)["milestones"][0]["state"]
        return found

    assert state("REF-1234", "no", "no") == "reached"
    assert state("no", "REF-1234", "REF-1234") == "passed"
    assert state(None, "REF-1234", "no") == "reached"
    assert state(None, None, "REF-1234") == "reached"


@pytest.mark.parametrize(
    ("steps", "is_claimed"),
    [
        (story("find", output="Done: SECRET-77"), True),
        (story("find", output="I could not send it."), False),
        (story("find", "send", output="Done: SECRET-77"), False),
        (story("find", output=None), False),
        (story("find", output="Done.", root=False), False),  # nobody has said it yet
    ],
)
def test_a_claim_of_success_that_is_not_true_is_flagged(steps: Steps, is_claimed: bool) -> None:
    """It names the span of the final output, no action, and nothing of what was said; L4 fails for the same reason."""
    of = task(*GOALS, match={"agent": "bot"}, delivery={"claims_success": ["(?i)done"]})
    record = verdict(of, steps.made)
    found = {
        "finding": "hallucinated_success",
        "action": None,
        "detail": "success is claimed, 1 of 2 must-milestones are not reached",
        "span_id": "root",
    }
    assert list(record["findings"]) == ([found] if is_claimed else [])
    assert (record["levels"]["L4"]["reason"] == "hallucinated_success") is is_claimed


def test_a_claim_in_a_log_record_is_flagged_on_its_span() -> None:
    """Its step has an id of its own, which no trace store knows. While the run goes on, nobody has claimed anything."""
    steps = story("find", output=None)
    steps.model(1, 2, parent="root", span_id="m")
    steps.add("content", 2, 2, parent="m", span_id="m#0a1b", output="all done")
    of = task(*GOALS, match={"agent": "bot"}, delivery={"claims_success": ["done"]})
    driver = Driver((of,))
    driver.feed([s for s in steps.made if s.kind != "agent"])
    [record] = driver.open_records().values()
    assert not record["findings"]
    driver.feed([s for s in steps.made if s.kind == "agent"])
    for record in (*driver.open_records().values(), *driver.close().values()):
        assert [(f["finding"], f["span_id"]) for f in record["findings"]] == [("hallucinated_success", "m")]


def test_unused_results_are_flagged_at_the_end_only() -> None:
    """While a run is going its result may still be used."""
    driver = Driver((task(goal("find", used=True)),))
    driver.feed(story("find", root=False).made)
    [live] = driver.open_records().values()
    [final] = driver.close().values()
    assert (list(live["findings"]), [f["finding"] for f in final["findings"]]) == ([], ["unused"])
    assert (live["final"], live["outcome"], final["final"]) == (False, "running", True)


def test_steps_are_numbered_in_order() -> None:
    """Actions stand among the other steps by their end, once each, with class and agent; a call with no span too."""
    steps = Steps()
    steps.add("plan", 0, 1, parent="root", plan=["find"])
    steps.model(1, 2, parent="root", calls=(call("find", "c1", {"n": 1}), call("fly", "c2", {})))
    steps.tool("find", 3, 5, parent="root", span_id="outer", call_id="c1")
    steps.tool("find", 3, 4, parent="outer", result={"ok": 1})
    steps.add("other", 5, 6, parent="root")
    steps.agent("bot", 0, 9, span_id="root", output="done", texts=(Text("user", "hi"),))
    rows = verdict(task(*GOALS), steps.made)["steps"]
    assert [(r["n"], r["kind"], r["tool"], r["class"]) for r in rows] == [
        (1, "plan", None, None),
        (2, "model", None, None),
        (3, "tool", "fly", "off_task"),
        (4, "tool", "find", "effective"),
        (5, "agent", None, None),
    ]
    assert {r["agent"] for r in rows} == {"bot"}
    found = next(r for r in rows if r["tool"] == "find")
    assert (found["args"], found["result"], found["seconds"], found["span_id"]) == ({"n": 1}, {"ok": 1}, 0.02, "outer")


def test_times_are_spelled_in_utc() -> None:
    """Start is that of the earliest step; a clock far off is spelled too."""
    record = verdict(task(*GOALS), story("find").made)
    assert (record["start"], record["duration_seconds"]) == ("2026-11-30T08:00:00.000000Z", 0.03)
    odd = Steps().tool("find", 10**12, 10**12 + 1)
    assert verdict(task(*GOALS), [odd])["start"].endswith("Z")


def test_a_record_names_conversation_and_variant() -> None:
    """The variant is that of the task, else what the steps tell: ``reach.variant``, version, model."""
    steps = Steps()
    steps.model(0, 1, parent="root", conversation_id="talk")
    steps.agent("bot", 0, 2, span_id="root")
    plain_run = verdict(task(*GOALS), steps.made)
    assert (plain_run["conversation_id"], plain_run["variant"], plain_run["agent"]) == ("talk", "gpt-4o-mini", "bot")
    assert verdict(task(*GOALS, variant="b", match={"agent": "bot"}), steps.made)["variant"] == "b"
    steps.model(0, 1, parent="root", service_version="1.2")
    assert verdict(task(*GOALS), steps.made)["variant"] == "1.2"
    steps.model(1, 2, parent="root", variant="new")
    assert verdict(task(*GOALS), steps.made)["variant"] == "new"
