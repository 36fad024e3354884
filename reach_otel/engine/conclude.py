"""Write the record of one run: what its fold, its final output and the end say together (SPEC 5.5, 9.1, 20)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from msgspec.structs import replace

from reach_otel import names
from reach_otel.engine import levels
from reach_otel.engine.cost import cost_of
from reach_otel.engine.fold import Finding
from reach_otel.engine.progress import Mark, Progress
from reach_otel.engine.record import (
    FindingRecord,
    MilestoneRecord,
    ObstacleRecord,
    Outcome,
    Record,
    StepRecord,
    TrapRecord,
)
from reach_otel.engine.run import Run, step_key
from reach_otel.engine.scope import plain_id
from reach_otel.engine.scores import HIGH_RISK_BELOW, score
from reach_otel.engine.tokens import share_tokens
from reach_otel.span.step import ACTION_KINDS, Step

if TYPE_CHECKING:
    from reach_otel.engine.action import Action


def conclude(run: Run, *, final: bool, steps: bool = False, evicted: bool = False) -> Record:
    """Write the record of a run as it stands; ``final``: nothing more will come. Leaves the run as it was."""
    run.settle(final=final)
    run.name_agents(run.assembly.actions)
    fold = run.fold
    ordered = sorted(run.steps.values(), key=step_key)
    over = run.is_over
    spoke = final_speaker(run, ordered) if final or over else None
    output = spoke.output if spoke is not None else None
    progress = _with_output(fold.progress, output, fold.actions)
    trapped = bool(fold.traps)
    scores = score(progress, fold.classes, has_output=output is not None, trapped=trapped)
    findings = [*fold.findings, *_unused(progress, ended=final or over)]
    content = _content(run, ordered)
    verdicts, break_point = levels.judge(
        levels.Evidence(
            progress=progress,
            actions=run.assembly.actions,
            findings=findings,
            planned=" ".join(str(s.plan) for s in ordered if s.kind == "plan"),
            output=output,
            has_content=content != "missing",
        )
    )
    if verdicts["L4"].reason == names.HALLUCINATED_SUCCESS:
        findings.append(_hallucinated(progress, spoke))
    tokens = share_tokens(ordered, run.assembly, run.tree)
    outcome: Outcome = "running"
    if final:
        complete = bool(scores.coverage)
        outcome = (
            "evicted"
            if evicted
            else _outcome(run, progress, complete=complete, delivered=verdicts["L4"].passed, over=over)
        )
    conversation = run.evidence.conversation
    return Record(
        run=run.id,
        trace_id=_trace_id(run),
        conversation_id=conversation[1] if conversation else None,
        task=run.plan.task.name,
        agent=run.agent,
        variant=run.variant,
        final=final,
        start=_time(run.started_ns),
        duration_seconds=max(0, run.latest_ns - run.started_ns) / 1e9,
        content=content,
        outcome=outcome,
        scores=scores,
        high_risk=scores.high_layer is not None and scores.high_layer < HIGH_RISK_BELOW,
        milestones=_milestones(progress, run.started_ns),
        traps=tuple(TrapRecord(run.plan.task.traps[t.index].id, t.n, plain_id(t.span_id)) for t in fold.traps),
        obstacles=_obstacles(progress),
        findings=tuple(
            FindingRecord(f.finding, f.action, f.detail, plain_id(f.span_id) if f.span_id else None) for f in findings
        ),
        levels=verdicts,
        break_point=break_point,
        actions=dict(fold.classes),
        tokens=tokens,
        utilisation=tokens.effective / tokens.total if tokens.total else None,
        cost_dollars=cost_of(ordered, run.tree),
        steps=_steps(run, ordered) if steps else None,
    )


def _trace_id(run: Run) -> str:
    """Name the trace of the earliest step; a run may hold several traces."""
    return min(run.steps.values(), key=lambda s: (s.start_ns, s.trace_id, s.span_id)).trace_id


def final_speaker(run: Run, ordered: Sequence[Step]) -> Step | None:
    """Find who said what the run gave in the end: the outermost agent that ended last, else who spoke last.

    An agent whose parent was never seen may have been an inner one: one with nothing above it goes first.
    """
    tree = run.tree
    for agent in (*reversed(tree.outer_by_end()), *reversed(tree.line_agents())):
        if agent.output is not None:
            return agent
    for step in reversed(ordered):
        spoke = step.kind in ("model", "content") and step.output is not None and not step.calls
        if spoke and run.tree.tool_above(step.span_id) is None:
            return step
    return None


def _with_output(progress: Progress, output: str | None, actions: int) -> Progress:
    if output is None or not progress.uses:
        return progress
    progress = progress.copy()
    progress.use_in_output(output, Mark(actions, 0, ""))
    return progress


def _unused(progress: Progress, *, ended: bool) -> list[Finding]:
    """Flag results that nobody used; only the end can tell."""
    if not ended:
        return []
    found = []
    for index in sorted(progress.uses):
        milestone, mark = progress.plan.task.milestones[index], progress.held[index]
        detail = f"result of {milestone.id} was not used"
        found.append(Finding(names.UNUSED, mark.n if mark else None, detail, mark.span_id if mark else None))
    return found


def _hallucinated(progress: Progress, spoke: Step | None) -> Finding:
    """Flag a final output that claims what was not done. It is no action, so only its span is named."""
    missing = len(progress.plan.must) - progress.reached_must
    detail = f"success is claimed, {missing} of {len(progress.plan.must)} must-milestones are not reached"
    # Text that came in a log record has an id made of its span's.
    return Finding(names.HALLUCINATED_SUCCESS, None, detail, spoke.span_id.partition("#")[0] if spoke else None)


def _content(run: Run, ordered: Sequence[Step]) -> Literal["full", "partial", "missing"]:
    """Say how much of the content was captured: nothing, everything that counts, or only some."""
    actions = [a for a in run.assembly.actions if a.kind != "handoff"]  # many of these carry nothing
    bare = sum(not (a.has_args or a.has_result) for a in actions)
    told = any(s.texts or s.output is not None or s.calls for s in ordered if s.kind not in ACTION_KINDS)
    if bare == len(actions) and not told:
        return "missing"
    return "partial" if bare else "full"


def _outcome(run: Run, progress: Progress, *, complete: bool, delivered: bool, over: bool) -> Outcome:
    """Judge the outcome (SPEC 9.1); what the agent claims of itself never counts."""
    if not over and not run.tree.agents:
        return "abandoned"
    if run.fold.traps:
        return "failed"
    if not progress.plan.matched:
        return "success" if _ended_well(run) else "failed"
    if complete and _ended_well(run) and delivered:
        return "success"
    return "partial" if progress.reached_must else "failed"


def _ended_well(run: Run) -> bool:
    """Say whether the outermost agent, and the one that worked last, ended without an error."""
    outer = run.tree.outer_agents()
    if not outer:
        return all(run.tree.tops.values())
    return outer[-1].ok and run.tree.line_agents()[-1].ok


def _milestones(progress: Progress, started_ns: int) -> tuple[MilestoneRecord, ...]:
    records = []
    for milestone in progress.plan.task.milestones:
        state, reason, mark = progress.state(milestone.index)
        records.append(
            MilestoneRecord(
                id=milestone.id,
                type=milestone.type,
                layer=milestone.layer,
                state=state,
                reason=reason,
                action=mark.n if mark else None,
                seconds=max(0, mark.at_ns - started_ns) / 1e9 if mark else None,
                span_id=plain_id(mark.span_id) if mark else None,
            )
        )
    return tuple(records)


def _obstacles(progress: Progress) -> tuple[ObstacleRecord, ...]:
    milestones = progress.plan.task.milestones
    return tuple(
        ObstacleRecord(
            kind=o.kind,
            tool=o.tool,
            milestone=milestones[o.milestone].id if o.milestone is not None else None,
            action=o.action,
            retries=o.retries,
            digested=progress.obstacles.is_digested(o),
        )
        for o in progress.obstacles.all
    )


def _steps(run: Run, ordered: Sequence[Step]) -> tuple[StepRecord, ...]:
    """Write the normalised steps in order: actions as they were counted, all others as they came."""
    entries = [(action.key, _action_record(action)) for action in run.assembly.actions]
    entries += [
        ((*step_key(step), 0), _step_record(step, run))
        for step in ordered
        if step.kind not in ACTION_KINDS and step.kind != "content"
    ]
    entries.sort(key=lambda entry: entry[0])
    return tuple(replace(record, n=n) for n, (_, record) in enumerate(entries, 1))


def _action_record(action: Action) -> StepRecord:
    return StepRecord(
        n=0,
        kind=action.kind,
        agent=action.agent,
        tool=action.tool,
        call_id=action.call_id,
        args=action.args,
        result=action.result,
        ok=action.ok,
        error=action.error,
        start=_time(action.start_ns),
        seconds=action.seconds,
        span_id=plain_id(action.span_id),
        derived=action.derived,
        klass=action.klass,
    )


def _step_record(step: Step, run: Run) -> StepRecord:
    result: Any = step.plan if step.kind == "plan" else step.output
    return StepRecord(
        n=0,
        kind=step.kind,
        agent=run.agent_of(step),
        tool=None,
        call_id=None,
        args=None,
        result=result,
        ok=step.ok,
        error=step.error,
        start=_time(step.start_ns),
        seconds=max(0, step.end_ns - step.start_ns) / 1e9,
        span_id=plain_id(step.span_id),
        derived=False,
        klass=None,
    )


def _time(ns: int) -> str:
    """Spell a Unix time in nanoseconds as RFC 3339 in UTC, with microseconds."""
    try:
        return datetime.fromtimestamp(ns / 1e9, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return "1970-01-01T00:00:00.000000Z"
