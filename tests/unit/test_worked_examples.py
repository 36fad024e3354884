"""Hold the numbers to worked examples, through what a person uses: spans in a file, ``reach-otel replay --json``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from reach_otel.cli.main import app
from tests.support.otlp import Trace, write_lines

if TYPE_CHECKING:
    from pathlib import Path


class Replay:
    """Score traces against one task as ``reach-otel replay FILE --task FILE --json --steps`` does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, task: dict[str, Any], *traces: Trace) -> list[dict[str, Any]]:
        spans = write_lines(self.folder / "spans.jsonl", traces)
        file = self.folder / "shop.task.yaml"
        file.write_text(json.dumps(task, indent=1), encoding="utf-8")
        result = CliRunner().invoke(app, ["replay", str(spans), "--task", str(file), "--json", "--steps"])
        assert result.exit_code == 0, result.output
        return [json.loads(line) for line in result.stdout.splitlines() if line.strip()]


@pytest.fixture
def replay(tmp_path: Path) -> Replay:
    """Give each test a folder of its own to replay from."""
    return Replay(tmp_path)


def task(*milestones: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Shape a task file."""
    return {"task": "shop", "match": {"agent": "bot"}, "milestones": list(milestones), **more}


def goal(name: str, tool: str | None = None, *, after: list[Any] | None = None, **more: Any) -> dict[str, Any]:
    """Shape a milestone on a tool (by default of its own name)."""
    verify = more.pop("verify", {"tool": tool or name})
    return {"id": name, "verify": verify, "depends_on": after or [], **more}


def chain(*names: str) -> list[dict[str, Any]]:
    """Shape milestones each of which depends on the one before."""
    return [goal(name, after=[names[i - 1]] if i else []) for i, name in enumerate(names)]


def story(*tools: str, name: str = "run") -> Trace:
    """Tell a run that calls these tools in turn, with different arguments and results."""
    trace = Trace(name)
    for n, tool in enumerate(tools, 1):
        trace.call(tool, {"n": n}, {"done": n})
    return trace.end(user="Go on.", says="Here you are.")


def milestone(record: dict[str, Any], name: str) -> dict[str, Any]:
    """Find one milestone in a record."""
    found: dict[str, Any] = next(m for m in record["milestones"] if m["id"] == name)
    return found


def standing(record: dict[str, Any], name: str) -> tuple[str, str | None]:
    """Give a milestone's state and the reason for it."""
    found = milestone(record, name)
    return found["state"], found["reason"]


def findings(record: dict[str, Any], kind: str) -> list[int | None]:
    """Give the actions at which a finding was raised."""
    return [f["action"] for f in record["findings"] if f["finding"] == kind]


def classes(record: dict[str, Any]) -> list[str]:
    """Give the class of each action in order."""
    return [step["class"] for step in record["steps"] if step["class"] is not None]


# Reach depth ----------------------------------------------------------------------------------------------------------


def test_depth_of_three_of_five_in_a_row(replay: Replay) -> None:
    """Five must-milestones in a row, first three reached: (1+2+3)/(1+2+3+4+5)."""
    [record] = replay(task(*chain("a", "b", "c", "d", "e")), story("a", "b", "c"))
    assert record["scores"]["depth"] == pytest.approx(0.4)
    assert record["outcome"] == "partial"
    assert record["scores"]["coverage"] == 0


def test_depth_weighs_layers(replay: Replay) -> None:
    """Layers of 3, 2, 2 with 3, 1, 0 reached give 5/13, where plain completion would say 4/7."""
    goals = [goal("a1"), goal("a2"), goal("a3"), goal("b1", after=["a1"]), goal("b2", after=["a2"])]
    goals += [goal("c1", after=["b1"]), goal("c2", after=["b2"])]
    [record] = replay(task(*goals), story("a1", "a2", "a3", "b1"))
    assert record["scores"]["depth"] == pytest.approx(5 / 13)
    assert [m["layer"] for m in record["milestones"]] == [1, 1, 1, 2, 2, 3, 3]


def test_optional_milestones_do_not_deepen_the_graph(replay: Replay) -> None:
    """A must-milestone behind an optional one stays in the layer it would have without it."""
    goals = [goal("a"), goal("extra", after=["a"], type="optional"), goal("b", after=["extra"])]
    [record] = replay(task(*goals), story("a", "extra"))
    assert [m["layer"] for m in record["milestones"]] == [1, 2, 2]
    assert record["scores"]["depth"] == pytest.approx(1 / 3)
    assert record["scores"]["optional_reach"] == 1.0
    assert record["scores"]["fallback_reach"] is None


def test_a_fallback_never_replaces_a_must_milestone(replay: Replay) -> None:
    """Taking the fallback branch shows in fallback_reach and opens what it leads to, but leaves depth alone."""
    goals = [goal("a"), goal("b", after=["a"]), goal("detour", after=["a"], type="fallback", covers="b")]
    goals += [goal("c", after=[{"any": ["b", "detour"]}])]
    [record] = replay(task(*goals), story("a", "detour", "c"))
    assert record["scores"]["fallback_reach"] == 1.0
    assert standing(record, "b") == ("missed", None)
    assert standing(record, "c") == ("reached", None)
    assert [m["layer"] for m in record["milestones"]] == [1, 2, 2, 2]
    assert record["scores"]["depth"] == pytest.approx(3 / 5)
    [obstacle] = record["obstacles"]
    assert (obstacle["kind"], obstacle["milestone"], obstacle["digested"]) == ("fallback", "b", True)


def test_held_too_early_is_passed_until_it_holds_again(replay: Replay) -> None:
    """A condition true before its dependency is passed (out_of_order) and reached only when true again later."""
    goals = task(*chain("a", "b"))
    [early] = replay(goals, story("b", "a"))
    assert standing(early, "b") == ("passed", "out_of_order")
    assert milestone(early, "b")["action"] == 1
    [again] = replay(goals, story("b", "a", "b"))
    assert standing(again, "b") == ("reached", None)
    assert milestone(again, "b")["action"] == 3
    [free] = replay({**goals, "order": "any"}, story("b", "a"))
    assert standing(free, "b") == ("reached", None)


def test_an_early_call_blocks_what_follows(replay: Replay) -> None:
    """Order looks at what holds: a milestone behind one that came too early is too early itself."""
    [record] = replay(task(*chain("a", "b", "c")), story("b", "c", "a"))
    assert standing(record, "b") == ("passed", "out_of_order")
    assert standing(record, "c") == ("passed", "out_of_order")


def test_milestone_after_the_cap(replay: Replay) -> None:
    """What an action beyond k does not count: the milestone is passed with reason cut_off, and the run is stuck."""
    trace = story("a", "a", "a", "b")
    [record] = replay(task(*chain("a", "b"), k=3), trace)
    assert standing(record, "b") == ("passed", "cut_off")
    assert classes(record)[-1] == "cut_off"
    assert record["actions"]["cut_off"] == 1
    assert findings(record, "stuck") == [4]
    assert record["scores"]["depth"] == pytest.approx(1 / 3)


def test_reach_at_k_counts_by_action_number(replay: Replay) -> None:
    """Reach@K is the share of must-milestones reached within the first K actions."""
    [record] = replay(task(*chain("a", "b")), story("a", *["a"] * 5, "b"))
    assert record["scores"]["reach_at_k"] == {"5": 0.5, "10": 1.0, "15": 1.0}
    assert milestone(record, "b")["action"] == 7


# Purity ---------------------------------------------------------------------------------------------------------------


def test_purity_of_three_off_task_calls_in_twelve(replay: Replay) -> None:
    """Twelve calls, three of them to a tool of no milestone: 9/12."""
    [record] = replay(task(goal("a")), story(*["a"] * 9, *["elsewhere"] * 3))
    assert record["scores"]["purity"] == pytest.approx(0.75)
    assert record["actions"] == {"effective": 9, "off_task": 3, "repeat": 0, "stuck": 0, "cut_off": 0}


def test_polling_is_no_repeat(replay: Replay) -> None:
    """The same call with another result is a poll; with the same result it is a repeat, and three times a loop."""
    poll = Trace("poll")
    for progress in (10, 20, 30):
        poll.call("status", {"job": "J-1"}, {"progress": progress})
    again = Trace("again", offset_seconds=60)
    for _ in range(3):
        again.call("status", {"job": "J-1"}, {"progress": 10})
    goals = task(goal("finished", verify={"tool": "status", "result": {"progress": 100}}))
    polled, repeated = replay(goals, poll.end(says="ok"), again.end(says="ok"))
    assert classes(polled) == ["effective"] * 3
    assert findings(polled, "loop") == []
    assert classes(repeated) == ["effective", "repeat", "repeat"]
    assert findings(repeated, "loop") == [3]


def test_a_cycle_of_two_calls_is_a_loop(replay: Replay) -> None:
    """Two calls taking turns three times, with the same results and no new milestone, are a loop."""
    trace = Trace()
    for _ in range(3):
        trace.call("a", {"x": 1}, {"left": 5})
        trace.call("b", {"x": 2}, {"left": 6})
    [record] = replay(task(goal("c", tools=["a", "b", "c"])), trace.end())
    assert len(findings(record, "loop")) == 1
    assert findings(record, "stuck") == findings(record, "loop")


def test_a_run_without_actions_scores_nothing(replay: Replay) -> None:
    """An agent that only talks has purity 0 and composite 0; what cannot be measured is absent."""
    [record] = replay(task(goal("a")), Trace().end(user="Do it.", says="Done!"))
    assert record["scores"]["composite"] == 0.0
    assert record["scores"]["purity"] == 0.0
    assert record["scores"]["digestion"] is None
    assert record["scores"]["optional_reach"] is None
    assert record["outcome"] == "failed"
    assert record["levels"]["L0"] == {"passed": False, "reason": "no_action"}


# Obstacles ------------------------------------------------------------------------------------------------------------


def two_ways() -> dict[str, Any]:
    return task(goal("find", verify={"any": [{"tool": "a"}, {"tool": "b"}]}))


def test_a_failure_overcome_by_another_tool(replay: Replay) -> None:
    """Tool A fails, B reaches the same goal: the obstacle is digested."""
    trace = Trace()
    trace.call("a", {"x": 1}, error="not found")
    trace.call("b", {"x": 1}, {"id": "X-100"})
    [record] = replay(two_ways(), trace.end(says="ok"))
    assert record["scores"]["digestion"] == 1.0
    assert record["obstacles"] == [
        {"kind": "error", "tool": "a", "milestone": "find", "action": 1, "retries": 0, "digested": True}
    ]


def test_a_failure_repeated_past_the_cap(replay: Replay) -> None:
    """Tool A fails and is called five more times, all failing: undigested, and stuck."""
    trace = Trace()
    for n in range(6):
        trace.call("a", {"x": n}, error=f"not found: {n}")
    [record] = replay(two_ways(), trace.end(says="sorry"))
    assert record["scores"]["digestion"] == 0.0
    assert record["obstacles"][0]["retries"] == 5
    assert findings(record, "stuck") == [4]
    assert classes(record) == ["effective"] * 3 + ["stuck"] * 3


def test_another_tool_that_fails_too_is_no_digestion(replay: Replay) -> None:
    """Tool A fails, B is tried and fails too, the run ends: nothing was overcome."""
    trace = Trace()
    trace.call("a", {"x": 1}, error="not found")
    trace.call("b", {"x": 1}, error="not found either")
    [record] = replay(two_ways(), trace.end(says="sorry"))
    assert record["scores"]["digestion"] == 0.0


def test_retries_stay_calls_of_their_own(replay: Replay) -> None:
    """A failing call and its retries are never merged into one, and belong to one obstacle."""
    trace = Trace()
    for n in range(3):
        trace.call("a", {"x": 1}, error="not found" if n < 2 else None, result={"id": "X-100"} if n == 2 else None)
    [record] = replay(two_ways(), trace.end(says="ok"))
    assert len(classes(record)) == 3
    assert [(o["retries"], o["digested"]) for o in record["obstacles"]] == [(1, True)]


@pytest.mark.parametrize("declared", [True, False])
def test_a_slow_tool_is_an_obstacle_though_it_succeeds(replay: Replay, declared: bool) -> None:
    """A tool that normally takes 0.04 s takes 3 s nine times: slow, undigested, and digestion is 0, not absent."""
    trace = Trace()
    for n in range(0 if declared else 5):
        trace.call("a", {"page": n}, {"rows": n}, seconds=0.04)
    for n in range(9):
        trace.call("a", {"page": 100 + n}, {"rows": 100 + n}, seconds=3)
    baselines = {"baselines": {"a": 0.04}} if declared else {}
    [record] = replay(task(goal("find", "a"), **baselines), trace.end(says="ok"))
    assert record["scores"]["digestion"] == 0.0
    [obstacle] = record["obstacles"]
    assert (obstacle["kind"], obstacle["digested"]) == ("slow", False)
    assert obstacle["retries"] == (8 if declared else 4)  # a learned baseline follows what it sees: 3 s becomes normal


def test_incomplete_data_is_an_obstacle(replay: Replay) -> None:
    """A result without a required field is bad data: the milestone is passed, a complete answer then overcomes it."""
    goals = task(goal("read", required=["record.id"]))
    broken, mended = Trace("broken"), Trace("mended", offset_seconds=60)
    for trace in (broken, mended):
        trace.call("read", {"n": 1}, {"record": {"id": None}})
    mended.call("read", {"n": 1}, {"record": {"id": "T-100"}})
    first, second = replay(goals, broken.end(says="?"), mended.end(says="ok"))
    assert standing(first, "read") == ("passed", "missing_field")
    assert [(o["kind"], o["digested"]) for o in first["obstacles"]] == [("bad_data", False)]
    assert standing(second, "read") == ("reached", None)
    assert [(o["kind"], o["digested"]) for o in second["obstacles"]] == [("bad_data", True)]


# Composite ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("depth", "effective", "off_task", "digested", "composite"),
    [(42, 110, 15, 31, 0.525), (68, 142, 58, 58, 0.659), (79, 130, 70, 74, 0.733)],
)
def test_composite(replay: Replay, depth: int, effective: int, off_task: int, digested: int, composite: float) -> None:
    """The composite is 0.4 depth + 0.3 purity + 0.3 digestion."""
    first = goal("open", tools=["open", "flaky_*", "fine"])
    goals = task(first, goal("close", after=["open"]), k=500, layer_weights=[depth, 100 - depth])
    trace = Trace(gap=0.01)
    for n in range(100):
        if n == digested:
            trace.call("open", {"n": n}, {"n": n})
        trace.call(f"flaky_{n}", {"n": n}, error="refused")
    for n in range(effective - 101):
        trace.call("fine", {"n": n}, {"n": n})
    for n in range(off_task):
        trace.call("elsewhere", {"n": n}, {"n": n})
    [record] = replay(goals, trace.end(says="well"))
    scores = record["scores"]
    assert scores["depth"] == pytest.approx(depth / 100)
    assert scores["purity"] == pytest.approx(effective / (effective + off_task))
    assert scores["digestion"] == pytest.approx(digested / 100)
    assert scores["composite"] == pytest.approx(composite, abs=0.0006)


def test_no_obstacle_means_no_digestion(replay: Replay) -> None:
    """With no obstacle the other weights are rescaled, or digestion counts as 1 where the task says so."""
    goals = task(*chain("a", "b"))
    [record] = replay(goals, story("a", "elsewhere"))
    assert record["scores"]["digestion"] is None
    assert record["scores"]["composite"] == pytest.approx((0.4 / 3 + 0.3 / 2) / 0.7)
    [classic] = replay({**goals, "no_obstacle": "one"}, story("a", "elsewhere"))
    assert classic["scores"]["composite"] == pytest.approx(0.4 / 3 + 0.3 / 2 + 0.3)
    [perfect] = replay(goals, story("a", "b"))
    assert perfect["scores"]["composite"] == pytest.approx(1.0)
    assert perfect["outcome"] == "success"


def test_high_risk_whatever_the_composite_says(replay: Replay) -> None:
    """A run with composite 0.71 that reached 1 of 5 deepest milestones is marked high risk."""
    deep = [goal(f"deep{n}", after=["a"]) for n in range(5)]
    [record] = replay(task(goal("a"), *deep, layer_weights=[2.882, 1]), story("a", "deep0"))
    assert record["scores"]["composite"] == pytest.approx(0.71, abs=0.001)
    assert record["scores"]["high_layer"] == pytest.approx(0.2)
    assert record["high_risk"] is True


def test_a_trap_fails_the_run_and_leaves_depth_visible(replay: Replay) -> None:
    """A trap makes the run failed with composite 0, whatever it reached; depth stays as it is."""
    goals = task(goal("a"), traps=[{"id": "paid", "verify": {"tool": "refund", "status": "ok"}}])
    [record] = replay(goals, story("a", "refund"))
    assert record["outcome"] == "failed"
    assert record["scores"]["composite"] == 0.0
    assert record["scores"]["depth"] == 1.0
    assert [(t["id"], t["action"]) for t in record["traps"]] == [("paid", 2)]
    assert findings(record, "trap") == [2]


def test_a_trap_counts_only_while_its_milestones_are_not_reached(replay: Replay) -> None:
    """``when_not_reached`` makes a trap of doing something before something else."""
    trap = {"id": "unchecked", "when_not_reached": ["check"], "verify": {"tool": "refund"}}
    goals = task(goal("check"), goal("refund"), traps=[trap])
    before, after = replay(goals, story("refund", "check", name="1"), story("check", "refund", name="2"))
    hit = {record["trace_id"]: [t["id"] for t in record["traps"]] for record in (before, after)}
    assert sorted(hit.values()) == [[], ["unchecked"]]


def test_a_task_of_traps_alone(replay: Replay) -> None:
    """Where the right thing is to change nothing, depth is 1 while no trap is hit and the run ends with an output."""
    goals = task(traps=[{"id": "wrote", "verify": {"tool": "update", "status": "ok"}}])
    good = Trace("good")
    good.call("read", {"id": "T-100"}, {"open": True})
    bad = Trace("bad", offset_seconds=60)
    bad.call("update", {"id": "T-100"}, {"done": True})
    silent = Trace("silent", offset_seconds=120)
    silent.call("read", {"id": "T-100"}, {"open": True})
    records = replay(goals, good.end(says="Nothing to do."), bad.end(says="Updated."), silent.end())
    assert [r["scores"]["depth"] for r in records] == [1.0, 0.0, 0.0]
    assert [r["scores"]["coverage"] for r in records] == [1, 0, 0]
    assert [r["scores"]["high_layer"] for r in records] == [None, None, None]
    assert records[0]["outcome"] == "success"
    assert records[1]["outcome"] == "failed"
    assert records[1]["scores"]["composite"] == 0.0
    assert not any(r["high_risk"] for r in records)


# Grounding ------------------------------------------------------------------------------------------------------------


def stock() -> dict[str, Any]:
    return task(goal("stock", "check_inventory", grounded=["sku"]), grounded=["sku"])


def test_a_made_up_id_is_fabricated(replay: Replay) -> None:
    """``stock`` called with a SKU that no earlier text held: fabricated, not reached, level L2 fails."""
    trace = Trace()
    trace.call("check_inventory", {"sku": "SKU-9"}, {"stock": 3})
    [record] = replay(stock(), trace.end(user="How many of SKU-7 are there?", says="3"))
    assert standing(record, "stock") == ("passed", "fabricated")
    assert findings(record, "fabricated") == [1]
    assert record["levels"]["L2"] == {"passed": False, "reason": "fabricated"}
    assert record["scores"]["depth"] == 0.0


def test_a_grounded_id_is_not(replay: Replay) -> None:
    """A SKU that the user named, or an earlier result held, is grounded."""
    by_user, by_result = Trace("user"), Trace("result", offset_seconds=60)
    by_result.call("search", {"q": "mug"}, {"hits": [{"sku": "SKU-9"}]})
    for trace in (by_user, by_result):
        trace.call("check_inventory", {"sku": "SKU-9"}, {"stock": 3})
    records = replay(stock(), by_user.end(user="Is SKU-9 in stock?"), by_result.end(user="Are there mugs?"))
    assert [standing(r, "stock") for r in records] == [("reached", None)] * 2
    assert [findings(r, "fabricated") for r in records] == [[], []]


def test_a_value_seen_later_than_the_call_grounds_nothing(replay: Replay) -> None:
    """A SKU that turns up only after the call was made up all the same, whichever span arrives first."""
    trace = Trace()
    trace.call("check_inventory", {"sku": "SKU-9"}, {"stock": 3})
    trace.call("search", {"q": "mug"}, {"hits": [{"sku": "SKU-9"}]})
    trace.end(user="Are there mugs?")
    trace.spans.reverse()
    [record] = replay(stock(), trace)
    assert findings(record, "fabricated") == [1]


@pytest.mark.parametrize(
    ("user", "value", "grounded"),
    [
        ("Look at SKU-12.", "SKU-1", False),
        ("Look at SKU-1, please.", "SKU-1", True),
        ("Look at (SKU-1)", " SKU-1 ", True),
        ("The price is 120.0 for one.", 120, True),
        ("The price is 1200 for one.", 120, False),
        ("Order 4711 it is.", "4711", True),
        ("Order 47110 it is.", "4711", False),
    ],
)
def test_values_are_whole_tokens_and_numbers_count_by_value(
    replay: Replay, user: str, value: Any, grounded: bool
) -> None:
    """In a text a value must stand as a whole token; numbers are equal by value; blanks around do not matter."""
    trace = Trace()
    trace.call("check_inventory", {"sku": value}, {"stock": 3})
    [record] = replay(stock(), trace.end(user=user))
    assert (findings(record, "fabricated") == []) is grounded


def test_a_fabricated_call_blocks_what_follows(replay: Replay) -> None:
    """Behind a fabricated call nothing holds: the next milestone is out of order."""
    goals = task(goal("stock", "check_inventory"), goal("order", after=["stock"]), grounded=["sku"])
    trace = Trace()
    trace.call("check_inventory", {"sku": "SKU-9"}, {"stock": 3})
    trace.call("order", {"n": 1}, {"done": True})
    [record] = replay(goals, trace.end(user="How many of SKU-7 are there?"))
    assert standing(record, "order") == ("passed", "out_of_order")


# Use of results -------------------------------------------------------------------------------------------------------


def customer(*, args: dict[str, Any] | None, says: str | None, result: Any = None) -> tuple[dict[str, Any], Trace]:
    """Tell a run that looks a customer up and then, perhaps, does something with the result."""
    goals = task(goal("customer", "lookup_customer", used=True), goal("mail", after=["customer"]))
    trace = Trace()
    trace.call("lookup_customer", {"name": "Ann"}, result or {"customer_id": "C-4711", "tier": 2, "name": "Ann"})
    if args is not None:
        trace.call("mail", args, {"sent": True})
    return goals, trace.end(user="Write to Ann.", says=says)


def test_a_result_that_nothing_uses(replay: Replay) -> None:
    """The customer was looked up and nothing of it used later: passed, not reached; what follows is not blocked."""
    [record] = replay(*customer(args={"to": "Ann"}, says="I wrote to Ann."))
    assert standing(record, "customer") == ("passed", "unused")
    assert findings(record, "unused") == [1]
    assert standing(record, "mail") == ("reached", None)
    assert record["scores"]["depth"] == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("args", "says", "used"),
    [
        ({"to": "C-4711"}, None, True),  # in a later argument
        ({"body": "Dear C-4711, hello"}, None, True),  # as a token of one
        ({"body": "Dear C-47119, hello"}, None, False),  # not as part of a token
        ({"to": "Ann"}, "Customer C-4711 was told.", True),  # in the final output
        ({"to": "Ann"}, None, False),  # known before the call
        ({"tier": 2}, None, True),  # trivial, under the same key
        ({"level": 2}, None, False),  # trivial, under another key
        ({"to": "x"}, "We have 2 of them.", False),  # trivial, in text
    ],
)
def test_what_counts_as_use(replay: Replay, args: dict[str, Any], says: str | None, used: bool) -> None:
    """A value counts where it is new and stands whole; a trivial one only as an argument of the same name."""
    [record] = replay(*customer(args=args, says=says))
    assert standing(record, "customer") == (("reached", None) if used else ("passed", "unused"))


def test_the_result_of_a_later_lookup_counts_too(replay: Replay) -> None:
    """A milestone first held by a call of no use is reached when the result of a later such call is used."""
    goals = task(goal("customer", "lookup_customer", used=True))
    trace = Trace()
    trace.call("lookup_customer", {"name": "Ann"}, {"customer_id": "C-4711"})
    trace.call("lookup_customer", {"name": "Bob"}, {"customer_id": "C-4712"})
    trace.call("mail", {"to": "C-4712"}, {"sent": True})
    [record] = replay(goals, trace.end(user="Write to Bob."))
    assert standing(record, "customer") == ("reached", None)
    assert milestone(record, "customer")["action"] == 1


def test_a_result_used_before_it_was_there(replay: Replay) -> None:
    """A value in a call that started before the result was there is no use of it."""
    goals = task(goal("customer", "lookup_customer", used=True))
    trace = Trace()
    trace.call("lookup_customer", {"name": "Ann"}, {"customer_id": "C-4711"}, start=1.0, seconds=2.0)
    trace.call("mail", {"to": "C-4711"}, {"sent": True}, start=2.0, seconds=4.0)
    trace.cursor = 7.0
    [record] = replay(goals, trace.end(user="Write to Ann."))
    assert standing(record, "customer") == ("passed", "unused")


def test_rates_over_three_rounds(replay: Replay) -> None:
    """Reached 2 of 3 times is a rate of 0.667 (able but unstable); 0 of 3 is a true bottleneck."""
    traces = [story(*tools, name=str(n)) for n, tools in enumerate((("a", "stock"), ("a",), ("a", "stock")))]
    records = replay(task(goal("a"), goal("stock", after=["a"]), goal("order", after=["stock"])), *traces)

    def rate(name: str) -> float:
        return len([r for r in records if milestone(r, name)["state"] == "reached"]) / len(records)

    assert rate("stock") == pytest.approx(0.667, abs=0.001)
    assert rate("order") == 0
    assert rate("a") == 1


# One action, one step -------------------------------------------------------------------------------------------------


def test_a_wrapper_around_a_call_counts_once(replay: Replay) -> None:
    """A tool span in a tool span of the same tool is one call: outer times, inner name, the content of either."""
    trace = Trace()
    outer = trace.call("a", {"x": 1}, seconds=0.1)
    trace.call("a", None, {"id": "X-100"}, start=0.12, parent=outer)
    [record] = replay(task(goal("a", verify={"tool": "a", "result": {"id": "X-100"}})), trace.end(says="ok"))
    assert classes(record) == ["effective"]
    [step] = [step for step in record["steps"] if step["class"]]
    assert (step["args"], step["result"], step["span_id"]) == ({"x": 1}, {"id": "X-100"}, outer)
    assert standing(record, "a") == ("reached", None)


def test_two_reports_with_one_id_at_one_time_count_once(replay: Replay) -> None:
    """Two spans of one tool with one call id that overlap in time are one call; later ones with this id are not."""
    trace = Trace()
    trace.call("a", {"x": 1}, {"id": "X-100"}, start=1.0, seconds=0.5, call_id="call_1")
    trace.call("a", {"x": 1}, {"id": "X-100"}, start=1.1, seconds=0.3, call_id="call_1")
    trace.call("a", {"x": 2}, {"id": "X-200"}, start=2.0, seconds=0.5, call_id="call_1")
    trace.cursor = 3.0
    [record] = replay(task(goal("a")), trace.end(says="ok"))
    assert classes(record) == ["effective", "effective"]


def test_a_call_without_a_span_is_derived_once(replay: Replay) -> None:
    """A call that stands only in the model's messages is an action, with the result the model was given."""
    trace = Trace()
    trace.chat(user="Find X.", asks=[("call_1", "a", {"x": 1}), ("call_2", "nowhere", {"y": 2})])
    trace.chat(answers=[("call_1", {"id": "X-100"})], asks=[("call_3", "a", {"x": 3})])
    trace.call("a", {"x": 3}, {"id": "X-300"}, call_id="call_3")
    trace.chat(answers=[("call_1", {"id": "X-100"}), ("call_3", {"id": "X-300"})], says="X-300 it is.")
    [record] = replay(task(goal("a", verify={"tool": "a", "result": {"id": "X-100"}})), trace.end())
    actions = [step for step in record["steps"] if step["class"] is not None]
    got = sorted((step["call_id"], step["tool"], step["derived"], step["ok"]) for step in actions)
    assert got == [("call_1", "a", True, True), ("call_2", "nowhere", True, False), ("call_3", "a", False, True)]
    assert standing(record, "a") == ("reached", None)


def test_order_of_arrival_does_not_matter(replay: Replay) -> None:
    """The same spans written in another order, or twice, give the same record."""
    trace = story("a", "b", "elsewhere", "c")
    [forward] = replay(task(*chain("a", "b", "c")), trace)
    trace.spans = [*reversed(trace.spans), *trace.spans]
    [backward] = replay(task(*chain("a", "b", "c")), trace)
    assert forward == backward
