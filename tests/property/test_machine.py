"""Let Hypothesis drive one small engine through feeding, waiting, lateness, repetition and eviction, step by step."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.property.plain_model import choose, model, modelled
from tests.property.worlds import fixed
from tests.support.compare import assert_same
from tests.support.engines import Driver
from tests.support.histories import make_run, make_task

if TYPE_CHECKING:
    from reach_otel.span.step import Step
    from reach_otel.task.task import Task

RUNS_MAX = 3


class Engine(RuleBasedStateMachine):
    """Keep beside the engine what was fed of each run before its verdict; both must agree all the time."""

    @initialize(seed=st.integers(0, 2**16))
    def begin(self, seed: int) -> None:
        self.random = Random(seed)
        self.tasks: tuple[Task, ...] = (make_task(self.random, "shop"),)
        self.driver = Driver(self.tasks, runs_max=RUNS_MAX)
        self.runs = 0
        self.waiting: dict[str, list[Step]] = {}  # not yet fed, by trace
        self.fed: dict[str, list[Step]] = {}  # fed before the verdict
        self.judged: set[str] = set()  # traces with a verdict, checked

    def feed(self, steps: list[Step]) -> None:
        for step in steps:
            if not self.closed(step.trace_id):
                self.fed.setdefault(step.trace_id, []).append(step)
            self.driver.feed([step])

    def closed(self, trace_id: str) -> bool:
        return any(record["trace_id"] == trace_id for record in self.driver.records.values())

    @rule()
    def start(self) -> None:
        self.runs += 1
        steps = make_run(self.random, self.runs, turns=3)
        if self.random.random() < 0.3:
            self.random.shuffle(steps)
        self.waiting[steps[0].trace_id] = steps[1:]
        self.feed(steps[:1])

    @precondition(lambda self: any(self.waiting.values()))
    @rule(data=st.data(), many=st.integers(1, 4))
    def go_on(self, data: st.DataObject, many: int) -> None:
        trace_id = data.draw(st.sampled_from([t for t, steps in self.waiting.items() if steps]))
        steps, self.waiting[trace_id] = self.waiting[trace_id][:many], self.waiting[trace_id][many:]
        self.feed(steps)

    @precondition(lambda self: any(self.fed.values()))
    @rule(data=st.data())
    def repeat(self, data: st.DataObject) -> None:
        trace_id = data.draw(st.sampled_from([t for t, steps in self.fed.items() if steps]))
        self.feed([data.draw(st.sampled_from(self.fed[trace_id]))])

    @rule(seconds=st.sampled_from([0.1, 1.0, 2.5, 31.0, 601.0]))
    def wait(self, seconds: float) -> None:
        self.driver.wait(seconds)

    @invariant()
    def within_bounds(self) -> None:
        assert len(self.driver.engine.runs()) <= RUNS_MAX

    @invariant()
    def every_run_is_open_or_judged(self) -> None:
        open_traces = {run.trace_id for run in self.driver.engine.runs()}
        acted = {trace_id for trace_id, steps in self.fed.items() if any(step.kind != "other" for step in steps)}
        assert open_traces == {trace_id for trace_id in acted if not self.closed(trace_id)}

    @invariant()
    def open_runs_are_right(self) -> None:
        for record in self.driver.open_records().values():
            steps = self.fed[record["trace_id"]]
            assert_same(modelled(record), model(choose(self.tasks, steps), steps, final=False))

    @invariant()
    def verdicts_are_right(self) -> None:
        for record in self.driver.records.values():
            if record["trace_id"] in self.judged:
                continue
            self.judged.add(record["trace_id"])
            steps = self.fed[record["trace_id"]]
            expected = model(choose(self.tasks, steps), steps)
            if record["outcome"] == "evicted":
                expected["outcome"] = "evicted"
            assert_same(modelled(record), expected)


TestEngine = Engine.TestCase
TestEngine.settings = fixed(120)
