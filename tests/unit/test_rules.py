"""The rules of Prometheus and Alertmanager count what they say, and name only what there is."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from math import ceil, sqrt
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
import yaml

from reach_otel.publish.catalog import METRICS, SERVICE_METRICS, Metric
from reach_otel.service import runbook
from tests.support import programs, promql

ROOT = Path(__file__).parents[2] / "dashboards"
PROMETHEUS = ROOT / "prometheus"
ALERTMANAGER = ROOT / "alertmanager" / "alertmanager.yml"
TESTS = sorted((PROMETHEUS / "tests").glob("*.yml"))
CONFIG: dict[str, Any] = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text(encoding="utf-8"))

SCRAPES_MIN = 4
LOOKBACK = timedelta(minutes=5)
OF_THE_TARGET = frozenset({"job", "instance", "pod"})  # which the scrape adds to every series
FOLDED = frozenset({"instance", "pod"})
PROMETHEUS_OWN = {"up": OF_THE_TARGET}
LEVELS = frozenset({"task", "task_variant", "task_milestone", "task_level", "task_k", "task_finding", "task_stage"})
LEVELS |= {"task_rule", "task_action", "instance", "instance_task_rule", "instance_task_action"}

SPEC_ALERTS = frozenset(
    """ReachHighLayerLow ReachCoverageDropped ReachMilestoneStalled ReachAgentsStuck ReachHallucinatedSuccess
    ReachFabricatedArguments ReachTimeoutsHigh ReachStabilityLow ReachSensitiveDataLeak ReachAccessViolation
    ReachScorerDown ReachScorerDropping ReachNoRuns""".split()
)
ABOUT_SCORERS = frozenset({"ReachScorerDown", "ReachScorerDropping"})

_DURATION = re.compile(r"(\d+)(ms|[smhdw])")
_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}


class Rule(NamedTuple):
    """One rule, and the group it stands in."""

    group: str
    interval: timedelta
    body: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.body.get("record") or self.body["alert"])

    @property
    def labels(self) -> dict[str, str]:
        return self.body.get("labels") or {}


def name_of(rule: Rule) -> str:
    return rule.name


def seconds(text: str) -> timedelta:
    assert _DURATION.sub("", text) == "", text
    return timedelta(milliseconds=sum(int(number) * _MS[unit] for number, unit in _DURATION.findall(text)))


SCRAPE = seconds(CONFIG["global"]["scrape_interval"])


def rules_of(file: str) -> list[Rule]:
    groups = yaml.safe_load((PROMETHEUS / "rules" / file).read_text(encoding="utf-8"))["groups"]
    default = CONFIG["global"]["evaluation_interval"]
    return [Rule(g["name"], seconds(g.get("interval", default)), body) for g in groups for body in g["rules"]]


RECORDINGS = rules_of("recording.yml")
ALERTS = rules_of("alerts.yml")
RULES = (*RECORDINGS, *ALERTS)


def metrics() -> Iterator[tuple[str, Metric]]:
    """Yield every name under which a metric can be asked for."""
    for metric in (*METRICS, *SERVICE_METRICS):
        suffixes = {"histogram": ("_bucket", "_sum", "_count"), "info": ("_info",)}.get(metric.type, ("",))
        for suffix in suffixes:
            yield metric.name.removesuffix(suffix) + suffix, metric


EXPOSED = dict(metrics())


def labels_of(name: str) -> frozenset[str]:
    """Return all labels that series of this name have.

    Those of a recorded one follow from its first aggregation: `without` and what the rules below it have.
    """
    if name in PROMETHEUS_OWN:
        return PROMETHEUS_OWN[name]
    if name in EXPOSED:
        return OF_THE_TARGET | set(EXPOSED[name].all_labels) | ({"le"} if name.endswith("_bucket") else set())
    level = name.split(":")[0]
    assert level in LEVELS, name
    if level == "instance":
        return OF_THE_TARGET | {"lost"}
    if level.startswith("instance_"):
        return OF_THE_TARGET | set(level.split("_")[1:])
    of_milestone = {"milestone", "type", "layer"} if level == "task_milestone" else set()
    return frozenset({"job", "task"} | of_milestone | (set(level.split("_")[1:]) - {"milestone"}))


def run(*command: str | Path) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# What the programs themselves say.


def test_prometheus_takes_the_configuration() -> None:
    """The configuration with its rules and targets is valid."""
    said = run(programs.need("promtool"), "check", "config", PROMETHEUS / "prometheus.yml")
    assert f"{len(RECORDINGS)} rules found" in said
    assert f"{len(ALERTS)} rules found" in said


@pytest.mark.parametrize("file", TESTS, ids=lambda file: file.stem)
def test_the_rules_count_right(file: Path) -> None:
    """Alerts fire, stay silent and resolve as they should, and recorded numbers are those worked out by hand."""
    run(programs.need("promtool"), "test", "rules", file)


USUAL = """\
          sum without (task) (task:reach_runs:increase30m offset 1w or task:reach_runs:increase30m offset 1d) >= 10
"""

# Each change makes one of the files above fail. The texts must be there, so that none goes stale.
BREAKS = [
    (
        "recording_now",
        "recording.yml",
        "sum without (instance, pod, variant, out",
        "avg without (instance, pod, variant, out",
    ),
    ("recording_now", "recording.yml", "task:reach_runs:increase5m >= 20", "task:reach_runs:increase5m >= 1"),
    ("recording_now", "recording.yml", "and on (job, instance) (up offset 15m == 1)", ""),
    ("recording_now", "recording.yml", "(up offset 15m == 1)", "(up offset 15m)"),
    ("recording_hour", "recording.yml", ", 0.000001", ", 0.0000000000000001"),
    ("recording_hour", "recording.yml", 'outcome!~"evicted|overflow"', 'outcome!="evicted"'),
    ("recording_hour", "recording.yml", 'reach_actions_total{class!="overflow"}', "reach_actions_total"),
    ("recording_hour", "recording.yml", 'reach_tokens_total{class!="overflow"}', "reach_tokens_total"),
    ("recording_hour", "recording.yml", '{digested!="overflow"}', ""),
    ("recording_hour", "recording.yml", 'action!~"masked|overflow"', 'action!="masked"'),
    ("recording_hour", "recording.yml", 'class="overflow"', 'class="none"'),
    ("page", "alerts.yml", "task:reach_high_layer:ratio < 0.5", "task:reach_high_layer:ratio < 0.6"),
    ("page", "alerts.yml", "task:reach_high_layer_runs:increase >= 0.25", "task:reach_high_layer_runs:increase >= 0"),
    ("page", "alerts.yml", "ratio_rate1h < 0.5", "ratio_rate1h < 0.4"),
    ("page", "alerts.yml", "task:reach_runs:increase1h >= 40", "task:reach_runs:increase1h >= 20"),
    ("page", "alerts.yml", "for: 2m", "for: 1m"),
    ("page", "alerts.yml", "keep_firing_for: 5m", "keep_firing_for: 1m"),
    ("page", "alerts.yml", "| urlquery", ""),
    ("runs", "alerts.yml", "> 9 *", "> 0 *"),
    ("runs", "alerts.yml", "task:reach_runs:increase15m >= 20", "task:reach_runs:increase15m >= 0"),
    ("runs", "alerts.yml", 'type!~"fallback|overflow"', 'type!~"overflow"'),
    ("runs", "alerts.yml", "task:reach_live_runs:sum >= 5", "task:reach_live_runs:sum >= 1"),
    ("runs", "alerts.yml", "task:reach_stability:falls >= 2", "task:reach_stability:falls >= 1"),
    ("runs", "alerts.yml", "> 3 * task:reach_stability:chance", "> 0 * task:reach_stability:chance"),
    ("runs", "alerts.yml", 'sortByLabel "instance" .', "."),
    ("scorers", "alerts.yml", "unless ignoring (instance, pod)", "and ignoring (instance, pod)"),
    ("scorers", "alerts.yml", '|runs_incomplete"} >= 10', '|runs_incomplete"} >= 1'),
    ("scorers", "alerts.yml", "        for: 5m\n        keep_firing_for: 1m\n", "        keep_firing_for: 1m\n"),
    ("scorers", "alerts.yml", f"          and\n{USUAL}", ""),
    ("silence", "alerts.yml", " offset 1d) >= 10", " offset 1d or task:reach_runs:increase1d / 48) >= 10"),
    ("silence", "recording.yml", "task:reach_runs:increase30m offset 1w", "task:reach_runs:increase30m offset 1d"),
    ("silence", "alerts.yml", 'increase30m{task!="unmatched"} == 0', "increase30m == 0"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("test", "file", "old", "new"), BREAKS)
def test_a_broken_rule_is_found(tmp_path: Path, test: str, file: str, old: str, new: str) -> None:
    """The tests of the rules can fail: a changed threshold, floor, wait or aggregation does not pass."""
    for rules in (PROMETHEUS / "rules").glob("*.yml"):
        text = rules.read_text(encoding="utf-8")
        if rules.name == file:
            assert old in text
            text = text.replace(old, new)
        (tmp_path / "rules").mkdir(exist_ok=True)
        (tmp_path / "rules" / rules.name).write_text(text, encoding="utf-8")
    (tmp_path / "tests").mkdir()
    source = PROMETHEUS / "tests" / f"{test}.yml"
    (tmp_path / "tests" / source.name).write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    run(programs.need("promtool"), "check", "rules", *(tmp_path / "rules").glob("*.yml"))
    with pytest.raises(AssertionError, match="FAILED"):
        run(programs.need("promtool"), "test", "rules", tmp_path / "tests" / source.name)


def test_alertmanager_takes_its_configuration() -> None:
    """The configuration is valid."""
    assert "SUCCESS" in run(programs.need("amtool"), "check-config", ALERTMANAGER)


@pytest.mark.parametrize("alert", ALERTS, ids=name_of)
def test_every_alert_finds_the_receiver(alert: Rule) -> None:
    """No alert ends nowhere."""
    matchers = (f"{name}={value}" for name, value in {"alertname": alert.name, **alert.labels}.items())
    command = ("config", "routes", "test", f"--config.file={ALERTMANAGER}", "--verify.receivers=on-call")
    assert run(programs.need("amtool"), *command, *matchers).strip() == "on-call"


# Conventions.


def test_every_alert_of_the_specification_is_there() -> None:
    """All 13, and no other."""
    assert {alert.name for alert in ALERTS} == SPEC_ALERTS


@pytest.mark.parametrize("alert", ALERTS, ids=name_of)
def test_every_alert_says_what_who_is_woken_needs(alert: Rule) -> None:
    """Severity, summary, description, and links that lead to a section of the runbook and to a dashboard."""
    notes = alert.body["annotations"]
    assert alert.labels["severity"] in ("critical", "warning")
    assert len(notes["summary"]) <= 120
    assert notes["description"] != notes["summary"]
    base, anchor = notes["runbook_url"].split("#")
    assert base == "{{ $externalLabels.reach_runbooks }}"
    assert anchor == alert.name.lower()
    assert anchor in {section.anchor for section in runbook.read(runbook.source()).sections}
    base, path = notes["dashboard_url"].split("/d/")
    assert base == "{{ $externalLabels.reach_grafana }}"
    uid, _, query = path.partition("?")
    assert uid in dashboards()
    for name in re.findall(r"var-(\w+)=", query):
        assert name in dashboards()[uid]
    if alert.name not in ABOUT_SCORERS and "task" in notes["description"]:
        assert "task" not in query or "{{ $labels.task | urlquery }}" in query


def dashboards() -> dict[str, set[str]]:
    """Return the variables of each dashboard by its uid."""
    found = [json.loads(file.read_text(encoding="utf-8")) for file in (ROOT / "json").glob("*.json")]
    return {board["uid"]: {variable["name"] for variable in board["templating"]["list"]} for board in found}


def test_alerts_about_tasks_lead_to_their_runs() -> None:
    """From the alert to the list of runs is one click, filtered by the finding where there is one."""
    for alert in ALERTS:
        link = alert.body["annotations"].get("runs_url", "")
        about_a_task = "$labels.task" in alert.body["annotations"]["summary"]
        assert bool(link) == about_a_task, alert.name
        if link:
            assert link.startswith("{{ $externalLabels.reach_runs }}?task={{ $labels.task | urlquery }}")


def test_the_runbook_has_a_section_for_each_alert_only() -> None:
    """No section is left over from an alert that is gone."""
    titles = {section.title for section in runbook.read(runbook.source()).sections}
    assert titles - {"First look"} == SPEC_ALERTS


def test_the_bases_of_links_are_there_and_taken_off() -> None:
    """Every external label that a link begins with is set, is an address, and does not reach Alertmanager."""
    text = (PROMETHEUS / "rules" / "alerts.yml").read_text(encoding="utf-8")
    used = set(re.findall(r"\$externalLabels\.(\w+)", text))
    external = CONFIG["global"]["external_labels"]
    assert used == set(external)
    (drop,) = CONFIG["alerting"]["alert_relabel_configs"]
    assert drop["action"] == "labeldrop"
    assert all(re.fullmatch(drop["regex"], name) for name in external)
    assert all(urlsplit(address).scheme == "http" for address in external.values())
    kept = {label for alert in ALERTS for label in alert.labels} | {"job", "task", "rule", "lost", "instance"}
    assert not [label for label in kept if re.fullmatch(drop["regex"], label)]


@pytest.mark.parametrize("rule", RULES, ids=name_of)
def test_every_name_in_a_rule_is_exposed_or_recorded(rule: Rule) -> None:
    """Every metric exists, with every label that the rule asks it for; a recorded one is recorded."""
    recorded = {recording.name for recording in RECORDINGS}
    for use in expressions(rule):
        assert use.metric in EXPOSED or use.metric in recorded or use.metric in PROMETHEUS_OWN, use
        assert use.labels <= labels_of(use.metric), use
    for named in re.findall(r"(?:without|ignoring)\s*\(([^)]*)\)", rule.body["expr"]):
        labels = {label.strip() for label in named.split(",")}
        assert labels <= FOLDED.union(*(labels_of(use.metric) for use in expressions(rule))), named


def expressions(rule: Rule) -> list[promql.Use]:
    """Return what the rule selects: in its expression, and in the queries of its texts."""
    queries = [rule.body["expr"]]
    for text in (rule.body.get("annotations") or {}).values():
        queries += [found.replace("%q", '"x"').replace('\\"', '"') for found in _QUERY.findall(text)]
    return [use for query in queries for use in promql.uses(query)]


_QUERY = re.compile(r'printf "((?:[^"\\]|\\.)*%q(?:[^"\\]|\\.)*)"')


def test_queries_in_texts_are_seen() -> None:
    """The check above reads what the texts ask for, too."""
    (alert,) = (alert for alert in ALERTS if alert.name == "ReachHighLayerLow")
    assert "reach_break_points_total" in {use.metric for use in expressions(alert)}


@pytest.mark.parametrize("rule", RULES, ids=name_of)
def test_values_in_matchers_are_possible(rule: Rule) -> None:
    """A label value that a rule compares with is one that code can give; else the rule would never hold."""
    known = {
        "outcome": {"success", "partial", "failed", "abandoned", "evicted"},
        "class": {"effective", "off_task", "repeat", "stuck", "cut_off", "retry", "ineffective", "answer", "other"}
        | {"overflow"},
        "digested": {"true", "false"},
        "finding": {"stuck", "hallucinated_success", "fabricated"},
        "tier": {"outcome", "trajectory", "system"},
        "action": {"masked"},
        "lost": {recording.labels["lost"] for recording in RECORDINGS if recording.labels},
        "job": {job["job_name"] for job in CONFIG["scrape_configs"]},
    }
    for use in expressions(rule):
        for label, sign, value in use.matchers:
            if sign in ("=", "=~") and value != "x" and label != "__name__":
                assert set(value.split("|")) <= known[label], (label, value)


@pytest.mark.parametrize("rule", RULES, ids=name_of)
def test_windows_hold_four_scrapes(rule: Rule) -> None:
    """A rate over fewer scrapes would be absent after one that failed; gauges and recorded series need none."""
    for use in expressions(rule):
        if use.window is not None:
            assert use.window >= SCRAPES_MIN * SCRAPE, use
        if use.function in promql.COUNTING:
            assert EXPOSED[use.metric].type in ("counter", "histogram"), use


@pytest.mark.parametrize("rule", RULES, ids=name_of)
def test_series_are_added_up_never_averaged(rule: Rule) -> None:
    """What scorers expose is summed (or, where all say the same, the largest taken), and folds replicas by name."""
    for operator, over in promql.aggregations(rule.body["expr"]):
        assert operator in ("sum", "max"), (operator, over)
    for named in re.findall(r"without\s*\(([^)]*)\)", rule.body["expr"]):
        labels = {label.strip() for label in named.split(",")}
        # Over what is exposed; what is recorded for a task has no replicas any more.
        assert labels >= FOLDED or not labels & FOLDED, named
    assert " by (" not in rule.body["expr"], "keeps no label of a cluster"


def test_recorded_series_are_fresh_when_they_are_read() -> None:
    """A group is evaluated more often than Prometheus looks back, or its series would come and go."""
    for rule in RULES:
        assert SCRAPE <= rule.interval < LOOKBACK, rule.group


def test_every_recording_says_what_it_answers() -> None:
    """Before each rule stands a comment, or another rule that its comment is for as well."""
    lines = (PROMETHEUS / "rules" / "recording.yml").read_text(encoding="utf-8").splitlines()
    first = [n for n, line in enumerate(lines) if "- record:" in line and lines[n - 1].strip() in ("", "rules:")]
    assert [lines[n].strip() for n in first] == []


def test_alerts_that_need_a_task_leave_unmatched_out() -> None:
    """Runs without a task have no success and are not awaited; whatever is about reach has no series for them."""
    for name in ("ReachStabilityLow", "ReachNoRuns"):
        assert any('task!="unmatched"' in alert.body["expr"] for alert in ALERTS if alert.name == name)


# Alertmanager.


def test_one_scorer_down_does_not_hide_what_the_others_see() -> None:
    """Alerts about runs are kept back when no scorer is up, and only then."""
    rules = yaml.safe_load(ALERTMANAGER.read_text(encoding="utf-8"))["inhibit_rules"]
    about_scorers = [rule for rule in rules if 'alertname="ReachScorerDown"' in rule["source_matchers"]]
    assert len(about_scorers) == 2
    assert all('scope="all"' in rule["source_matchers"] for rule in about_scorers)


def test_nothing_is_kept_back_for_another_job() -> None:
    """Two systems that share an Alertmanager, by job or by cluster, are told of apart."""
    config = yaml.safe_load(ALERTMANAGER.read_text(encoding="utf-8"))
    assert {"cluster", "job"} <= set(config["route"]["group_by"])
    assert all({"cluster", "job"} <= set(rule["equal"]) for rule in config["inhibit_rules"])


def test_every_name_in_alertmanager_is_an_alert() -> None:
    """A slip in an alert's name would make a rule that never holds."""
    text = re.sub(r"#.*", "", ALERTMANAGER.read_text(encoding="utf-8"))
    assert set(re.findall(r"Reach\w+", text)) <= SPEC_ALERTS


def test_the_time_to_page_is_the_one_that_is_stated() -> None:
    """The runbook's numbers follow from the window, the wait, the evaluation and Alertmanager's group_wait."""
    (alert,) = (alert for alert in ALERTS if alert.name == "ReachHighLayerLow")
    route = yaml.safe_load(ALERTMANAGER.read_text(encoding="utf-8"))["route"]["routes"][0]
    waits = seconds(alert.body["for"]) + seconds(route["group_wait"])
    steps = SCRAPE + 2 * alert.interval
    (variance,) = re.findall(r"task:reach_high_layer_runs:increase >= ([\d.]+)", alert.body["expr"])
    told = " ".join(runbook.source().split())
    for runs, low in itertools.product((50, 200), (0.35, 0.0)):
        enough = 0.5 - sqrt(float(variance) / runs)
        window = (timedelta(minutes=5) - SCRAPE) * ((0.85 - enough) / (0.85 - low))  # from its first scrape to its last
        first, last = (said(span) for span in (window + waits, window + waits + steps))
        assert f"{first} to {last}" in told, (runs, first, last)
        assert f"{first} ... {last}" in (PROMETHEUS / "tests" / "page.yml").read_text(encoding="utf-8")


def said(span: timedelta) -> str:
    minutes, rest = divmod(ceil(span.total_seconds()), 60)
    return f"{minutes} min {rest} s" if rest else f"{minutes} min"
