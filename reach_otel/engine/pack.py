"""Pack a run that has been silent for long into a few bytes, and unpack it when something arrives (SPEC 18).

Most open runs wait for a model or a person. All that a run shows follows from its steps, so these are what a packed run
keeps; the first look after unpacking folds them anew.
"""

from __future__ import annotations

import zlib
from collections import Counter

import msgspec
from msgspec import Struct

from reach_otel.engine.beside import Beside
from reach_otel.engine.choose import Evidence
from reach_otel.engine.events import RunSummary
from reach_otel.engine.plan import Plan
from reach_otel.engine.run import Run
from reach_otel.span.step import Step

LEVEL = 1  # of compression: messages repeat one another, so the fastest does most of what can be done

Contents = tuple[list[Step], dict[str, str | None], dict[str, bool]]  # steps, parents of all spans, tops of the tree

_encoder = msgspec.msgpack.Encoder()
_steps_of = msgspec.msgpack.Decoder(Contents)
_summary_of = msgspec.msgpack.Decoder(RunSummary)


class PackedRun(Struct, frozen=True, gc=False):
    """A run at rest; what is asked of it often stays at hand."""

    id: str
    trace_id: str
    plan: Plan
    evidence: Evidence
    beside: Beside
    is_over: bool
    due_ns: int
    faults_told: Counter[str]
    shown: bytes  # its summary
    steps: bytes

    def summary(self) -> RunSummary:
        """Show the run in small, as it was when it was packed."""
        return _summary_of.decode(self.shown)


def pack(run: Run) -> PackedRun | None:
    """Pack a run; ``None`` for one that holds a value with no plain form, or that cannot be folded."""
    try:
        shown = _encoder.encode(run.summary())
        contents = _encoder.encode((list(run.steps.values()), run.tree.parents, run.tree.tops))
        _steps_of.decode(contents)
    except Exception:  # noqa: BLE001 - values are of any kind; what is wrong with the run shows at its verdict
        return None
    return PackedRun(
        id=run.id,
        trace_id=run.trace_id,
        plan=run.plan,
        evidence=run.evidence,
        beside=run.beside,
        is_over=run.is_over,
        due_ns=run.due_ns,
        faults_told=run.faults_told,
        shown=shown,
        steps=zlib.compress(contents, LEVEL),
    )


def unpack(packed: PackedRun, actions_max: int) -> Run:
    """Bring a run back as it was."""
    steps, parents, tops = _steps_of.decode(zlib.decompress(packed.steps))
    run = Run(packed.id, packed.trace_id, packed.plan, actions_max)
    run.evidence = packed.evidence
    run.beside = packed.beside
    run.due_ns = packed.due_ns
    run.faults_told = packed.faults_told
    run.restore(steps, parents, tops)
    return run
