"""Play a long seeded history of agent runs, with faults on the way, against an engine and check all it says.

Spans are told by random stories, and then suffer: they are lost, repeated, delayed, swapped, carry wrong clocks or
huge content, and the engine is restarted. Every verdict must be what the plain model makes of exactly the
spans that had arrived; every run gets one; none before its time, and none too late.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from reach_otel.engine.store import Engine
from tests.property.plain_model import choose, model, modelled
from tests.support.compare import assert_same
from tests.support.engines import SECOND_NS, Driver
from tests.support.histories import make_run, make_task
from tests.support.steps import EPOCH_NS, TICK_NS

if TYPE_CHECKING:
    from reach_otel.span.step import Step

GRACE_SECONDS = 2.0
IDLE_SECONDS = 600.0
TICK_SECONDS = 1.0


@dataclass(frozen=True)
class Faults:
    """How often things go wrong, as chances a span (``skew``: a run; ``restart``: a second)."""

    lose: float = 0.01
    duplicate: float = 0.05
    delay: float = 0.03
    reorder: float = 0.2
    skew: float = 0.05
    huge: float = 0.01
    restart: float = 0.005


@dataclass
class History:
    """One history: ``runs`` runs, about ``rate`` of them starting each second."""

    seed: int
    runs: int
    rate: float = 2.0
    faults: Faults = Faults()
    make: Any = Engine
    queue: list[tuple[int, int, Step]] = field(default_factory=list)  # by time of arrival
    told: int = 0
    arrived: dict[str, list[Step]] = field(default_factory=dict)  # before the verdict, by trace
    latest_ns: dict[str, int] = field(default_factory=dict)
    judged: set[str] = field(default_factory=set)
    restarts: int = 0

    def play(self) -> None:
        """Play the history to its end; the first breach raises ``AssertionError``."""
        self.random = Random(self.seed)
        self.tasks = tuple(make_task(self.random, f"shop{n}", agent=agent) for n, agent in enumerate(("bot", "clerk")))
        self.driver = Driver(self.tasks, make=self.make)
        self.plan()
        while self.queue:
            self.tick()
        for _ in range(int(IDLE_SECONDS / 50) + 2):
            self.wait(50)
        self.check_verdicts()
        assert not self.driver.engine.runs()
        assert self.judged == {trace for trace, steps in self.arrived.items() if any(s.kind != "other" for s in steps)}

    # Making the history

    def plan(self) -> None:
        for run in range(1, self.runs + 1):
            begin_ns = int(self.random.random() * self.runs / self.rate * SECOND_NS)
            agent = self.random.choice(("bot", "bot", "clerk", "stranger"))
            first_tick = begin_ns // TICK_NS
            off_ns = 0  # how wrong the clock of the machine is on which this run's tools work
            if self.random.random() < self.faults.skew:
                off_ns = self.random.choice((-50, -3, 2, 100)) * TICK_NS
            for step in make_run(self.random, run, turns=10, agent=agent, start=first_tick):
                self.send(self.bend(step, off_ns))

    def bend(self, step: Step, off_ns: int) -> Step:
        """Let a clock or some content go wrong."""
        if step.kind == "tool" and off_ns:
            step = msgspec.structs.replace(step, start_ns=step.start_ns + off_ns, end_ns=step.end_ns + off_ns)
        if step.has_result and self.random.random() < self.faults.huge:
            step = msgspec.structs.replace(step, result={"page": "lorem ipsum " * 2000, "ref": "REF-102"})
        return step

    def send(self, step: Step) -> None:
        """Put a step on its way."""
        faults, random = self.faults, self.random
        if random.random() < faults.lose:
            return
        due_ns = (step.end_ns - EPOCH_NS) + SECOND_NS
        if random.random() < faults.reorder:
            due_ns += random.randrange(SECOND_NS // 2)
        if random.random() < faults.delay:
            due_ns += random.choice((1, 5, 60, 700)) * SECOND_NS
        copies = 2 if random.random() < faults.duplicate else 1
        for _ in range(copies):
            self.told += 1
            heapq.heappush(self.queue, (max(0, due_ns), self.told, step))
            due_ns += random.randrange(2 * SECOND_NS)

    # Playing it

    def tick(self) -> None:
        """Let a second go by: what is due arrives, in one batch or several."""
        now_ns = self.driver.now_ns + int(TICK_SECONDS * SECOND_NS)
        batch: list[Step] = []
        while self.queue and self.queue[0][0] <= now_ns:
            batch.append(heapq.heappop(self.queue)[2])
            if self.random.random() < 0.1:
                self.feed(batch)
                batch = []
        self.feed(batch)
        self.wait(TICK_SECONDS)
        if self.random.random() < self.faults.restart:
            self.restart()

    def feed(self, batch: list[Step]) -> None:
        kept = [step for step in batch if step.trace_id not in self.judged or not self.restarts]
        for step in kept:
            known = self.arrived.setdefault(step.trace_id, [])
            if step.trace_id not in self.judged and step not in known:
                known.append(step)
                self.latest_ns[step.trace_id] = self.driver.now_ns
        self.driver.feed(kept)
        self.check_verdicts()

    def wait(self, seconds: float) -> None:
        self.driver.wait(seconds)
        self.check_verdicts()
        for run in self.driver.engine.runs():
            quiet = (self.driver.now_ns - self.latest_ns[run.trace_id]) / SECOND_NS
            assert quiet < IDLE_SECONDS + seconds, f"run {run.run_id} is open after {quiet} s of silence"

    def restart(self) -> None:
        """Start a new engine and give it what a journal would: the spans of runs that have no verdict yet."""
        self.restarts += 1
        old, self.driver = self.driver, Driver(self.tasks, make=self.make)
        self.driver.now_ns = old.now_ns
        for trace, steps in self.arrived.items():
            if trace not in self.judged:
                self.latest_ns[trace] = self.driver.now_ns
                self.driver.feed(steps)
        self.check_verdicts()

    # Checking what is said

    def check_verdicts(self) -> None:
        for run_id, record in self.driver.records.items():
            trace = record["trace_id"]
            if trace not in self.judged:
                self.judged.add(trace)
                self.check(run_id, record)

    def check(self, run_id: str, record: dict[str, Any]) -> None:
        """Hold one verdict to the plain model, and its time to the rules."""
        steps = self.arrived[record["trace_id"]]
        assert_same(modelled(record), model(choose(self.tasks, steps), steps))
        quiet = (self.driver.now_ns - self.latest_ns[record["trace_id"]]) / SECOND_NS
        ended = any(step.kind == "agent" for step in steps)
        wanted = GRACE_SECONDS if ended else IDLE_SECONDS
        assert quiet >= wanted, f"verdict on {run_id} after {quiet} s of silence, not {wanted} s"
