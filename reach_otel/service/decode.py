"""Turn the body of an OTLP request into steps: read, normalise, mask, and write for the journal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from reach_otel.errors import InputError
from reach_otel.service.journal_rows import Row, rows_of
from reach_otel.service.limits import Refused
from reach_otel.span import (
    Faults,
    Step,
    normalise,
    normalise_log,
    read_logs_json,
    read_logs_protobuf,
    read_spans_json,
    read_spans_protobuf,
)
from reach_otel.span.wire import read_varint

if TYPE_CHECKING:
    from reach_otel.span import LogRecord, Span

Signal = Literal["traces", "logs"]
Form = Literal["protobuf", "json"]

UNWRITABLE: Final = "unwritable"  # a value that no journal can hold

_SPANS: Final = {"json": read_spans_json, "protobuf": read_spans_protobuf}
_LOGS: Final = {"json": read_logs_json, "protobuf": read_logs_protobuf}


class Decoded(Struct, frozen=True):
    """What a body held: steps in order, the same as rows, and what was wrong with spans by reason."""

    steps: Sequence[Step]
    rows: Sequence[Row]
    faults: Faults
    rejected: int

    def complaint(self) -> str:
        """Say how many spans were left out, and why; empty when all were taken."""
        if not self.rejected:
            return ""
        reasons = ", ".join(
            f"{count} {reason}"
            for reason, count in sorted(self.faults.items())
            if reason in Faults.DROPPED or reason == UNWRITABLE
        )
        return f"left out: {reasons}"


class Decoder:
    """Decode bodies; holds no state, so that any thread may use it."""

    __slots__ = ("_keep_attributes", "_mask", "_spans_max", "_variant")

    def __init__(
        self,
        *,
        spans_max: int,
        keep_attributes: bool = False,
        mask: Callable[[Step], Step] | None = None,
        variant: str | None = None,
    ) -> None:
        """``variant`` is given to spans that do not say."""
        self._spans_max = spans_max
        self._keep_attributes = keep_attributes
        self._mask = mask
        self._variant = variant

    def decode(self, signal: Signal, form: Form, body: bytes) -> Decoded:
        """Decode one request.

        :raises Refused: 400 it cannot be read as that; 413 too many spans.
        """
        try:
            if form == "protobuf" and count_records(body, self._spans_max) > self._spans_max:
                raise self._too_many()
            items: Sequence[Span] | Sequence[LogRecord]
            items, faults = _SPANS[form](body) if signal == "traces" else _LOGS[form](body)
        except InputError as error:
            raise Refused(400, str(error)) from None
        if len(items) + faults.dropped > self._spans_max:
            raise self._too_many()
        steps = self._masked(self._steps(items))
        try:
            rows = rows_of(steps)
        except InputError:
            steps, rows = _writable(steps, faults)
        return Decoded(steps, rows, faults, faults.dropped + faults[UNWRITABLE])

    def _steps(self, items: Iterable[Span | LogRecord]) -> list[Step]:
        steps: list[Step] = []
        for item in items:
            if hasattr(item, "start_ns"):
                steps += normalise(item, keep_attributes=self._keep_attributes)  # type: ignore[arg-type]
            else:
                steps += normalise_log(item)
        return steps

    def _masked(self, steps: list[Step]) -> list[Step]:
        if self._variant is not None:
            steps = [step if step.variant else replace(step, variant=self._variant) for step in steps]
        return steps if self._mask is None else list(map(self._mask, steps))

    def _too_many(self) -> Refused:
        return Refused(413, f"there are more than {self._spans_max} spans or records in one request")


def _writable(steps: Sequence[Step], faults: Faults) -> tuple[list[Step], list[Row]]:
    """Leave out the steps that cannot be journalled: what is acknowledged must survive."""
    good: list[Step] = []
    for step in steps:
        try:
            rows_of((step,))
        except InputError:
            faults[UNWRITABLE] += 1
        else:
            good.append(step)
    return good, rows_of(good)


def count_records(body: bytes, enough: int) -> int:
    """Count the spans or log records of a protobuf request without building them, until there are more than ``enough``.

    A few bytes of a hostile body can stand for a record each, and every one would take a hundred times its size. What
    cannot be followed is left to the reader to refuse.
    """
    count = 0
    try:
        for resource_at, resource_end in _messages(body, 0, len(body), b"\x0a"):
            for scope_at, scope_end in _messages(body, resource_at, resource_end, b"\x12"):
                at = scope_at
                while at < scope_end:  # written out, as it runs once a span
                    if body[at] != 0x12:
                        at = _skip(body, at)
                        continue
                    count += 1
                    at += 1
                    length = body[at]
                    if length < 0x80:
                        at += 1 + length
                    else:
                        length, at = read_varint(body, at)
                        at += length
                if count > enough:
                    return count
    except (IndexError, ValueError):
        pass
    return count


def _messages(body: bytes, at: int, end: int, tag: bytes) -> Iterable[tuple[int, int]]:
    wanted = tag[0]
    while at < end:
        if body[at] == wanted:
            length, start = read_varint(body, at + 1)
            at = start + length
            yield start, min(at, end)
        else:
            at = _skip(body, at)


def _skip(body: bytes, at: int) -> int:
    tag, at = read_varint(body, at)
    kind = tag & 7
    if kind == 2:
        length, at = read_varint(body, at)
        return at + length
    if kind == 0:
        return read_varint(body, at)[1]
    if kind in (1, 5):
        return at + (8 if kind == 1 else 4)
    raise ValueError(kind)
