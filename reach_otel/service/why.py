"""Say in a sentence why each milestone, level, obstacle and outcome of a run is as it is.

Sentences are built from the closed reasons of a record, its numbers and names of the task file: nothing that a span
holds gets into one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from reach_otel import names
from reach_otel.span import ACTION_KINDS
from reach_otel.task.glob import is_glob, matcher

if TYPE_CHECKING:
    from reach_otel.task import Milestone, Task

Plain = Mapping[str, Any]
"""A record, or a part of it, as dicts, lists and scalars."""

NAMES_SHOWN_MAX: Final = 5

_LEVEL_PASSED: Final = {
    "L0": "The agent set about the task.",
    "L1": "Every must-milestone was tried with one of its tools.",
    "L2": "For every must-milestone that was tried, a call succeeded with legal, grounded arguments.",
    "L3": "Every must-milestone was reached, and no obstacle was left undigested.",
    "L4": "The final output delivers what the task asks for and claims nothing untrue.",
}
_LEVEL_FAILED: Final = {
    ("L0", "intent_missed"): "Nothing in the plan, the first actions or the final output shows that the goal was"
    " understood.",
    ("L0", "no_action"): "The agent did nothing.",
    ("L1", "tool_not_found"): "A must-milestone was never tried with one of its tools; a tool that does not exist was"
    " called instead.",
    ("L1", "wrong_tool"): "A must-milestone was never tried with one of its tools; other tools were used instead.",
    ("L1", "never_tried"): "A must-milestone was never tried.",
    ("L2", "bad_args"): "No call for a must-milestone succeeded: its arguments were refused.",
    ("L2", names.FABRICATED): "The calls for a must-milestone passed values that stood nowhere before.",
    ("L2", "tool_error"): "No call for a must-milestone succeeded: the tool failed.",
    ("L2", "permission"): "No call for a must-milestone succeeded: the agent was not allowed to make it.",
    ("L2", "timeout"): "No call for a must-milestone succeeded: it took too long.",
    ("L3", names.MISSING_FIELD): "The result for a must-milestone lacked a field that the task requires.",
    ("L3", names.UNUSED): "The result for a must-milestone was not used afterwards, or its use cannot be seen.",
    ("L3", names.OUT_OF_ORDER): "A must-milestone went by before what it depends on.",
    ("L3", "ignored_result"): "An error or a bad result was not dealt with; the agent went on with other things.",
    ("L3", "gave_up"): "The run ended before all must-milestones were reached.",
    ("L3", names.STUCK): "The agent got stuck: too many retries, a loop, or too many actions.",
    ("L4", "no_output"): "The run has no final output.",
    ("L4", "incomplete"): "The final output does not name what the task asks it to.",
    ("L4", "hallucinated_success"): "The final output claims success, though a must-milestone is not reached.",
    ("L4", "error_as_answer"): "The final output repeats the error text of a tool.",
}
_OUTCOMES: Final = {
    "success": "All must-milestones were reached, the run ended well, and the final output delivers.",
    "abandoned": "The run fell silent without an end.",
    "evicted": "The run was closed early, to make room for others.",
    "running": "The run is still going.",
}
_KINDS: Final = {
    "error": "failed",
    "slow": "took far longer than usual",
    "bad_data": "gave a result that is broken or incomplete",
}


def milestones(record: Plain, steps: Sequence[Plain] | None, task: Task | None) -> dict[str, str]:
    """Give a sentence for each milestone; without its task or its steps a run is told in less detail."""
    known = {milestone.id: milestone for milestone in task.milestones} if task is not None else {}
    rows = {row["id"]: row for row in record["milestones"]}
    calls = [step for step in steps if step["kind"] in ACTION_KINDS] if steps is not None else None
    return {
        key: _reached(row, known.get(key))
        if row["state"] == "reached"
        else _passed(row, rows, known.get(key), task)
        if row["state"] == "passed"
        else _missed(record, rows, known.get(key), task, calls)
        for key, row in rows.items()
    }


def _reached(row: Plain, milestone: Milestone | None) -> str:
    used = " Its result was used later." if milestone is not None and milestone.used else ""
    return f"Reached at {_place(row)}.{used}"


def _passed(row: Plain, rows: Mapping[str, Plain], milestone: Milestone | None, task: Task | None) -> str:
    held = f"Its condition held at {_place(row)}, but "
    reason = row["reason"]
    if reason == names.UNUSED:
        return f"{held}nothing of its result has been used since."
    if reason == names.NO_CONTENT:
        return f"{held}its result was not captured, so that nothing can show its use; turn on the capture of content."
    if reason == names.OUT_OF_ORDER:
        return f"{held}before {_late(row, rows, milestone, task) or 'what it depends on'}, which must come first."
    if reason == names.FABRICATED:
        return f"{held}the call passed an argument value that stood nowhere before, so it does not count."
    if reason == names.MISSING_FIELD:
        fields = _listed([path.text for path in milestone.required], "or") if milestone is not None else ""
        return f"{held}its result lacks a required field{f' ({fields})' if fields else ''}."
    if reason == names.CUT_OFF:
        cap = f"the first {task.k} actions" if task is not None else "the first actions"
        return f"{held}only {cap} count."
    return f"{held}it does not count."


def _late(row: Plain, rows: Mapping[str, Plain], milestone: Milestone | None, task: Task | None) -> str:
    """Name the dependencies that had not held when a milestone went by."""
    if milestone is None or task is None:
        return ""
    at = row["action"] or 0
    groups = [[task.milestones[index].id for index in group] for group in milestone.depends_on]
    late = [group for group in groups if not any(_held_by(rows.get(name), at) for name in group)]
    return _listed([_listed(group, "or") for group in late], "and")


def _held_by(row: Plain | None, action: int) -> bool:
    held = row is not None and (row["state"] == "reached" or row["reason"] in (names.UNUSED, names.NO_CONTENT))
    return held and row is not None and (row["action"] or 0) <= action


def _missed(
    record: Plain,
    rows: Mapping[str, Plain],
    milestone: Milestone | None,
    task: Task | None,
    calls: Sequence[Plain] | None,
) -> str:
    so_far = "" if record["final"] else " so far"
    if milestone is None or task is None:
        return f"Its condition did not hold{so_far}."
    waits = _late({"action": 1 << 62}, rows, milestone, task)
    before = f" It comes after {waits}, not reached either." if waits else ""
    content = " Arguments and results were not captured." if record["content"] == "missing" else ""
    tools = _listed(milestone.tools, "or")
    if not tools or calls is None:
        return f"Its condition did not hold{so_far}.{before}{content}"
    fits = matcher(milestone.tools)
    own = [call for call in calls if call["tool"] is not None and fits(call["tool"])]
    if not own:
        return f"Never tried{so_far}: no call of {tools}.{before}"
    times = "once" if len(own) == 1 else f"{len(own)} times"
    if not any(call["ok"] for call in own):
        return f"Tried {times} with {tools}, and every call failed{so_far}.{before}"
    return f"Tried {times} with {tools}, but its condition did not hold on any call{so_far}.{before}{content}"


def levels(record: Plain) -> dict[str, str]:
    """Give a sentence for each level."""
    return {
        level: _LEVEL_PASSED.get(level, "Passed.")
        if verdict["passed"]
        else _LEVEL_FAILED.get((level, verdict["reason"]), "Not passed.")
        for level, verdict in record["levels"].items()
    }


def obstacles(record: Plain, task: Task | None) -> list[str]:
    """Give a sentence for each obstacle, in their order."""
    tools = _tools_of(task)
    return [_obstacle(row, tools, final=record["final"]) for row in record["obstacles"]]


def _obstacle(row: Plain, tools: frozenset[str], *, final: bool) -> str:
    if row["kind"] == "fallback":
        met = f"A fallback branch had to be taken at action {row['action']}"
    else:
        tool = row["tool"] if row["tool"] in tools else "A tool"
        met = f"{tool} {_KINDS.get(row['kind'], 'stood in the way')} at action {row['action']}"
    if row["milestone"] is not None:
        met += f", in the way of {row['milestone']}"
    if row["retries"]:
        met += f", and {row['retries']} further {'call' if row['retries'] == 1 else 'calls'} went no better"
    if row["digested"]:
        return f"{met}. The agent got past it: a milestone at that layer or deeper was reached after it."
    return f"{met}. The agent {'did not get past it' if final else 'has not got past it so far'}."


def outcome(record: Plain) -> str:
    """Give a sentence for the outcome."""
    kind = record["outcome"]
    if record["traps"]:
        traps = _listed(list(dict.fromkeys(trap["id"] for trap in record["traps"])), "and")
        return f"The run did what it must not: {traps}."
    must = [row for row in record["milestones"] if row["type"] == "must"]
    reached = sum(row["state"] == "reached" for row in must)
    if kind == "success" and not must:
        return "The run ended well."
    if kind in _OUTCOMES:
        return _OUTCOMES[kind]
    if not must:
        return "The run did not end well."
    if reached < len(must):
        return f"{reached} of {len(must)} must-milestones were reached."
    return f"All {len(must)} must-milestones were reached, but the run did not end well or does not deliver."


def _place(row: Plain) -> str:
    if row["action"] is None:
        return "an unknown place"
    if row.get("seconds") is None:
        return f"action {row['action']}"
    return f"action {row['action']}, {row['seconds']:.3g} s into the run"


def _tools_of(task: Task | None) -> frozenset[str]:
    if task is None:
        return frozenset()
    return frozenset(tool for milestone in task.milestones for tool in milestone.tools if not is_glob(tool))


def _listed(words: Iterable[str], joint: str) -> str:
    """List words as English does, a long list cut short."""
    found = list(words)
    if len(found) > NAMES_SHOWN_MAX:
        found = [*found[: NAMES_SHOWN_MAX - 1], f"{len(found) - NAMES_SHOWN_MAX + 1} more"]
    if len(found) < 2:
        return "".join(found)
    return f"{', '.join(found[:-1])} {joint} {found[-1]}"
