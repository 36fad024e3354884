"""Several scorers behind the real Collector: they add up to one, and nothing is lost when one of them dies."""

from __future__ import annotations

import os
import random
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reach_otel.engine.store import Limits
from reach_otel.offline.replay import replay
from reach_otel.task import load
from tests.e2e.test_kill import TASK, TOOLS, asked, parts_of, watch_verdicts
from tests.support import recordings
from tests.support.collector import Collector, until
from tests.support.fleet import Fleet, counted
from tests.support.otlp import Trace, attribute, write_lines
from tests.support.service import Served
from tools.stack.process import Part

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

SEED = 20_261_130
LOADERS = 8
KILLS = 4
IDLE_SECONDS = 3
FREEZES = 5
SETTLED = ("--set", "parent_wait=0.1")  # runs without a root are scored as by a scorer that has been there for long
BEGAN_BEFORE = 'reach_scorer_incomplete_runs_total{reason="began_before"}'


@pytest.fixture
def task(tmp_path: Path) -> Path:
    file = tmp_path / "shop.task.yaml"
    file.write_text(TASK, encoding="utf-8")
    return file


@pytest.fixture
def queue(tmp_path: Path) -> Path:
    """Give the Collector a folder of its own."""
    folder = tmp_path / "collector"
    folder.mkdir()
    return folder


def begin(n: int) -> Trace:
    """Begin a run now: its first call is over."""
    trace = Trace(f"run-{n}")
    trace.offset_ns = time.time_ns()
    call(trace, n, 0)
    return trace


def go_on(trace: Trace, n: int) -> Trace:
    """Make the rest of a run, which ends now; run ``n`` reaches ``n % 4`` milestones."""
    trace.cursor = max(trace.cursor, (time.time_ns() - trace.offset_ns) / 1e9)
    for i in range(1, len(TOOLS)):
        call(trace, n, i)
    return trace.end(user=f"handle {n}", says=f"handled {n}")


def call(trace: Trace, n: int, i: int) -> None:
    trace.call(TOOLS[i], {"n": n, "i": i}, {"ok": i < n % 4, "n": n}, seconds=0.01)


def replayed(file: Path, traces: list[Trace], task: Path, limits: Limits | None = None) -> dict[str, dict[str, Any]]:
    """Give the record that each whole run deserves."""
    records = replay([write_lines(file, traces)], load([task]), steps=True, limits=limits)
    return {record.run: recordings.built(record) for record in records}


class Load:
    """Send runs through a Collector from several threads, in parts, the root in the last one, until stopped."""

    def __init__(self, collector: Collector) -> None:
        self.traces: list[Trace] = []
        self._collector = collector
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._send_runs, daemon=True) for _ in range(LOADERS)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> list[Trace]:
        """Finish the runs that were begun, and end; gives all runs, each of which was acknowledged in full."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive()
        return self.traces

    def _send_runs(self) -> None:
        while not self._stopping.is_set():
            with self._lock:
                n = len(self.traces)
                trace = go_on(begin(n), n)
                self.traces.append(trace)
            whole = trace.spans
            for part in parts_of(trace, random.Random(n)):
                self._collector.send("traces", part)
                time.sleep(0.05)
            trace.spans = whole


def attempts(fleet: Fleet) -> Counter[str]:
    """Count the verdicts that all scorers together tried to write, by run."""
    return Counter(run for scorer in fleet.scorers for (run,) in asked(scorer.database, "SELECT run FROM attempts"))


def mistakes(fleet: Fleet, wanted: dict[str, dict[str, Any]]) -> list[str]:
    """Compare every verdict of every scorer with a replay."""
    pairs = zip(fleet.scorers, fleet.verdicts(), strict=True)
    return [line for scorer, runs in pairs for line in recordings.wrong(scorer, runs, wanted)]


def assert_once_and_right(fleet: Fleet, wanted: dict[str, dict[str, Any]]) -> None:
    """Wait for a verdict on every run; each is given once, by one scorer, and is that of a replay."""
    recordings.wait_for_all(fleet.scorers, len(wanted))
    time.sleep(1.0)  # a second one would come now
    assert attempts(fleet) == dict.fromkeys(wanted, 1)
    assert all(fleet.verdicts())
    found = mistakes(fleet, wanted)
    assert not found, "\n".join(found[:40])


def test_two_scorers_count_what_one_counts(tmp_path: Path, queue: Path) -> None:
    """Every counter and bucket of two scorers adds up to that of one with the same spans, and both have a share."""
    one = tmp_path / "one"
    one.mkdir()
    wanted = recordings.expected()
    with (
        Served(one, "--grpc-port", "0", *recordings.FLAGS) as single,
        Fleet(tmp_path, *recordings.FLAGS) as fleet,
        Collector(one, "single.yaml", scorers=[single.grpc]) as before_one,
        Collector(queue, "scaled.yaml", scorers=fleet.addresses(2)) as before_two,
    ):
        recordings.send_all(before_one.send)
        recordings.send_all(before_two.send)
        recordings.wait_for_all([single], len(wanted))
        recordings.wait_for_all(fleet.scorers, len(wanted))
        of_one, of_two = counted([single]), counted(fleet.scorers)
        shares = fleet.verdicts()
        found = mistakes(fleet, wanted)
    assert sum(value for name, value in of_one.items() if name.startswith("reach_runs_total")) == len(wanted)
    assert of_two == pytest.approx(of_one)
    assert sorted(run for share in shares for run in share) == sorted(wanted)
    assert min(map(len, shares)) > len(wanted) / 5
    assert not found, "\n".join(found[:40])


def test_a_scorer_that_is_killed_and_restarted_loses_nothing(tmp_path: Path, queue: Path, task: Path) -> None:
    """Over several deaths of one of two scorers under load each run gets one verdict, and the right one."""
    chance = random.Random(SEED)
    with (
        Fleet(tmp_path, "--task", str(task), "--set", "show_content=on") as fleet,
        Collector(queue, "scaled.yaml", scorers=fleet.addresses(2)) as collector,
    ):
        for scorer in fleet.scorers:
            watch_verdicts(scorer.database)
        running = Load(collector)
        for n in range(KILLS):
            time.sleep(chance.uniform(0.5, 1.5))
            fleet.kill(n % 2)
            time.sleep(chance.uniform(0.1, 3.0))
            fleet.restart(n % 2)
        traces = running.stop()
        wanted = replayed(tmp_path / "all.jsonl", traces, task)
        assert len(wanted) > 100 * KILLS
        assert_once_and_right(fleet, wanted)
        assert collector.waiting() == 0
        assert collector.metric("otelcol_loadbalancer_backend_outcome", 'success="false"') > 0


def test_a_collector_that_is_killed_and_restarted_delivers_what_it_acknowledged(
    tmp_path: Path, queue: Path, task: Path
) -> None:
    """What was acknowledged while a scorer was down survives the Collector's own death, and so does the rest."""
    with (
        Fleet(tmp_path, "--task", str(task), "--set", "show_content=on") as fleet,
        Collector(queue, "scaled.yaml", scorers=fleet.addresses(2)) as collector,
    ):
        for scorer in fleet.scorers:
            watch_verdicts(scorer.database)
        running = Load(collector)
        time.sleep(1.0)
        fleet.kill(0)
        time.sleep(2.0)
        assert collector.waiting() > 0
        for end in (Part.kill, Part.kill, Part.stop):
            end(collector.part)
            collector.start(fleet.addresses(2))
            time.sleep(1.0)
        fleet.restart(0)
        time.sleep(1.0)
        traces = running.stop()
        assert_once_and_right(fleet, replayed(tmp_path / "all.jsonl", traces, task))


def test_a_scorer_that_is_added_counts_the_runs_that_it_has_no_beginning_of(
    tmp_path: Path, queue: Path, task: Path
) -> None:
    """Named first and started then, a third scorer makes no wrong verdict: runs cut in two are counted, not scored."""
    under_way, later = 60, 60
    with (
        Fleet(tmp_path, "--task", str(task), "--set", "show_content=on", *recordings.TIMES, *SETTLED) as fleet,
        Collector(queue, "scaled.yaml", scorers=fleet.addresses(2)) as collector,
    ):

        def add() -> None:
            collector.part.stop()
            collector.start(fleet.addresses(3))
            fleet.add()

        traces = cut_in_two(collector, under_way, add)
        for n in range(under_way, under_way + later):
            traces.append(go_on(begin(n), n))
            collector.send("traces", traces[-1].line().encode())
        wanted = replayed(tmp_path / "all.jsonl", traces, task)
        recordings.wait_for_all(fleet.scorers, len(wanted))
        moved = counted(fleet.scorers[2:], health=True)[BEGAN_BEFORE]
        by_scorer = fleet.verdicts()
        abandoned = {
            run
            for scorer, runs in zip(fleet.scorers, by_scorer, strict=True)
            for run in runs
            if recordings.record_of(scorer, run)["outcome"] == "abandoned"
        }
        found = [line for line in mistakes(fleet, wanted) if line.split()[0] not in abandoned]
    cut = {trace.trace_id for trace in traces[:under_way]}
    assert under_way / 6 < moved < under_way / 2
    assert len(abandoned) == moved
    assert abandoned < cut
    assert set(by_scorer[2]) <= set(wanted) - cut
    assert len(by_scorer[2]) > later / 6
    assert not found, "\n".join(found[:40])


def cut_in_two(collector: Collector, count: int, between: Callable[[], None]) -> list[Trace]:
    """Send runs whose first part comes before something happens, and the rest after it."""
    traces = [begin(n) for n in range(count)]
    for trace in traces:
        collector.send("traces", trace.line().encode())
    until(lambda: collector.waiting() == 0, "the first part of each run")
    between()
    for n, trace in enumerate(traces):
        first, trace.spans = trace.spans, []
        collector.send("traces", go_on(trace, n).line().encode())
        trace.spans = first + trace.spans
    return traces


def test_a_lost_database_makes_no_wrong_verdict(tmp_path: Path, queue: Path, task: Path) -> None:
    """A scorer that comes back without its database counts the runs that were under way; those of the other go on."""
    with (
        Fleet(tmp_path, "--task", str(task), "--set", "show_content=on") as fleet,
        Collector(queue, "scaled.yaml", scorers=fleet.addresses(2)) as collector,
    ):

        def lose() -> None:
            fleet.kill(0)
            fleet.restart(0, new_database=True)

        traces = cut_in_two(collector, 40, lose)
        wanted = replayed(tmp_path / "all.jsonl", traces, task)
        until(lambda: len(fleet.verdicts()[1]) + lost(fleet) == len(traces), "all runs")
        found = mistakes(fleet, wanted)
        assert 0 < lost(fleet) < len(traces)
        assert fleet.verdicts()[0] == []
    assert not found, "\n".join(found[:40])


def test_a_scorer_that_is_removed_as_the_readme_says_makes_no_wrong_verdict(
    tmp_path: Path, queue: Path, task: Path
) -> None:
    """Removed while no scorer runs, and with a new database for the rest: all runs under way are counted."""
    with (
        Fleet(tmp_path, "--task", str(task), "--set", "show_content=on") as fleet,
        Collector(queue, "scaled.yaml", scorers=fleet.addresses(2)) as collector,
    ):

        def remove() -> None:
            for scorer in fleet.scorers:
                scorer.stop()
            collector.part.stop()
            collector.start(fleet.addresses(1))
            del fleet.scorers[1]
            fleet.restart(0, new_database=True)

        traces = cut_in_two(collector, 40, remove)
        whole = go_on(begin(len(traces)), len(traces))
        collector.send("traces", whole.line().encode())
        until(lambda: lost(fleet) == len(traces), "all runs that were under way")
        until(lambda: fleet.verdicts() == [[whole.trace_id]], "the run that began later")


def lost(fleet: Fleet) -> float:
    return counted(fleet.scorers, health=True)[BEGAN_BEFORE]


def test_a_full_queue_turns_senders_away_and_keeps_what_it_took(tmp_path: Path, queue: Path, task: Path) -> None:
    """With no scorer and no more room, senders are told to try again; what was acknowledged before is scored later."""
    with (
        Fleet(tmp_path, "--task", str(task), "--set", "show_content=on") as fleet,
        Collector(queue, "scaled.yaml", scorers=fleet.addresses(2), env={"QUEUE_BYTES": "400000"}) as collector,
    ):
        for n in range(2):
            watch_verdicts(fleet.scorers[n].database)
            fleet.kill(n)
        taken: list[Trace] = []
        while collector.ask("traces", (trace := go_on(begin(len(taken)), len(taken))).line().encode()) == 200:
            taken.append(trace)
            assert len(taken) < 1000
        assert collector.ask("traces", trace.line().encode()) == 503
        assert collector.waiting() > 390_000
        for n in range(2):
            fleet.restart(n)
        assert_once_and_right(fleet, replayed(tmp_path / "all.jsonl", taken, task))
        assert collector.ask("traces", trace.line().encode()) == 200


def test_conversations_of_several_traces_stay_together(tmp_path: Path, queue: Path, task: Path) -> None:
    """By conversation, all traces of one go to one scorer, which scores them as a replay of the whole does."""
    traces = list(conversations(30))
    limits = Limits(run_scope="conversation")
    wanted = replayed(tmp_path / "all.jsonl", traces, task, limits)
    assert len(wanted) == 30
    flags = ("--task", str(task), "--set", "show_content=on", "--set", "run_scope=conversation", *recordings.TIMES)
    with (
        Fleet(tmp_path, *flags) as fleet,
        Collector(queue, "scaled.yaml", "by-conversation.yaml", scorers=fleet.addresses(2)) as collector,
    ):
        for trace in traces:
            collector.send("traces", trace.line().encode())
        recordings.wait_for_all(fleet.scorers, len(wanted))
        shares = fleet.verdicts()
        found = mistakes(fleet, wanted)
    assert sorted(run for share in shares for run in share) == sorted(wanted)
    assert min(map(len, shares)) > 5
    assert not found, "\n".join(found[:40])


def conversations(count: int) -> Iterator[Trace]:
    """Make conversations of three turns, a trace each: the third turn reaches what the first two began."""
    for turn in range(3):
        for n in range(count):
            trace = Trace(f"conversation-{n}-turn-{turn}", offset_seconds=-3600 + 10 * n + turn)
            trace.call(TOOLS[turn], {"n": n}, {"ok": n % 4 > turn, "n": n})
            trace.end(user=f"turn {turn} of {n}", says="done")
            for span in trace.spans:
                span["attributes"].append(attribute("gen_ai.conversation.id", f"talk-{n}"))
            yield trace


def test_with_a_queue_of_its_own_a_scorer_that_is_away_holds_up_no_other(
    tmp_path: Path, queue: Path, task: Path
) -> None:
    """Behind a Collector each, one scorer goes on for as long as the other is away, and that one loses nothing."""
    own = [tmp_path / name for name in ("queue-1", "queue-2")]
    for folder in own:
        folder.mkdir()
    with (
        Fleet(tmp_path, "--task", str(task), "--set", "show_content=on") as fleet,
        Collector(own[0], "queue.yaml", scorers=fleet.addresses(2)[:1]) as first,
        Collector(own[1], "queue.yaml", scorers=fleet.addresses(2)[1:]) as second,
        Collector(queue, "scaled.yaml", scorers=[first.grpc, second.grpc]) as collector,
    ):
        for scorer in fleet.scorers:
            watch_verdicts(scorer.database)
        fleet.kill(0)
        running = Load(collector)
        time.sleep(6.0)
        before = len(recordings.verdicts(fleet.scorers[1]))
        time.sleep(3.0)
        assert len(recordings.verdicts(fleet.scorers[1])) > before > 0
        assert first.waiting() > 0
        assert collector.waiting() < first.waiting()
        fleet.restart(0)
        traces = running.stop()
        assert_once_and_right(fleet, replayed(tmp_path / "all.jsonl", traces, task))


def test_a_scorer_away_for_longer_than_idle_makes_the_others_abandon_their_open_runs(
    tmp_path: Path, queue: Path, task: Path
) -> None:
    """With one queue for all, just these runs are wrong: each is counted as abandoned, and the rest of it as late."""
    flags = ("--task", str(task), "--set", "show_content=on", "--set", f"idle={IDLE_SECONDS}", *SETTLED)
    with (
        Fleet(tmp_path, *flags) as fleet,
        Collector(queue, "scaled.yaml", scorers=fleet.addresses(2)) as collector,
    ):
        cut, whole = outlast_idle(fleet, collector)
        wanted = replayed(tmp_path / "all.jsonl", cut + whole, task)
        recordings.wait_for_all(fleet.scorers, len(wanted))
        until(lambda: collector.waiting() == 0, "all spans")
        held_up = {trace.trace_id: trace for trace in cut if trace.trace_id in fleet.verdicts()[1]}
        assert len(held_up) > len(cut) / 6
        assert {run: recordings.record_of(fleet.scorers[1], run)["outcome"] for run in held_up} == dict.fromkeys(
            held_up, "abandoned"
        )
        assert attempts(fleet) == dict.fromkeys(wanted, 1)
        found = [line for line in mistakes(fleet, wanted) if line.split()[0] not in held_up]
        runs, health = counted(fleet.scorers), counted(fleet.scorers[1:], health=True)
    assert not found, "\n".join(found[:40])
    of_abandoned = [value for name, value in runs.items() if re.match(r"reach_runs_total\{.*abandoned", name)]
    assert sum(of_abandoned) == len(held_up)
    late = health["reach_scorer_late_span_age_seconds_count"]
    assert late >= sum(len(trace.spans) - 1 for trace in held_up.values())
    assert health[BEGAN_BEFORE] == 0


def test_with_a_queue_of_its_own_a_scorer_abandons_no_run_however_long_another_is_away(
    tmp_path: Path, queue: Path, task: Path
) -> None:
    """In the same plight, but with a Collector for each scorer, every run of both is right."""
    own = [tmp_path / name for name in ("queue-1", "queue-2")]
    for folder in own:
        folder.mkdir()
    with (
        Fleet(tmp_path, "--task", str(task), "--set", "show_content=on", "--set", f"idle={IDLE_SECONDS}") as fleet,
        Collector(own[0], "queue.yaml", scorers=fleet.addresses(2)[:1]) as first,
        Collector(own[1], "queue.yaml", scorers=fleet.addresses(2)[1:]) as second,
        Collector(queue, "scaled.yaml", scorers=[first.grpc, second.grpc]) as collector,
    ):
        cut, whole = outlast_idle(fleet, collector, first, second)
        assert_once_and_right(fleet, replayed(tmp_path / "all.jsonl", cut + whole, task))


def outlast_idle(fleet: Fleet, *collectors: Collector) -> tuple[list[Trace], list[Trace]]:
    """Kill the first scorer in the midst of runs that then go on without a pause, and start it again after `idle`.

    Gives those runs, and some that came whole just after the kill.
    """
    for scorer in fleet.scorers:
        watch_verdicts(scorer.database)
    cut = [begin(n) for n in range(30)]
    for trace in cut:
        collectors[0].send("traces", trace.line().encode())
    until(lambda: not any(collector.waiting() for collector in collectors), "the first part of each run")
    fleet.kill(0)
    whole = [go_on(begin(n), n) for n in range(len(cut), len(cut) + 10)]
    for trace in whole:
        collectors[0].send("traces", trace.line().encode())
    time.sleep(0.5)  # these are under way now: what comes next waits behind them
    for n, trace in enumerate(cut):
        first, trace.spans = trace.spans, []
        collectors[0].send("traces", go_on(trace, n).line().encode())
        trace.spans = first + trace.spans
    time.sleep(IDLE_SECONDS + 1)
    fleet.restart(0, "--set", "idle=60")  # its own runs are open until the Collector has found it again
    return cut, whole


def test_a_scorer_that_does_not_answer_lets_no_span_overtake_another(tmp_path: Path, queue: Path, task: Path) -> None:
    """A request that waits for a scorer that hangs holds back later ones, so that no run ends before its beginning."""
    traces: list[Trace] = []
    with (
        Fleet(tmp_path, "--task", str(task), "--set", "show_content=on", "--set", "grace=0.5") as fleet,
        Collector(queue, "scaled.yaml", scorers=fleet.addresses(2)) as collector,
    ):
        for scorer in fleet.scorers:
            watch_verdicts(scorer.database)
        for _ in range(FREEZES):
            os.kill(fleet.scorers[0].process.pid, signal.SIGSTOP)
            begun = {n: begin(n) for n in range(len(traces), len(traces) + 20)}
            for n, trace in begun.items():
                collector.send("traces", trace.line().encode())
                time.sleep(0.3 if n % 10 == 9 else 0)  # two batches, and two more for the rest
            for n, trace in reversed(begun.items()):  # whichever run leads a batch has its scorer asked first
                first, trace.spans = trace.spans, []
                collector.send("traces", go_on(trace, n).line().encode())
                trace.spans = first + trace.spans
                time.sleep(0.3 if n % 10 == 0 else 0)
            time.sleep(1.0)  # twice `grace`
            os.kill(fleet.scorers[0].process.pid, signal.SIGCONT)
            traces += begun.values()
            until(lambda: collector.waiting() == 0, "all spans of this time")
        assert_once_and_right(fleet, replayed(tmp_path / "all.jsonl", traces, task))
