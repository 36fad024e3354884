"""Lay out the Scorer dashboard: whether the scoring itself is well, so that the others can be believed."""

from __future__ import annotations

from grafana_foundation_sdk.builders import stat, table, timeseries
from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards import house, panels, queries
from dashboards.frame import Row, frame
from dashboards.house import Column
from reach_otel import names

OURS = (queries.INSTANCE,)
SCRAPED = (queries.JOB, queries.INSTANCE)
COLLECTOR = ('job="otelcol"',)


def dashboard() -> Dashboard:
    """Return the dashboard."""
    return frame(
        "reach-scorer",
        "Is the scoring itself well? Top to bottom: are all there, do they keep up, what do they lose, what goes "
        "wrong, and what the database and the Collector in front of them do.",
        (
            Row("Are they there", (up(), ready(), lost(), builds())),
            Row("Do they keep up", (spans(), queue(), lag())),
            Row("What is lost", (dropped(), incomplete(), evicted(), late(), duplicates(), odd())),
            Row("What goes wrong", (errors(), condition_faults(), overflow(), merged())),
            Row("Service", (requests(), commits(), journal_errors(), bodies(), database())),
            Row("Collector", (collector_spans(), collector_queue(), collector_failures())),
        ),
        instances=True,
    )


def up() -> stat.Panel:
    return panels.number(
        "Scorers up",
        "Processes that score and answer when they are scraped. ReachScorerDown fires when one does not, or there is "
        "none.",
        house.COUNT,
        f"sum({queries.series('up', *SCRAPED)})",
        limit=house.bad_below(1),
        none="none",
    )


def ready() -> stat.Panel:
    return panels.number(
        "Services ready",
        "Share of the services that take spans and keep them. One that is not says why at /readyz.",
        house.RATIO,
        f"{queries.gauge(names.SERVICE_READY, of=OURS)} / count({queries.series(names.SERVICE_READY, *OURS)})",
        limit=house.bad_below(1),
        none="no service",
    )


def lost() -> stat.Panel:
    return panels.number(
        "Lost in 15 min",
        "Spans not scored or not kept, runs closed for want of room or seen in part only. Anything but 0 is worth a "
        "look; ReachScorerDropping fires when it goes on.",
        house.COUNT,
        f"sum({queries.series('instance:reach_scorer_lost:increase15m', *OURS)})",
        limit=house.bad_from(1),
        none="0",
    )


def builds() -> table.Panel:
    return panels.rows(
        "Versions",
        "What runs where, and since when. Two versions at a time are well during a roll-out only.",
        Column(
            "Scorers", f"sum by (version, instance) ({queries.series(names.SCORER_BUILD_INFO, *OURS)})", house.COUNT
        ),
        Column(
            "Up for",
            f"time() - max by (instance) ({queries.series('process_start_time_seconds', *SCRAPED)})",
            house.SECONDS,
        ),
        by={"version": "Version", "instance": "Process"},
        width=12,
        height=4,
    )


def spans() -> timeseries.Panel:
    return _growing(
        "Spans a second",
        "Spans that each process takes from its queue. With the Collector's load balancing the lines should lie "
        "together.",
        names.SCORER_SPANS_RECEIVED_TOTAL,
        by="instance",
    )


def queue() -> timeseries.Panel:
    return panels.graph(
        "Spans waiting",
        "Ended spans that wait to be scored. When the queue is full, the service says 429 and the Collector tries "
        "again; a scorer inside an agent drops them.",
        house.COUNT,
        panels.over_time(queries.gauge(names.SCORER_QUEUE_SPANS, "instance", of=OURS), "{{instance}}"),
    )


def lag() -> timeseries.Panel:
    return panels.graph(
        "Lag",
        "Age of the oldest span that waits: how far the dashboards are behind.",
        house.SECONDS,
        panels.over_time(f"max by (instance) ({queries.series(names.SCORER_LAG_SECONDS, *OURS)})", "{{instance}}"),
    )


def dropped() -> timeseries.Panel:
    return _growing("Spans dropped", "Spans not scored, by reason.", names.SCORER_SPANS_DROPPED_TOTAL)


def incomplete() -> timeseries.Panel:
    return _growing(
        "Incomplete runs",
        "Runs that were under way when a scorer began to take spans, or soon after without a root, so that a part of "
        "them may be elsewhere: counted here and not scored. Some are usual when a scorer starts with a new database.",
        names.SCORER_INCOMPLETE_RUNS_TOTAL,
    )


def evicted() -> timeseries.Panel:
    return _growing(
        "Runs evicted",
        "Runs closed for want of room: raise `runs_max`, or add scorers.",
        names.SCORER_RUNS_EVICTED_TOTAL,
    )


def late() -> timeseries.Panel:
    return panels.quantiles(
        "Late spans: how late",
        "How long after the verdict on their run spans came that no longer count. Many of a few seconds: raise "
        "`grace`. While another scorer is away, the Collector sends a batch again and again: spans of it that were "
        "scored before count as late here each time, without harm.",
        names.SCORER_LATE_SPAN_AGE_SECONDS,
        of=OURS,
        dots=False,
    )


def duplicates() -> timeseries.Panel:
    return _growing(
        "Spans that came twice",
        "Sent again, as an answer was lost, or as the Collector tries a batch again while another scorer is away. "
        "No harm: they are scored once.",
        names.SCORER_DUPLICATES_TOTAL,
        by="instance",
    )


def odd() -> timeseries.Panel:
    return _growing("Odd spans", "Spans with something odd, scored as far as it goes.", names.SCORER_ODD_SPANS_TOTAL)


def errors() -> timeseries.Panel:
    return _growing(
        "Faults of the scorer",
        "By stage. Each is logged once; any is worth a bug report.",
        names.SCORER_ERRORS_TOTAL,
        by="stage",
        width=6,
    )


def condition_faults() -> timeseries.Panel:
    return _growing(
        "Conditions that failed to tell",
        "A condition of a task file that raised or took too long counts as not held: the task file is at fault.",
        names.SCORER_CONDITION_FAULTS_TOTAL,
        width=6,
    )


def overflow() -> timeseries.Panel:
    return _growing(
        "Label overflow",
        "Runs that were counted under `overflow`, as their metric had no room for a further series.",
        names.SCORER_LABEL_OVERFLOW_TOTAL,
        by="metric",
        width=6,
    )


def merged() -> timeseries.Panel:
    return _growing(
        "Runs merged",
        "Runs that turned out to be a part of another: their spans came before those that tie them together.",
        names.SCORER_RUNS_MERGED_TOTAL,
        by="instance",
        width=6,
    )


def requests() -> timeseries.Panel:
    return panels.graph(
        "Requests by answer",
        "HTTP status, or name of the gRPC status. 429 and RESOURCE_EXHAUSTED: the queue is full. 401: a token is "
        "wrong.",
        house.PER_SECOND,
        panels.over_time(
            queries.rate(names.SERVICE_REQUESTS_TOTAL, "signal", "code", of=OURS), "{{signal}} · {{code}}"
        ),
    )


def commits() -> timeseries.Panel:
    return panels.quantiles(
        "Time to make spans safe",
        "How long the database takes before spans are acknowledged. It is what senders wait for.",
        names.SERVICE_COMMIT_SECONDS,
        of=OURS,
        dots=False,
    )


def journal_errors() -> timeseries.Panel:
    return panels.graph(
        "What the database could not do",
        "By what it was doing, and the spans that were acknowledged all the same: scored, but lost if the process "
        "dies.",
        house.PER_SECOND,
        panels.over_time(queries.rate(names.SERVICE_JOURNAL_ERRORS_TOTAL, "stage", of=OURS), "{{stage}}"),
        panels.over_time(queries.rate(names.SERVICE_UNJOURNALLED_SPANS_TOTAL, of=OURS), "spans not journalled"),
    )


def bodies() -> timeseries.Panel:
    return panels.graph(
        "Bodies held",
        "Bytes of request bodies in memory: being read, and waiting to be scored.",
        house.BYTES,
        panels.over_time(queries.gauge(names.SERVICE_INFLIGHT_BYTES, "instance", of=OURS), "{{instance}}: being read"),
        panels.over_time(queries.gauge(names.SERVICE_QUEUE_BYTES, "instance", of=OURS), "{{instance}}: waiting"),
        width=12,
        stacked=True,
    )


def database() -> timeseries.Panel:
    return panels.graph(
        "Database in use",
        "Bytes of journal and history. It levels off when what is past its retention is given up.",
        house.BYTES,
        panels.over_time(queries.gauge(names.SERVICE_DATABASE_BYTES, "instance", of=OURS), "{{instance}}"),
        width=12,
    )


def collector_spans() -> timeseries.Panel:
    return panels.graph(
        "Collector: spans in",
        "What agents send, by what the Collector did with it. Refused: its memory limiter says no, agents try again.",
        house.PER_SECOND,
        panels.over_time(queries.rate("otelcol_receiver_accepted_spans", of=COLLECTOR), "accepted"),
        panels.over_time(queries.rate("otelcol_receiver_refused_spans", of=COLLECTOR), "refused"),
    )


def collector_queue() -> timeseries.Panel:
    return panels.graph(
        "Collector: queues",
        "How full the sending queues are. They fill up while what is behind them does not answer.",
        house.RATIO,
        panels.over_time(
            queries.share(
                queries.gauge("otelcol_exporter_queue_size", "exporter", of=COLLECTOR),
                queries.gauge("otelcol_exporter_queue_capacity", "exporter", of=COLLECTOR),
            ),
            "{{exporter}}",
        ),
        top=1,
    )


def collector_failures() -> timeseries.Panel:
    return panels.graph(
        "Collector: spans given up",
        "Spans that an exporter could not send and tries no more.",
        house.PER_SECOND,
        panels.over_time(queries.rate("otelcol_exporter_send_failed_spans", "exporter", of=COLLECTOR), "{{exporter}}"),
    )


def _growing(title: str, description: str, metric: str, *, by: str = "reason", width: int = 8) -> timeseries.Panel:
    """Draw how fast a counter of the scorer grows, by one of its labels."""
    line = panels.over_time(queries.rate(metric, by, of=OURS), f"{{{{{by}}}}}")
    return panels.graph(title, description, house.PER_SECOND, line, width=width)
