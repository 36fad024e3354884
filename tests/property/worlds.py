"""Let Hypothesis make tasks and runs; one fixed profile, so that each run of the tests tries the same examples."""

from __future__ import annotations

import json
import os
from random import Random
from typing import TYPE_CHECKING, Any

import cel  # noqa: F401 - tasks import it at first use, and it draws random numbers then: not in the midst of a strategy
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from reach_otel.task.load import load_task_text
from tests.support.histories import make_run, make_task_document
from tests.support.steps import EPOCH_NS, TICK_NS

if TYPE_CHECKING:
    from reach_otel.span.step import Step

EXAMPLES = int(os.environ.get("REACH_TEST_PROPERTY_EXAMPLES", "0"))


def fixed(examples: int) -> settings:
    """Try so many examples, always the same; ``REACH_TEST_PROPERTY_EXAMPLES`` asks for more, new ones each time."""
    return settings(
        max_examples=max(examples, EXAMPLES),
        derandomize=not EXAMPLES,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )


class World:
    """Some tasks, and some runs of agents that may be on one of them."""

    def __init__(self, documents: list[dict[str, Any]], runs: list[list[Step]]) -> None:
        self.documents = documents
        self.tasks = tuple(load_task_text(json.dumps(document)) for document in documents)
        self.runs = tuple(runs)

    @property
    def steps(self) -> list[Step]:
        return [step for run in self.runs for step in run]

    def __repr__(self) -> str:
        """Show what one needs to tell the story again: the task files, and what each step says."""
        return "\n".join(["World", *map(json.dumps, self.documents), *map(told, self.steps)])


def told(step: Step) -> str:
    """Show a step in one line, times in ticks."""
    shown = {
        name: getattr(step, name)
        for name, default in zip(step.__struct_fields__[8:], step.__struct_defaults__[3:], strict=True)
        if getattr(step, name) != default
    }
    times = [(ns - EPOCH_NS) // TICK_NS for ns in (step.start_ns, step.end_ns)]
    parent = step.parent_id and step.parent_id[-4:]
    return f"  run {step.trace_id[-2:]} {step.kind} {step.span_id[-4:]} in {parent} {times[0]}-{times[1]} {shown}"


def make_world(random: Random, *, runs: int = 1, tasks: int = 1, turns: int = 6) -> World:
    """Make ``tasks`` tasks and ``runs`` runs, some of which name their task."""
    names = [f"shop{n}" for n in range(tasks)]
    made = [make_task_document(random, name, agent=random.choice(("bot", "clerk"))) for name in names]
    stories = []
    for run in range(1, runs + 1):
        named = random.choice(names) if random.random() < 0.3 else None
        agent = random.choice(("bot", "bot", "clerk"))
        stories.append(make_run(random, run, turns=turns, agent=agent, task=named, start=random.randrange(20)))
    return World(made, stories)


@st.composite
def worlds(draw: st.DrawFn, *, runs: int = 1, tasks: int = 1, turns: int = 6) -> World:
    """Draw a world with at most so many runs and tasks: half of them shrink well, half differ well."""
    seeded = draw(st.booleans())
    random = Random(draw(st.integers(0, 2**32))) if seeded else draw(st.randoms(use_true_random=False))
    return make_world(random, runs=random.randint(1, runs), tasks=random.randint(1, tasks), turns=turns)
