"""Keep a few agents at work in threads, each on one ticket after the other, until told to stop."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from random import Random
from types import TracebackType

from opentelemetry import trace

import reach_otel
from reach_otel.demo.behaviours import Behaviour, choose
from reach_otel.demo.desk import Desk, ToolError
from reach_otel.demo.work import Work

AGENT = "ticket-agent"
REMEMBERED_RUNS_MAX = 500


@dataclass(frozen=True, slots=True)
class Done:
    """What an agent did in one run, as it saw it: no score is in it."""

    trace_id: str
    behaviour: str
    seconds: float
    answer: str


@dataclass(frozen=True, slots=True)
class Plan:
    """Say what the fleet does, and when it gets worse and better; seconds count from its start."""

    agents: int = 4
    seed: int = 0
    degrade_after_seconds: float | None = None
    recover_after_seconds: float | None = None
    pace: float = 1.0
    """How long tools and models take, as a multiple of what is usual; 0 for tests."""

    def degraded(self, seconds: float) -> bool:
        """Tell whether the fleet behaves badly at this time."""
        if self.degrade_after_seconds is None or seconds < self.degrade_after_seconds:
            return False
        return self.recover_after_seconds is None or seconds < self.recover_after_seconds


def handle_ticket(
    desk: Desk,
    behaviour: Behaviour,
    rng: Random,
    pause: Callable[[float], None],
    started: Callable[[Behaviour], None] = lambda _: None,
) -> str:
    """Let an agent handle a new ticket as its behaviour has it; return its answer.

    ``started`` is called once, inside the agent's span.
    """
    work = Work(desk, behaviour.troubles, rng, pause, goods=behaviour.goods)

    @reach_otel.agent(AGENT)
    def handle(request: str) -> str:
        started(behaviour)
        work.hear(request)
        try:
            return work.say(behaviour.act(work))
        except ToolError as error:
            return work.say(f"Sorry, this cannot be done now: {error}")

    return handle(f"Please handle ticket {work.ticket_id}.")


class Fleet:
    """Run the agents of a plan while the ``with`` block lasts.

    Which behaviour an agent shows in its n-th run depends on the seed, the agent, n, and whether the fleet is degraded;
    so two fleets with one seed do the same things, however the threads interleave.
    """

    def __init__(self, desk: Desk, plan: Plan, choose: Callable[..., Behaviour] = choose) -> None:
        self._desk = desk
        self._plan = plan
        self._choose = choose
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(plan.agents, thread_name_prefix="demo-agent")
        self._agents: list[Future[None]] = []
        self._behaviours: OrderedDict[str, str] = OrderedDict()
        self._done: deque[Done] = deque(maxlen=REMEMBERED_RUNS_MAX)
        self._lock = threading.Lock()
        self._started = time.monotonic()

    def __enter__(self) -> Fleet:
        self._started = time.monotonic()
        self._agents = [self._pool.submit(self._keep_working, number) for number in range(1, self._plan.agents + 1)]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    @property
    def seconds(self) -> float:
        """Return for how long the fleet has been at work."""
        return time.monotonic() - self._started

    @property
    def degraded(self) -> bool:
        """Tell whether the fleet behaves badly now."""
        return self._plan.degraded(self.seconds)

    def behaviour_of(self, trace_id: str) -> str | None:
        """Return what the agent of this trace really did, which no score knows; the oldest are forgotten."""
        with self._lock:
            return self._behaviours.get(trace_id)

    def take_done(self) -> list[Done]:
        """Return the runs that have ended since the last call, in order; the oldest are forgotten."""
        taken: list[Done] = []
        while self._done:
            taken.append(self._done.popleft())
        return taken

    def stop(self) -> None:
        """Let every agent end its run without further waiting, and join the threads; raises what an agent died of."""
        self._stop.set()
        self._pool.shutdown()
        for agent in self._agents:
            agent.result()

    def check(self) -> None:
        """Raise what an agent died of, if one did: none ends by itself."""
        for agent in self._agents:
            if agent.done():
                agent.result()

    def _keep_working(self, number: int) -> None:
        n = 0
        while not self._stop.is_set():
            n += 1
            rng = Random(f"{self._plan.seed}/{number}/{n}")
            behaviour = self._choose(rng, degraded=self.degraded)
            self._pause(rng.uniform(0.1, 1.2))
            began, trace_id = time.monotonic(), ""

            def remember(behaviour: Behaviour) -> None:
                nonlocal trace_id
                trace_id = format(trace.get_current_span().get_span_context().trace_id, "032x")
                self._remember(trace_id, behaviour)

            answer = handle_ticket(self._desk, behaviour, rng, self._pause, remember)
            self._done.append(Done(trace_id, behaviour.name, time.monotonic() - began, answer))

    def _remember(self, trace_id: str, behaviour: Behaviour) -> None:
        with self._lock:
            self._behaviours[trace_id] = behaviour.name
            if len(self._behaviours) > REMEMBERED_RUNS_MAX:
                self._behaviours.popitem(last=False)

    def _pause(self, seconds: float) -> None:
        if self._plan.pace > 0:
            self._stop.wait(seconds * self._plan.pace)
