"""Judge the levels L0-L4 of one run, each on its own, and name the first that fails (SPEC 8)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from reach_otel import names
from reach_otel.engine.record import BreakPoint, LevelRecord
from reach_otel.engine.sources import canonical, contains, is_trivial, leaves

if TYPE_CHECKING:
    from reach_otel.engine.action import Action
    from reach_otel.engine.fold import Finding
    from reach_otel.engine.progress import Progress
    from reach_otel.task import Milestone

FIRST_ACTIONS = 3  # that may show the intent
ERROR_CHARS_MIN = 12  # a shorter error text proves nothing when it shows up in an answer

_ERROR_KINDS = (
    ("permission", re.compile(r"(?i)permission|forbidden|unauthori[sz]ed|not authori[sz]ed|access denied|\b40[13]\b")),
    ("timeout", re.compile(r"(?i)time[d ]?[- ]?out|deadline exceeded")),
    (
        "bad_args",
        re.compile(r"(?i)invalid|validation|unexpected keyword|missing \d* ?required|argument|malformed|json"),
    ),
)


class Evidence(Struct, frozen=True):
    """What the levels are judged by."""

    progress: Progress
    actions: Sequence[Action]
    findings: Sequence[Finding]
    planned: str  # text of the plan, empty without one
    output: str | None
    has_content: bool


def judge(evidence: Evidence) -> tuple[dict[str, LevelRecord], BreakPoint | None]:
    """Return the verdict of every level and the first failing one."""
    calls = _calls(evidence)
    reasons = {
        "L0": _intent(evidence),
        "L1": _resource(evidence, calls),
        "L2": _action(evidence, calls),
        "L3": _result(evidence),
        "L4": _delivery(evidence),
    }
    levels = {level: LevelRecord(passed=reason is None, reason=reason) for level, reason in reasons.items()}
    first = next(((level, reason) for level, reason in reasons.items() if reason is not None), None)
    return levels, BreakPoint(*first) if first is not None else None


def _intent(evidence: Evidence) -> str | None:
    task = evidence.progress.plan.task
    if task.intent is None:
        if any(action.klass == "effective" for action in evidence.actions) or not evidence.progress.plan.must:
            return None
        return "intent_missed" if evidence.actions else "no_action"
    said = [evidence.planned, evidence.output or ""]
    said += [f"{action.tool} {action.args}" for action in evidence.actions[:FIRST_ACTIONS]]
    text = " ".join(said).lower()
    if all(word in text for word in task.intent.mentions):
        return None
    return "intent_missed" if evidence.actions or evidence.output else "no_action"


def _resource(evidence: Evidence, calls: dict[int, list[Action]]) -> str | None:
    for milestone in _must(evidence):
        if milestone.index in calls or evidence.progress.held[milestone.index] is not None:
            continue
        strays = [action for action in evidence.actions if action.klass == "off_task"]
        if any(action.derived and not action.ok for action in strays):
            return "tool_not_found"
        return "wrong_tool" if strays else "never_tried"
    return None


def _action(evidence: Evidence, calls: dict[int, list[Action]]) -> str | None:
    invented = {f.action for f in evidence.findings if f.finding == names.FABRICATED}
    for milestone in _must(evidence):
        own = calls.get(milestone.index, ())
        if not own or any(call.ok and call.n not in invented for call in own):
            continue
        if any(call.n in invented for call in own):
            return names.FABRICATED
        error = own[-1].error or ""
        return next((kind for kind, pattern in _ERROR_KINDS if pattern.search(error)), "tool_error")
    return None


def _result(evidence: Evidence) -> str | None:
    progress = evidence.progress
    unreached = [m for m in _must(evidence) if not progress.reached[m.index]]
    for milestone in unreached:
        _, reason, _ = progress.state(milestone.index)
        if reason in (names.MISSING_FIELD, names.UNUSED, names.OUT_OF_ORDER):
            return reason
        if reason == names.NO_CONTENT:
            return names.UNUSED
    obstacles = progress.obstacles
    undigested = [o for o in obstacles.all if not obstacles.is_digested(o)]
    if not unreached and not undigested:
        return None
    if any(f.finding == names.STUCK for f in evidence.findings):
        return names.STUCK
    if undigested and evidence.actions and undigested[-1].action + undigested[-1].retries >= len(evidence.actions):
        return "gave_up"
    return "ignored_result" if undigested else "gave_up"


def _delivery(evidence: Evidence) -> str | None:
    progress = evidence.progress
    delivery = progress.plan.task.delivery
    output = evidence.output
    if output is None:
        optional = delivery is not None and not delivery.required
        return None if optional or not evidence.has_content else "no_output"
    complete = progress.reached_must == len(progress.plan.must)
    if delivery is not None:
        if not complete and any(pattern.search(output) for pattern in delivery.claims_success):
            return names.HALLUCINATED_SUCCESS
        if not all(_mentions_result(output, index, evidence) for index in delivery.contains_results_of):
            return "incomplete"
    errors = [a.error for a in evidence.actions if a.error and len(a.error) >= ERROR_CHARS_MIN]
    if not complete and any(error in output for error in errors):
        return "error_as_answer"
    return None


def _mentions_result(output: str, index: int, evidence: Evidence) -> bool:
    held = evidence.progress.held[index]
    if held is None:
        return False
    action = next((a for a in evidence.actions if a.span_id == held.span_id and a.n == held.n), None)
    if action is None or not action.has_result:
        return not evidence.has_content
    values = (canonical(leaf) for _, leaf in leaves(action.result) if not is_trivial(leaf))
    return any(value is not None and contains(output, value) for value in values)


def _must(evidence: Evidence) -> list[Milestone]:
    task = evidence.progress.plan.task
    return sorted((task.milestones[i] for i in evidence.progress.plan.must), key=lambda m: (m.layer, m.index))


def _calls(evidence: Evidence) -> dict[int, list[Action]]:
    """List for each milestone the calls of its tools, in order."""
    calls: dict[int, list[Action]] = {}
    blocked_by = evidence.progress.plan.task.blocked_by
    for action in evidence.actions:
        for index in blocked_by(action.tool):
            calls.setdefault(index, []).append(action)
    return calls
