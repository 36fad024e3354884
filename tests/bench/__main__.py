"""Measure speed and memory, and print one Markdown table: ``python -m tests.bench [--quick]``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

from tests.bench import agent_thread, growth, latency, memory, service_http, service_path


@dataclass(frozen=True)
class Row:
    """Hold one line of the table."""

    what: str
    measured: str
    goal: str
    met: bool


def rows(*, quick: bool = False) -> Iterator[Row]:
    """Measure everything, one row after the other; ``quick`` only shows that it works."""
    added = agent_thread.measure(rounds=3) if quick else agent_thread.measure()
    yield Row(
        "work added per span on the agent's thread, against BatchSpanProcessor",
        f"{added.ratio:.2f} ({added.reach_us:.2f} µs against {added.batch_us:.2f} µs)",
        f"≤ {agent_thread.GOAL}",
        added.ratio <= agent_thread.GOAL,
    )
    paths = service_path.measure(runs=20, rounds=1) if quick else service_path.measure()
    for what, ratio, micros in paths:
        yield Row(
            f"read + normalise + fold + publish, against bare decode and walk: {what}",
            f"{ratio:.2f} ({micros:.1f} µs a span, {1e6 / micros:,.0f} spans/s)",
            f"≥ {service_path.GOAL}",
            ratio >= service_path.GOAL,
        )
    lengths = growth.by_length(lengths=(10, 50), steps=400, rounds=1) if quick else growth.by_length()
    for actions, micros, ratio in lengths:
        yield _growth(f"fold + publish a span, {actions:,} actions a run", micros, ratio)
    sizes = growth.by_milestones(sizes=(5, 20), steps=400, rounds=1) if quick else growth.by_milestones()
    for milestones, micros, ratio in sizes:
        yield _growth(f"fold + publish a span, {milestones} milestones", micros, ratio)
    held = memory.measure(runs=500) if quick else memory.measure()
    yield Row(
        f"resident memory of {held.runs:,} open runs with {held.actions} actions and content each",
        f"{held.mib:.0f} MiB ({held.mib * 1024 / held.runs:.1f} KiB a run)",
        f"≤ {memory.GOAL_MIB} MiB",
        held.mib <= memory.GOAL_MIB,
    )
    late = latency.measure(runs=1, grace_seconds=0.1) if quick else latency.measure()
    yield Row(
        "root end to verdict in /metrics, beyond grace",
        f"{late:.0f} ms",
        f"≤ {latency.GOAL_MS:.0f} ms",
        late <= latency.GOAL_MS,
    )

    yield from _service(quick=quick)


def _service(*, quick: bool) -> Iterator[Row]:
    """Measure the service as a process of its own."""
    rate = service_http.rate(runs=50, rounds=1) if quick else service_http.rate()
    yield Row(
        "service over loopback with its journal, against bare decode and walk (processor time)",
        f"{rate.ratio:.2f} ({rate.micros:.0f} µs a span; {rate.spans_a_second:,.0f} spans/s arrived)",
        f"≥ {service_http.GOAL}",
        rate.ratio >= service_http.GOAL,
    )
    late = service_http.latency(runs=1, grace_seconds=0.1) if quick else service_http.latency()
    yield Row(
        "service: root's arrival to verdict in /metrics, beyond grace",
        f"{late:.0f} ms",
        f"≤ {service_http.GOAL_MS:.0f} ms",
        late <= service_http.GOAL_MS,
    )
    held = service_http.memory(runs=500) if quick else service_http.memory()
    yield Row(
        f"service: resident memory of {held.runs:,} open runs with {held.actions} actions and content each",
        f"{held.mib:.0f} MiB ({held.mib * 1024 / held.runs:.1f} KiB a run)",
        f"≤ {service_http.GOAL_MIB} MiB",
        held.mib <= service_http.GOAL_MIB,
    )


def _growth(what: str, micros: float, ratio: float) -> Row:
    return Row(what, f"{ratio:.2f} × the smallest ({micros:.1f} µs)", f"≤ {growth.GOAL}", ratio <= growth.GOAL)


def main() -> None:
    """Print the table as it is measured."""
    parser = argparse.ArgumentParser(description="Measure speed and memory.")
    parser.add_argument("--quick", action="store_true", help="small sizes: see that it works, mind no figure")
    quick = parser.parse_args().quick
    print("| what | measured | goal | met |\n|---|---|---|---|", flush=True)
    for row in rows(quick=quick):
        print(f"| {row.what} | {row.measured} | {row.goal} | {'yes' if row.met else 'no'} |", flush=True)


if __name__ == "__main__":
    main()
