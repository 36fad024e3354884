"""Check what verdicts become as log events and spans, through the SDK's own exporters in memory."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import opentelemetry.sdk._logs.export as log_export
import pytest
from opentelemetry import baggage, context
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased

import reach_otel
from reach_otel import names
from reach_otel.engine import Engine, Limits, Root, RunClosed
from reach_otel.engine.record import Record, TrapRecord
from reach_otel.publish.emit import Evaluations
from reach_otel.publish.evaluation import LABELS, STATES_MAX, attributes, evaluations
from reach_otel.publish.failures import Failures
from reach_otel.publish.labels import TaskLabels
from reach_otel.publish.outlet import QUEUE_MAX, Outlet, RunIds, Sender, SpanQueue
from reach_otel.publish.variants import Variants
from reach_otel.settings import otlp_protocol
from reach_otel.span import normalise, normalise_log
from reach_otel.span.read_proto import read_logs, read_spans
from reach_otel.span.step import Step
from reach_otel.task import Tasks, load_task_text
from tests.support.receiver import Came, hole, logs_of, spans_of
from tests.support.records import milestone, record
from tests.support.steps import Steps
from tests.unit.publish.scrape import PINNED, TICKET, ticket_run

TASKS = Tasks([load_task_text(text) for text in (TICKET, PINNED)])
LABELS_OF_TICKET = TaskLabels(TASKS[0])
SCORES = {
    "reach.depth": "depth",
    "reach.purity": "purity",
    "reach.digestion": "digestion",
    "reach.score": "composite",
    "reach.high_layer": "high_layer",
}
LogMemory: Any = getattr(log_export, "InMemoryLogRecordExporter", None) or log_export.InMemoryLogExporter


class Store:
    """Emit into memory, and read back what an OTLP exporter would have sent."""

    def __init__(self, tasks: Tasks = TASKS, **options: Any) -> None:
        self._spans, self._logs = InMemorySpanExporter(), LogMemory()
        self.tracers = TracerProvider(options.pop("sampler", None), shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        self.loggers = LoggerProvider(shutdown_on_exit=False)
        self.loggers.add_log_record_processor(log_export.SimpleLogRecordProcessor(self._logs))
        self.faults: list[tuple[Exception | None, int]] = []
        self.tasks = tasks
        self.evaluations = Evaluations(
            tasks,
            Variants(options.pop("variants", ())),
            **{
                "tracer_provider": lambda: self.tracers,
                "logger_provider": lambda: self.loggers,
                "failed": lambda error, n: self.faults.append((error, n)),
                **options,
            },
        )

    def score(self, steps: Sequence[Step]) -> RunClosed:
        """Score one run and publish all that the engine says."""
        engine = Engine(self.tasks, Limits(grace_seconds=0))
        events = [*engine.feed(steps, 0), *engine.close(1)]
        self.evaluations.publish(events)
        (closed,) = [event for event in events if isinstance(event, RunClosed)]
        return closed

    @property
    def spans(self) -> list[Came]:
        return spans_of(self.span_body())

    @property
    def logs(self) -> list[Came]:
        return logs_of(self.log_body())

    def span_body(self) -> bytes:
        return encode_spans(self._spans.get_finished_spans()).SerializeToString()

    def log_body(self) -> bytes:
        finished = self._logs.get_finished_logs()
        return encode_logs(finished).SerializeToString() if finished else b""


def told(store: Store) -> dict[str, tuple[float, str, str]]:
    """Give value, label and explanation of each evaluation by its name."""
    return {
        log.attributes["gen_ai.evaluation.name"]: (
            log.attributes["gen_ai.evaluation.score.value"],
            log.attributes["gen_ai.evaluation.score.label"],
            log.attributes["gen_ai.evaluation.explanation"],
        )
        for log in store.logs
    }


# Shape.


def test_a_verdict_is_one_span_and_one_event_a_score() -> None:
    """All bear the root's trace; the span is its child and lasts no time at its end; the events name it as theirs."""
    store = Store()
    closed = store.score(ticket_run(fail=True))
    root = closed.root
    assert root is not None
    (span,) = store.spans
    assert (span.name, span.scope, span.trace_id, span.parent) == (
        "reach.evaluate",
        "reach_otel.evaluation",
        root.trace_id,
        root.span_id,
    )
    assert span.start_ns == span.end_ns == root.end_ns
    assert span.span_id != root.span_id
    assert [log.attributes["gen_ai.evaluation.name"] for log in store.logs] == list(SCORES)
    for log in store.logs:
        assert (log.name, log.scope) == ("gen_ai.evaluation.result", "reach_otel.evaluation")
        assert (log.trace_id, log.span_id, log.flags, log.start_ns) == (root.trace_id, root.span_id, 1, root.end_ns)
        assert log.attributes["gen_ai.evaluation.score.label"] in LABELS[log.attributes["gen_ai.evaluation.name"]]
        assert log.attributes["reach.task"] == "ticket"
    assert store.faults == []


@pytest.mark.parametrize(("tools", "fail"), [(0, False), (1, False), (2, True), (3, False)])
def test_values_are_those_of_the_record(tools: int, fail: bool) -> None:
    """Not one digit is lost, and a score that does not exist is left out on both ways."""
    store = Store()
    scores = store.score(ticket_run(tools=tools, fail=fail)).record.scores
    expected = {name: value for name, key in SCORES.items() if (value := getattr(scores, key)) is not None}
    assert {name: value for name, (value, _, _) in told(store).items()} == expected
    (span,) = store.spans
    assert {name: span.attributes[name] for name in SCORES if name in span.attributes} == expected
    assert ("reach.digestion" in expected) == fail


def test_a_trace_store_can_be_searched_by_what_the_span_says() -> None:
    """Outcome, break point, findings and milestones are there, each as list and by its own name."""
    store = Store(variants=("v7",))
    steps = Steps()
    steps.made = ticket_run(fail=True, variant="v7")
    for n in range(3):
        steps.tool("look", 60 + 5 * n, 62 + 5 * n, parent=steps.made[-1].parent_id, args={"q": 1}, result={"found": 0})
    record = store.score(steps.made).record
    (span,) = store.spans
    assert record.break_point is not None
    assert span.attributes == {
        "reach.task": "ticket",
        "reach.variant": "v7",
        "reach.run.id": record.run,
        "reach.agent": "ticket-agent",
        "reach.outcome": "partial",
        "reach.depth": record.scores.depth,
        "reach.purity": record.scores.purity,
        "reach.digestion": 0.0,
        "reach.score": record.scores.composite,
        "reach.high_layer": 0.0,
        "reach.coverage": 0,
        "reach.high_risk": True,
        "reach.break_point.level": record.break_point.level,
        "reach.break_point.reason": record.break_point.reason,
        "reach.findings": [finding.finding for finding in record.findings],
        **{f"reach.finding.{finding.finding}": True for finding in record.findings},
        "reach.milestones.reached": ["read"],
        "reach.milestones.missed": ["note", "update", "notify"],
        "reach.milestone.read.state": "reached",
        "reach.milestone.note.state": "missed",
        "reach.milestone.update.state": "missed",
        "reach.milestone.notify.state": "missed",
    }
    assert span.attributes["reach.findings"], "the run must have some for this to mean anything"


def test_explanations_say_why_in_words_of_the_task_file() -> None:
    """Counts, ids of milestones, closed reasons."""
    store = Store()
    store.score(ticket_run(fail=True))
    assert {name: why for name, (_, _, why) in told(store).items()} == {
        "reach.depth": "1 of 3 must-milestones reached; missed: update, notify",
        "reach.purity": "2 of 2 actions effective",
        "reach.digestion": "0 of 1 obstacles digested; undigested: error at update",
        "reach.score": "depth 0.2; purity 1; digestion 0; high-layer reach 0 is below 0.5",
        "reach.high_layer": "0 of 2 must-milestones of layer 2 reached",
    }


# Labels.


@pytest.mark.parametrize(
    ("name", "fields", "label"),
    [
        ("reach.depth", {"scores": {"depth": 1.0}}, "complete"),
        ("reach.depth", {"scores": {"depth": 0.999}}, "partial"),
        ("reach.depth", {"scores": {"depth": 0.0}}, "none"),
        ("reach.purity", {"scores": {"purity": 1.0}}, "good"),
        ("reach.purity", {"scores": {"purity": 0.7}}, "good"),
        ("reach.purity", {"scores": {"purity": 0.699}}, "weak"),
        ("reach.purity", {"scores": {"purity": 0.0}}, "weak"),
        ("reach.digestion", {"scores": {"digestion": 1.0}}, "digested"),
        ("reach.digestion", {"scores": {"digestion": 0.5}}, "partial"),
        ("reach.digestion", {"scores": {"digestion": 0.0}}, "undigested"),
        ("reach.digestion", {"scores": {"digestion": None}}, None),
        ("reach.score", {"high_risk": False}, "ok"),
        ("reach.score", {"high_risk": True}, "high_risk"),
        ("reach.high_layer", {"scores": {"high_layer": 0.5}}, "ok"),
        ("reach.high_layer", {"scores": {"high_layer": 0.499}}, "low"),
        ("reach.high_layer", {"scores": {"high_layer": None}}, None),
    ],
)
def test_labels_turn_at_their_limits(name: str, fields: dict[str, Any], label: str | None) -> None:
    """A score on the limit has the better label."""
    found = {one.name: one.label for one in evaluations(record(task="ticket", **fields), LABELS_OF_TICKET)}
    assert found.get(name) == label


def explained(name: str, made: Record) -> str:
    return next(one.explanation for one in evaluations(made, LABELS_OF_TICKET) if one.name == name)


def test_a_trap_explains_the_score() -> None:
    """A task may have traps and no must-milestone."""
    hit = (TrapRecord("refunded", 2, "a" * 16), TrapRecord("refunded", 3, "a" * 16))
    made = record(milestones=(), traps=hit, scores={"depth": 0.0, "high_layer": None})
    assert explained("reach.score", made) == "trap hit: refunded"
    assert explained("reach.depth", made) == "no must-milestone; trap hit: refunded"
    fine = record(milestones=(), scores={"depth": 1.0, "high_layer": None})
    assert explained("reach.depth", fine) == "no must-milestone; an output was given and no trap was hit"
    silent = record(milestones=(), scores={"depth": 0.0, "high_layer": None})
    assert explained("reach.depth", silent) == "no must-milestone; no output was given"


def test_purity_without_actions_is_explained() -> None:
    """A run that did nothing says so; ineffective actions are named by class."""
    assert explained("reach.purity", record(actions={"effective": 0})) == "no action"
    assert explained("reach.purity", record()) == "3 of 4 actions effective; 1 off_task"


def test_large_tasks_are_told_in_short() -> None:
    """An explanation names ten milestones, the lists all; beyond 64 milestones there is no attribute for each."""
    made = record(milestones=tuple(milestone(f"m{n}", "missed", layer=n + 1) for n in range(STATES_MAX)))
    assert explained("reach.depth", made).endswith("m8, m9 and 54 more")
    span = attributes(made, "ab" * 16, LABELS_OF_TICKET, "v")
    assert len(span["reach.milestones.missed"]) == STATES_MAX  # type: ignore[arg-type]
    assert span["reach.milestone.m63.state"] == "missed"
    assert len(span) < 128 - len(names.FINDINGS), "the SDK's limit"
    more = record(milestones=tuple(milestone(f"m{n}") for n in range(STATES_MAX + 1)))
    assert "reach.milestone.m1.state" not in attributes(more, "ab" * 16, LABELS_OF_TICKET, "v")


# Which runs.


def test_a_run_without_a_task_has_the_scores_that_need_none() -> None:
    """Depth and score of no graph mean nothing; a task that a span made up counts as none."""
    steps = Steps()
    root = steps.agent("somebody", 0, 100, output="done")
    steps.tool("look", 1, 2, parent=root.span_id)
    store = Store()
    store.score(steps.made)
    assert set(told(store)) == {"reach.purity"}
    (span,) = store.spans
    assert set(span.attributes) == {
        "reach.task",
        "reach.variant",
        "reach.run.id",
        "reach.outcome",
        "reach.purity",
    }
    made = RunClosed(record(task="made up"), (), (), Root("ab" * 16, "cd" * 8, 1, 2, True, None, None))
    store.evaluations.publish([made])
    assert store.spans[-1].attributes["reach.task"] == "unmatched"


@pytest.mark.parametrize(
    ("root", "number"),
    [
        (Root("ab" * 16, "cd" * 8, 1, 2, True, None, True), 1),
        (Root("ab" * 16, "cd" * 8, 1, 2, True, None, None), 1),
        (Root("ab" * 16, "cd" * 8, 1, 2, True, None, False), 0),
        (Root("0" * 32, "cd" * 8, 1, 2, True, None, None), 0),
        (Root("no hex", "cd" * 8, 1, 2, True, None, None), 0),
        (None, 0),
    ],
)
def test_only_a_run_that_stores_may_have_is_told(root: Root | None, number: int) -> None:
    """A root that was not sampled, or was never seen, or has no real ids: nothing, and no fault."""
    store = Store()
    store.evaluations.publish([RunClosed(record(task="ticket"), (), (), root)])
    assert (len(store.spans), len(store.logs) > 0, store.faults) == (number, number > 0, [])


def test_the_samplers_and_contexts_of_the_host_are_left_alone() -> None:
    """The span has the root as parent and nothing else: not the thread's baggage, nor a decision of its own."""
    store = Store(sampler=ParentBased(ALWAYS_OFF))
    seen: list[Any] = []

    class Spy(SimpleSpanProcessor):
        def on_start(self, span: Any, parent_context: Any = None) -> None:
            seen.append(baggage.get_all(parent_context))

    store.tracers.add_span_processor(Spy(InMemorySpanExporter()))
    token = context.attach(baggage.set_baggage("tenant", "secret"))
    try:
        before = context.get_current()
        store.score(ticket_run())
        assert context.get_current() is before
    finally:
        context.detach(token)
    assert len(store.spans) == 1
    assert seen == [{}]


# Nothing of what stood in a span.

CANARY = "c4n4ry"


def test_nothing_that_stood_in_a_span_is_told() -> None:
    """Whatever a sender puts into each field of each step, none of it shows; ids of its own making neither."""
    steps = Steps()
    bad: dict[str, Any] = {"variant": f"{CANARY} variant", "conversation_id": CANARY, "run_id": CANARY}
    root = steps.agent("ticket-agent", 0, 100, user=CANARY, output=f"{CANARY} it is done", **bad)
    inner = steps.agent(CANARY, 1, 90, parent=root.span_id, **bad)
    for n, error in enumerate((None, CANARY, f"{CANARY} timed out", None)):
        steps.tool(
            "read_ticket" if n == 1 else CANARY,
            10 * n + 2,
            10 * n + 9,
            parent=inner.span_id,
            args={CANARY: CANARY},
            result={CANARY: CANARY},
            error=error,
            call_id=CANARY,
            name=CANARY,
            **bad,
        )
    store = Store()
    made = store.score(steps.made)
    assert CANARY in str(made.record)
    assert made.record.run == CANARY
    assert len(store.logs) >= 4
    assert CANARY.encode() not in store.span_body() + store.log_body()
    (span,) = store.spans
    assert span.attributes["reach.variant"] == "other"
    assert "reach.run.id" not in span.attributes


@pytest.mark.parametrize(
    ("run", "is_told"),
    [
        ("ab" * 16, True),
        ("ab" * 16 + "-" + "cd" * 8, True),
        (reach_otel.run().id, True),
        ("5f" * 16, False),
        ("5f" * 16 + "-" + "cd" * 8, False),
        ("ab" * 16 + "-ann", False),
        ("reach-ann@example.org", False),
        ("13800138000", False),
        ("ann@example.org", False),
        ("AB" * 16, False),
    ],
)
def test_only_ids_that_tracing_makes_are_told(run: str, is_told: bool) -> None:
    """A conversation's id may be a telephone number, or look just like a trace's."""
    assert (attributes(record(run), "ab" * 16, LABELS_OF_TICKET, "v").get("reach.run.id") == run) == is_told


def test_what_is_emitted_is_no_step_when_it_comes_back() -> None:
    """A Collector that sends everything to a scorer makes no loop."""
    store = Store()
    store.score(ticket_run(fail=True))
    spans, _ = read_spans(store.span_body())
    logs, _ = read_logs(store.log_body())
    assert (len(spans), len(logs)) == (1, 5)
    assert [step for span in spans for step in normalise(span)] == []
    assert [step for log in logs for step in normalise_log(log)] == []


# Providers that are missing, late or broken.


def test_a_host_without_logs_gets_the_span() -> None:
    """And one without a tracer gets the events; a provider that is set later is used from then on."""
    found: list[LoggerProvider] = []
    store = Store(logger_provider=lambda: found[0] if found else None)
    store.score(ticket_run(1))
    assert (len(store.spans), len(store.logs)) == (1, 0)
    found.append(store.loggers)
    store.score(ticket_run(2))
    assert (len(store.spans), len(store.logs)) == (2, 4)
    silent = Store(tracer_provider=lambda: None)
    silent.score(ticket_run())
    assert (len(silent.spans), len(silent.logs)) == (0, 4)


def boom(*_: Any, **__: Any) -> Any:
    raise RuntimeError("boom")


def test_what_a_provider_raises_is_told_and_goes_no_further() -> None:
    """The events come though the span failed, and the other way round; each span and event counts that is lost."""
    store = Store(tracer_provider=boom)
    store.score(ticket_run())
    assert (len(store.logs), [n for _, n in store.faults]) == (4, [1])
    store = Store(logger_provider=boom)
    store.score(ticket_run())
    assert (len(store.spans), [n for _, n in store.faults]) == (1, [4])


def test_after_the_end_of_a_provider_nothing_is_given_to_it() -> None:
    """What it would not take any more is counted, one for the span and each event; the other provider is told."""
    store = Store()
    store.evaluations.takes_spans = False
    store.score(ticket_run())
    assert (store.spans, len(store.logs), store.faults) == ([], 4, [(None, 1)])
    store.evaluations.takes_spans, store.evaluations.takes_events = True, False
    store.score(ticket_run(2))
    assert (len(store.spans), len(store.logs), store.faults[1:]) == (1, 4, [(None, 4)])


def test_the_parts_of_a_verdict_are_those_that_are_told() -> None:
    """A provider that is not there loses nothing; one that cannot be had loses the verdict."""
    store = Store()
    closed = store.score(ticket_run(fail=True))
    assert store.evaluations.parts(closed) == len(store.spans) + len(store.logs) == 6
    assert Store(tracer_provider=lambda: None).evaluations.parts(closed) == 5
    assert Store(logger_provider=lambda: None).evaluations.parts(closed) == 1
    assert Store(logger_provider=boom).evaluations.parts(closed) == 1


# The outlet of our own.


def test_a_run_has_one_span_id_however_often_it_is_told() -> None:
    """Two processes give the same run the same id, and other runs others."""

    def id_of(run: int, ids: RunIds) -> str:
        store = Store(before=lambda made: setattr(ids, "run", made.run))
        store.tracers.id_generator = ids
        store.score(ticket_run(run))
        return store.spans[0].span_id

    assert id_of(1, RunIds()) == id_of(1, RunIds())
    assert len({id_of(run, RunIds()) for run in range(1, 20)}) == 19


class Slow:
    """An exporter that sends nothing until it may."""

    def __init__(self) -> None:
        self.may = threading.Event()
        self.sent = 0

    def export(self, batch: Sequence[Any]) -> SpanExportResult:
        self.may.wait(30)
        self.sent += len(batch)
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None: ...


def test_a_full_queue_refuses_and_counts_and_never_waits() -> None:
    """While a store hangs the scorer goes on; what finds no room is counted, the rest is sent later."""
    slow, errors = Slow(), Counter[str]()
    sender = Sender(slow, Failures(lambda: errors))
    queue = SpanQueue(sender)
    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(queue)
    tracer = tracers.get_tracer("t")
    began = time.monotonic()
    for _ in range(QUEUE_MAX + 600):
        tracer.start_span("s").end()
    assert time.monotonic() - began < 10
    assert 0 < errors["evaluation"] <= 600
    slow.may.set()
    tracers.shutdown()
    assert slow.sent + errors["evaluation"] == QUEUE_MAX + 600


@pytest.mark.parametrize("export", [boom, lambda _: SpanExportResult.FAILURE])
def test_failures_are_counted_and_logged_now_and_then(
    export: Callable[[Any], Any], caplog: pytest.LogCaptureFixture
) -> None:
    """Each lost span counts; a line a minute says so, without what an exception says."""
    errors = Counter[str]()

    class Broken(Slow):
        def export(self, batch: Sequence[Any]) -> SpanExportResult:
            result: SpanExportResult = export(batch)
            return result

    sender = Sender(Broken(), Failures(lambda: errors))
    for _ in range(5):
        assert sender.export([1, 2]).name == "FAILURE"
    assert errors["evaluation"] == 10
    assert [entry.levelno for entry in caplog.records] == [logging.WARNING]
    assert "boom" not in caplog.text


def test_after_its_end_a_sender_begins_nothing() -> None:
    """What is then queued counts as failed, so that an end is bounded."""
    errors, slow = Counter[str](), Slow()
    slow.may.set()
    sender = Sender(slow, Failures(lambda: errors))
    sender.export([1])
    sender.end_at(time.monotonic())
    sender.export([2, 3])
    assert (slow.sent, errors["evaluation"]) == (1, 2)


@pytest.mark.parametrize("is_refused", [True, False])
@pytest.mark.parametrize("wait_seconds", [0, 1.5])  # the queue is looked at each second: a batch is under way then
def test_a_store_that_is_not_there_keeps_nobody(is_refused: bool, wait_seconds: float) -> None:
    """Emitting takes no time, ending not more than it is given, and both spans and events count as failed."""
    errors = Counter[str]()
    with hole() as address:
        outlet = Outlet("http://127.0.0.1:9" if is_refused else address, None, Failures(lambda: errors))
        store = Store(
            tracer_provider=lambda: outlet.tracer_provider,
            logger_provider=lambda: outlet.logger_provider,
            before=outlet.expect,
        )
        began = time.monotonic()
        store.score(ticket_run(fail=True))
        assert time.monotonic() - began < 1
        time.sleep(wait_seconds)
        began = time.monotonic()
        outlet.close(began + 0.5)
        assert time.monotonic() - began < 1.5
        assert errors["evaluation"] == 6


def test_what_is_under_way_when_it_is_given_up_counts_once() -> None:
    """It is counted then, not again when it fails at last; what was sent before is not."""
    errors, slow = Counter[str](), Slow()
    sender = Sender(slow, Failures(lambda: errors))
    assert all(sender.has_room() for _ in range(5))
    slow.may.set()
    sender.export([1])
    slow.may.clear()
    thread = threading.Thread(target=sender.export, args=([2, 3],))
    thread.start()
    sender.give_up()
    sender.give_up()
    assert errors["evaluation"] == 4
    sender.end_at(time.monotonic())
    sender.export([4, 5])
    slow.may.set()
    thread.join()
    assert errors["evaluation"] == 4


# Settings.


@pytest.mark.parametrize(
    ("environ", "protocol"),
    [
        ({}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://store:4318"}, None),
        ({"OTEL_LOGS_EXPORTER": "otlp"}, "http"),
        ({"OTEL_LOGS_EXPORTER": "console"}, None),
        ({"OTEL_LOGS_EXPORTER": "none", "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "http://store:4318/v1/logs"}, None),
        ({"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "http://store:4318/v1/logs"}, "http"),
        ({"OTEL_LOGS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "grpc"),
        ({"OTEL_LOGS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL": "grpc"}, "grpc"),
        ({"OTEL_LOGS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"}, "http"),
    ],
)
def test_logs_are_asked_for_by_name(environ: dict[str, str], protocol: str | None) -> None:
    """An address for all signals is often that of a store of traces only, which refuses logs."""
    assert otlp_protocol(environ, signal="logs") == protocol
