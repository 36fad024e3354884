"""Play a sender that makes up every name it sends, and check that none of them became a label value."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as plain_text
from prometheus_client.samples import Sample

from tests.support.otlp import Trace, attribute

RUNS = 120
MARK = "hostile"  # stands in every made-up text
ON_SPANS = "release-7"  # the variant that one run names on its spans
UGLY = (  # only the first and the last have the form of a name
    "{mark}-{n}@example.com",
    'x{mark}"}} 1\n# TYPE {mark} counter\n{mark}_total 5 #',
    "{mark}\\ {{le=\"{n}\",task='t'}} \r\n\t\u2028\x1b[31m",
    "{mark}" + "v" * 10_000,
    "gpt-4o {mark} {n}",
    "claude-sonnet-4-5-{mark}-{n}",  # the price table knows any ending
)
TASK = """
task: ticket
match: {agent: ticket-agent}
forbidden_tools: ["drop_*"]
milestones:
  - {id: read, verify: {tool: read_ticket}}
  - {id: update, depends_on: [read], verify: {tool: update_ticket}}
"""


def ugly(n: int) -> str:
    return UGLY[n % len(UGLY)].format(mark=MARK, n=n)


def request(n: int) -> tuple[str, Counter[str]]:
    """Write one run as OTLP/JSON; also give what it adds to metrics, summed over all their series."""
    ticket = n % 2 == 0
    trace = Trace(f"hostile {n}", agent="ticket-agent" if ticket else ugly(n + 1))
    trace.call("read_ticket", {"id": ugly(n)}, {"status": ugly(n)})
    trace.call(ugly(n + 2), {ugly(n): n}, {"error": ugly(n + 1)})
    trace.call("drop_" + ugly(n), {}, error=ugly(n))
    trace.span(
        ugly(n + 3),
        {"gen_ai.operation.name": "handoff", "gen_ai.handoff.to_agent": ugly(n + 4), "gen_ai.agent.name": ugly(n)},
        start=trace.cursor,
        end=trace.cursor + 0.1,
        parent=trace.root,
    )
    model = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": UGLY[-1].format(mark=MARK, n=n) if n % 3 else ugly(n),
        "gen_ai.provider.name": ugly(n),
        "gen_ai.usage.input_tokens": 70,
        "gen_ai.usage.output_tokens": 7,
        "error.type": ugly(n),
    }
    trace.span(ugly(n), model, start=trace.cursor + 0.2, end=trace.cursor + 0.3, parent=trace.root, error=ugly(n))
    trace.cursor += 1.0
    trace.end(user=ugly(n), says=ugly(n), error=ugly(n) if n % 5 == 0 else None)
    resource: dict[str, Any] = {"service.name": ugly(n)}
    told = n % 5  # what names the variant: an attribute, the version, nothing but the model, a deployer, each span
    if told == 0:
        resource["reach.variant"] = ugly(1 + n // 5 % 4)
    elif told == 1:
        resource["service.version"] = ugly(1 + n // 5 % 4)
    elif told == 3:  # these pass, as they have the form of a name
        resource["reach.variant" if n % 10 == 3 else "service.version"] = f"release-{n}"
    elif told == 4:  # this has the form too, but stands on spans alone
        resource["service.version"] = f"release-{n - 1}"
        on_span = attribute("reach.variant", f"{MARK}-{n}" if n > 4 else ON_SPANS)
        for span in trace.spans:
            span["attributes"].append(on_span)
    if n % 7 == 0:
        resource["reach.task"] = ugly(n)
    if n == 0:
        resource["reach.variant"] = "overflow"  # a name of our own
    attributes = [attribute(key, value) for key, value in resource.items()]
    scope = {"scope": {"name": ugly(n), "version": ugly(n)}, "spans": trace.spans}
    adds = Counter(
        {"reach_runs_total": 1, "reach_tool_calls_total": 3, "reach_handoffs_total": 1, "reach_tokens_total": 77}
    )
    return json.dumps({"resourceSpans": [{"resource": {"attributes": attributes}, "scopeSpans": [scope]}]}), adds


def flood() -> tuple[list[str], Counter[str]]:
    """Write all runs; also give what they add up to."""
    bodies: list[str] = []
    sums: Counter[str] = Counter()
    for n in range(RUNS):
        body, adds = request(n)
        bodies.append(body)
        sums += adds
    return bodies, sums


def samples_of(text: str, *, is_openmetrics: bool) -> list[Sample]:
    """Parse an exposition; raises ``ValueError`` for one that is none."""
    parse: Any = openmetrics if is_openmetrics else plain_text
    return [sample for family in parse(text) for sample in family.samples if sample.name.startswith("reach_")]


def total(samples: Iterable[Sample], name: str, **labels: str) -> float:
    """Add up a metric over all series that have these labels."""
    return sum(s.value for s in samples if s.name == name and labels.items() <= s.labels.items())


def check(samples: list[Sample], sums: Counter[str], budget: int, variants: Iterable[str] | None = None) -> None:
    """Check what is exposed after the flood: labels, budget, what went to ``overflow``, and the sums."""
    sets: defaultdict[tuple[str, str], set[tuple[tuple[str, str], ...]]] = defaultdict(set)
    for sample in samples:
        for name, value in sample.labels.items():
            assert MARK not in value, (sample.name, name, value)
            assert re.fullmatch(r"[\w.:/@+*-]+", value), (sample.name, name, value)
        if variants is not None and "variant" in sample.labels:
            assert sample.labels["variant"] in {*variants, "other", "unknown", "overflow"}, sample
        if variants is None:
            assert sample.labels.get("variant") != ON_SPANS, sample
        if "task" in sample.labels:
            assert sample.labels["task"] in ("ticket", "unmatched"), sample
            own = tuple(item for item in sample.labels.items() if item[0] != "le")
            sets[sample.name, sample.labels["task"]].add(own)
    for (name, task), found in sets.items():
        assert len(found) <= budget, (name, task)
    for name, expected in sums.items():
        assert total(samples, name) == expected, name
    assert total(samples, "reach_violations_total", rule="forbidden_tool", task="ticket") > 0
    if variants is not None:
        assert total(samples, "reach_runs_total", variant=ON_SPANS) == 1, "declared, so it shows"
    beyond = total(samples, "reach_runs_total", variant="overflow")
    assert total(samples, "reach_scorer_label_overflow_total", metric="reach_runs_total") == beyond
    assert (beyond > 0) is (variants is None)
