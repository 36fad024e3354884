"""Put a verdict into words: each score with its label and explanation, and the attributes that a store is searched by.

All of it is made of numbers, closed sets and names from the task file. Nothing that stood in a span gets in, as the log
events and the span go to stores that others read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from reach_otel import names
from reach_otel.engine.scores import HIGH_RISK_BELOW
from reach_otel.publish.labels import CLASSES, OBSTACLE_KINDS, OTHER, OUTCOMES, REASONS

if TYPE_CHECKING:
    from reach_otel.engine.record import MilestoneRecord, Record
    from reach_otel.publish.labels import TaskLabels

INEFFECTIVE_WEAK_ABOVE: Final = 0.30  # SPEC 9.2
STATES_MAX: Final = 64  # milestones told one by one; an SDK keeps 128 attributes of a span
NAMES_MAX: Final = 10  # told in one explanation; the span's attributes have them all

LABELS: Final[dict[str, tuple[str, ...]]] = {
    names.REACH_DEPTH: ("complete", "partial", "none"),
    names.REACH_PURITY: ("good", "weak"),
    names.REACH_DIGESTION: ("digested", "partial", "undigested"),
    names.REACH_SCORE: ("ok", "high_risk"),
    names.REACH_HIGH_LAYER: ("ok", "low"),
}
"""The labels that each evaluation can have, the best one first."""

_SPAN_ID: Final = re.compile(r"[0-9a-f]{16}")
_MADE_BY_US: Final = re.compile(re.escape(names.RUN_ID_PREFIX) + r"[0-9a-f]{32}")
_MILESTONE_REASONS: Final = frozenset(
    (names.UNUSED, names.OUT_OF_ORDER, names.FABRICATED, names.MISSING_FIELD, names.CUT_OFF, names.NO_CONTENT)
)

Attribute = str | bool | int | float | tuple[str, ...]


class Evaluation(NamedTuple):
    """One score of a run; ``value`` is the record's own, 0-1."""

    name: str
    value: float
    label: str
    explanation: str


def evaluations(record: Record, labels: TaskLabels) -> Iterator[Evaluation]:
    """Yield the scores that a finished run has; without a task, those that need none."""
    scores = record.scores
    if has_task(labels):
        label = _among(names.REACH_DEPTH, scores.depth >= 1.0, scores.depth > 0.0)
        yield Evaluation(names.REACH_DEPTH, scores.depth, label, _of_depth(record))
    # Rounded, as 1 - 0.7 is a little more than 0.3.
    is_weak = round(1.0 - scores.purity, 9) > INEFFECTIVE_WEAK_ABOVE
    yield Evaluation(names.REACH_PURITY, scores.purity, _among(names.REACH_PURITY, not is_weak), _of_purity(record))
    if scores.digestion is not None:
        label = _among(names.REACH_DIGESTION, scores.digestion >= 1.0, scores.digestion > 0.0)
        yield Evaluation(names.REACH_DIGESTION, scores.digestion, label, _of_digestion(record))
    if not has_task(labels):
        return
    label = _among(names.REACH_SCORE, not record.high_risk)
    yield Evaluation(names.REACH_SCORE, scores.composite, label, _of_score(record))
    if scores.high_layer is not None:
        label = _among(names.REACH_HIGH_LAYER, scores.high_layer >= HIGH_RISK_BELOW)
        yield Evaluation(names.REACH_HIGH_LAYER, scores.high_layer, label, _of_high_layer(record))


def attributes(record: Record, trace_id: str, labels: TaskLabels, variant: str) -> dict[str, Attribute]:
    """Give the attributes of the span ``reach.evaluate``; what a run does not have is left out.

    Findings and milestones are told twice: as lists to read, and one by one for stores that compare whole values only.
    """
    scores, found = record.scores, findings(record)
    told: dict[str, Attribute | None] = {
        **identity(record, trace_id, labels, variant),
        names.REACH_OUTCOME: record.outcome if record.outcome in OUTCOMES else OTHER,
        names.REACH_PURITY: scores.purity,
        names.REACH_DIGESTION: scores.digestion,
        names.REACH_FINDINGS: found or None,
    }
    told.update((names.REACH_FINDING.format(name), True) for name in found)
    agent = labels.agent(record.agent)
    if agent != OTHER:
        told[names.REACH_AGENT] = agent
    if has_task(labels):
        told[names.REACH_DEPTH] = scores.depth
        told[names.REACH_SCORE] = scores.composite
        told[names.REACH_HIGH_LAYER] = scores.high_layer
        told[names.REACH_COVERAGE] = scores.coverage
        told[names.REACH_HIGH_RISK] = record.high_risk
        if (broken := record.break_point) is not None and broken.level in REASONS:
            told[names.REACH_BREAK_LEVEL] = broken.level
            told[names.REACH_BREAK_REASON] = broken.reason if broken.reason in REASONS[broken.level] else OTHER
        told[names.REACH_MILESTONES_REACHED] = _ids(record.milestones, "reached") or None
        told[names.REACH_MILESTONES_PASSED] = _ids(record.milestones, "passed") or None
        told[names.REACH_MILESTONES_MISSED] = _ids(record.milestones, "missed") or None
        if len(record.milestones) <= STATES_MAX:
            told.update((names.REACH_MILESTONE_STATE.format(m.id), m.state) for m in record.milestones)
    return {name: value for name, value in told.items() if value is not None}


def identity(record: Record, trace_id: str, labels: TaskLabels, variant: str) -> dict[str, Attribute]:
    """Say which run it is: its task and variant as the metrics label them, and its id if that is no text of a span."""
    told: dict[str, Attribute] = {names.REACH_TASK: labels.name, names.REACH_VARIANT: variant}
    if _is_plain(record.run, trace_id):
        told[names.REACH_RUN_ID] = record.run
    return told


def _is_plain(run: str, trace_id: str) -> bool:
    """Say whether an id is made of the trace's own, or by :func:`reach_otel.run`; a conversation's may be anything."""
    head, _, tail = run.partition("-")
    return run == trace_id or (head == trace_id and bool(_SPAN_ID.fullmatch(tail))) or bool(_MADE_BY_US.fullmatch(run))


def findings(record: Record) -> tuple[str, ...]:
    """Name the kinds of finding of a run, each once, in order of first sight."""
    found = (one.finding if one.finding in names.FINDINGS else OTHER for one in record.findings)
    return tuple(dict.fromkeys(found))


def has_task(labels: TaskLabels) -> bool:
    """Say whether these are the labels of a task that is loaded."""
    return labels.name != names.UNMATCHED


def _among(name: str, *holds: bool) -> str:
    """Take the first label whose condition holds, else the last."""
    labels = LABELS[name]
    return next((label for label, held in zip(labels, holds, strict=False) if held), labels[-1])


def _of_depth(record: Record) -> str:
    must = _must(record)
    if not must:
        end = "an output was given and no trap was hit" if record.scores.depth >= 1.0 else "no output was given"
        return f"no must-milestone; {_traps(record) or end}"
    told = f"{sum(m.state == 'reached' for m in must)} of {len(must)} must-milestones reached"
    for state in ("passed", "missed"):
        if left := [_with_reason(m) for m in must if m.state == state]:
            told += f"; {state}: {_list(left)}"
    return told


def _of_purity(record: Record) -> str:
    total = sum(record.actions.values())
    if not total:
        return "no action"
    told = f"{record.actions.get('effective', 0)} of {total} actions effective"
    for klass in CLASSES[1:]:
        if number := record.actions.get(klass, 0):
            told += f"; {number} {klass}"
    return told


def _of_digestion(record: Record) -> str:
    obstacles = record.obstacles
    told = f"{sum(o.digested for o in obstacles)} of {len(obstacles)} obstacles digested"
    left = [
        (o.kind if o.kind in OBSTACLE_KINDS else OTHER) + (f" at {o.milestone}" if o.milestone else "")
        for o in obstacles
        if not o.digested
    ]
    return f"{told}; undigested: {_list(left)}" if left else told


def _of_score(record: Record) -> str:
    scores = record.scores
    digestion = "no obstacle" if scores.digestion is None else f"digestion {scores.digestion:.3g}"
    told = _traps(record) or f"depth {scores.depth:.3g}; purity {scores.purity:.3g}; {digestion}"
    if record.high_risk and scores.high_layer is not None:
        told += f"; high-layer reach {scores.high_layer:.3g} is below {HIGH_RISK_BELOW:g}"
    return told


def _of_high_layer(record: Record) -> str:
    must = _must(record)
    deepest = max((m.layer for m in must), default=0)
    reached = [m.state == "reached" for m in must if m.layer == deepest]
    return f"{sum(reached)} of {len(reached)} must-milestones of layer {deepest} reached"


def _must(record: Record) -> list[MilestoneRecord]:
    return [m for m in record.milestones if m.type == "must"]


def _traps(record: Record) -> str:
    traps = list(dict.fromkeys(trap.id for trap in record.traps))
    return f"trap hit: {_list(traps)}" if traps else ""


def _with_reason(milestone: MilestoneRecord) -> str:
    return f"{milestone.id} ({milestone.reason})" if milestone.reason in _MILESTONE_REASONS else milestone.id


def _ids(milestones: Iterable[MilestoneRecord], state: str) -> tuple[str, ...]:
    return tuple(m.id for m in milestones if m.state == state)


def _list(items: list[str]) -> str:
    more = len(items) - NAMES_MAX
    return ", ".join(items[:NAMES_MAX]) + (f" and {more} more" if more > 0 else "")
