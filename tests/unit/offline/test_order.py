"""Records in order of start, however many they are."""

from __future__ import annotations

from reach_otel.offline.order import ByStart
from tests.unit.offline.records import record


def test_records_come_back_by_start_then_run() -> None:
    """Whole and fractional seconds sort by time, not by the letter after them."""
    starts = {
        "d": "2026-11-30T08:00:01Z",
        "b": "2026-11-30T08:00:00Z",
        "c": "2026-11-30T08:00:00.250000Z",
        "a": "2026-11-30T08:00:00Z",
    }
    with ByStart() as records:
        for run, start in starts.items():
            records.add(record(run, start=start))
        assert [r.run for r in records] == ["a", "b", "c", "d"]


def test_what_does_not_fit_into_memory_comes_back_the_same() -> None:
    kept = [record(f"{i:04d}", task=f"task-{i % 3}") for i in range(200)]
    with ByStart(memory_bytes_max=10_000) as records:
        for each in reversed(kept):
            records.add(each)
        assert len(records) == 200
        assert list(records) == kept
        assert list(records) == kept, "a second look gives the same"
