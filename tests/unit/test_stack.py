"""Check the parts of ``make stack`` that need no foreign program."""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.stack import ports, programs, render, scale
from tools.stack.folder import Folder
from tools.stack.process import DIRECT, Part, StackError, clean_environment
from tools.stack.webhook import Notice, Webhook

DASHBOARDS = programs.ROOT / "dashboards"
RULES = sorted((DASHBOARDS / "prometheus" / "rules").glob("*.yml"))
CONFIGS = [DASHBOARDS / "prometheus" / "prometheus.yml", DASHBOARDS / "alertmanager" / "alertmanager.yml"]


# Time scale.


@pytest.mark.parametrize(
    ("text", "scaled"),
    [("5m", "15s"), ("15s", "750ms"), ("1m30s", "4500ms"), ("1d", "4320s"), ("0s", "0s"), ("0", "0"), ("1ms", "1ms")],
)
def test_a_duration_is_divided(text: str, scaled: str) -> None:
    """The result is a duration again; what is not 0 does not become 0."""
    assert scale.duration(text, 20) == scaled


def test_what_is_no_duration_is_refused() -> None:
    """A misspelt duration is an error, not left as it is."""
    with pytest.raises(ValueError, match="5 minutes"):
        scale.duration("5 minutes", 20)


@pytest.mark.parametrize(
    ("text", "scaled"),
    [
        ("rate(x_total[5m])", "rate(x_total[15s])"),
        ("task:x:ratio_rate5m / task:x:ratio_rate1h", "task:x:ratio_rate5m / task:x:ratio_rate1h"),
        ("avg_over_time(a:rate5m[1d:15m] offset 1d)", "avg_over_time(a:rate5m[4320s:45s] offset 4320s)"),
        ("max_over_time(x[1h:])", "max_over_time(x[180s:])"),
        ("x{window=\"5m\", y=~'1h|2h'} offset 5m", "x{window=\"5m\", y=~'1h|2h'} offset 15s"),
        ("x # over 5m\n+ y[5m]", "x # over 5m\n+ y[15s]"),
        ("quantile(0.95, x) > 1e5 or y > 300", "quantile(0.95, x) > 1e5 or y > 300"),
        (r'x{a="say \"5m\""}[5m]', r'x{a="say \"5m\""}[15s]'),
    ],
)
def test_in_an_expression_only_durations_change(text: str, scaled: str) -> None:
    """Names, label values, numbers and comments stay, whatever they look like."""
    assert scale.expression(text, 20) == scaled


def test_by_one_nothing_changes() -> None:
    """The committed files, divided by 1, mean what they meant."""
    for file in [*RULES, *CONFIGS]:
        document = yaml.safe_load(file.read_text())
        assert _in_ms(scale.configuration(document, 1)) == _in_ms(document), file.name


@pytest.mark.parametrize("file", [*RULES, *CONFIGS], ids=lambda file: file.name)
def test_every_duration_of_the_committed_files_is_divided(file: Path) -> None:
    """Each value that reads as a duration is 20 times shorter afterwards, and text for people is the same."""
    before = yaml.safe_load(file.read_text())
    after = scale.configuration(before, 20)
    compared = list(_pairs(before, after))
    durations = [(key, old, new) for key, old, new in compared if re.fullmatch(r"(\d+(ms|[smhdwy]))+", str(old))]
    assert len(durations) > 2
    for key, old, new in durations:
        assert _ms(new) == pytest.approx(_ms(old) / 20), key
    for key, old, new in compared:
        if key in {"summary", "description", "runbook_url", "dashboard_url", "record", "alert", "task", "severity"}:
            assert old == new


def _pairs(before: Any, after: Any, key: str = "") -> Iterator[tuple[str, Any, Any]]:
    if isinstance(before, dict):
        assert list(before) == list(after)
        for name, value in before.items():
            yield from _pairs(value, after[name], name)
    elif isinstance(before, list):
        for old, new in zip(before, after, strict=True):
            yield from _pairs(old, new, key)
    else:
        yield key, before, after


def _ms(text: str) -> float:
    units = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
    return sum(int(number) * units[unit] for number, unit in re.findall(r"(\d+)(ms|[smhdw])", text))


def _in_ms(document: Any) -> Any:
    """Spell every duration in one way."""
    if isinstance(document, dict):
        return {key: _in_ms(value) for key, value in document.items()}
    if isinstance(document, list):
        return [_in_ms(value) for value in document]
    if isinstance(document, str) and not document.isidentifier():
        return re.sub(r"\b(?:\d+(?:ms|[smhdw]))+\b", lambda found: f"{_ms(found[0])}ms", document)
    return document


# Configuration.


def test_prometheus_is_configured_for_this_stack(tmp_path: Path) -> None:
    """Targets are the stack's, links lead to its scorer, and rules come in when it says so."""
    config = render.prometheus(
        DASHBOARDS / "prometheus", tmp_path / "prometheus", page="http://127.0.0.1:1234", factor=20
    )
    render.targets(config.parent, "scorers", ["127.0.0.1:1", "127.0.0.1:2"])
    assert "rule_files" not in yaml.safe_load(config.read_text())
    render.with_rules(config)
    loaded = yaml.safe_load(config.read_text())
    assert loaded["rule_files"] == ["rules/*.yml"]
    assert loaded["global"]["scrape_interval"] == "750ms"
    labels = loaded["global"]["external_labels"]
    assert labels["reach_runbooks"] == "http://127.0.0.1:1234/runbook"
    assert labels["reach_grafana"] == "http://127.0.0.1:3000"
    assert yaml.safe_load((config.parent / "targets" / "scorers.yml").read_text()) == [
        {"targets": ["127.0.0.1:1", "127.0.0.1:2"]}
    ]


def test_alertmanager_tells_the_webhook_and_nobody_else(tmp_path: Path) -> None:
    """Whoever is told in the committed file, in the stack it is the webhook; a receiver that tells nobody stays so."""
    source = tmp_path / "source.yml"
    source.write_text(
        "route: {receiver: first, group_wait: 10s}\n"
        "receivers: [{name: first}, {name: nobody}, {name: mail, email_configs: [{to: a@example.com}]}]\n"
    )
    made = yaml.safe_load(
        render.alertmanager(source, tmp_path / "made.yml", webhook="http://w/", factor=20).read_text()
    )
    assert made["route"] == {"receiver": "first", "group_wait": "500ms"}
    told = [{"url": "http://w/", "send_resolved": True}]
    assert made["receivers"] == [
        {"name": "first", "webhook_configs": told},
        {"name": "nobody"},
        {"name": "mail", "webhook_configs": told},
    ]


def test_a_missing_source_is_named(tmp_path: Path) -> None:
    """An incomplete checkout is told of as such."""
    with pytest.raises(StackError, match=r"nowhere.prometheus\.yml is not there"):
        render.prometheus(tmp_path / "nowhere", tmp_path / "to", page="", factor=1)


# Ports and programs.


def test_a_taken_port_is_left_for_the_next_free_one() -> None:
    """Ports that others prefer are not used either."""
    with socket.socket() as taken:
        taken.bind((ports.HOST, 0))
        taken.listen()
        port = int(taken.getsockname()[1])
        chosen = ports.choose({"a": port, "b": port + 1})
    assert chosen["a"] > port
    assert chosen["a"] != chosen["b"]


def test_each_scorer_has_two_ports_of_its_own() -> None:
    """No two parts share a port, with as many scorers as there may be."""
    wanted = ports.wanted(ports.SCORERS_MAX)
    assert len(set(wanted.values())) == len(wanted)
    assert len(set(ports.choose_any(wanted).values())) == len(wanted)


def test_all_missing_programs_are_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """With how to get each, so that one round of installing is enough."""
    monkeypatch.setenv("PATH", "")
    with pytest.raises(programs.MissingProgram) as missing:
        programs.find_all("prometheus", "alertmanager")
    assert "prometheus is not here: apt-get install prometheus" in str(missing.value)
    assert "alertmanager is not here: apt-get install prometheus-alertmanager" in str(missing.value)


def test_a_variable_names_the_program(tmp_path: Path) -> None:
    """It wins over what is found elsewhere; one that names nothing is an error and no reason to take another."""
    mine = tmp_path / "mine"
    mine.write_text("#!/bin/sh\n")
    mine.chmod(0o755)
    assert programs.find("prometheus", {"REACH_TEST_PROMETHEUS": str(mine), "PATH": os.environ["PATH"]}) == mine
    with pytest.raises(programs.MissingProgram):
        programs.find("amtool", {"REACH_TEST_AMTOOL": str(tmp_path / "none"), "PATH": os.environ["PATH"]})


# Folder and processes.


def test_a_folder_with_other_files_is_not_emptied(tmp_path: Path) -> None:
    """A mistyped --folder costs nobody their files."""
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(StackError, match="not the stack's"), Folder(tmp_path):
        pass
    assert (tmp_path / "thesis.txt").exists()


def test_a_folder_is_emptied_unless_it_is_to_be_kept(tmp_path: Path) -> None:
    """The next stack begins with nothing; with ``keep`` it goes on with what is there."""
    path = tmp_path / "run"
    with Folder(path):
        (path / "logs").mkdir()
        (path / "logs" / "a.log").write_text("x")
    with Folder(path, keep=True):
        assert (path / "logs" / "a.log").exists()
    with Folder(path):
        assert not (path / "logs").exists()


def test_a_folder_whose_processes_still_run_is_refused(tmp_path: Path) -> None:
    """Also when the stack itself was killed: its parts hold the lock, and are named."""
    path = tmp_path / "run"
    sleeper = None
    try:
        with Folder(path) as folder:
            sleeper = _part(tmp_path, "import time; time.sleep(60)", inherits=[folder.lock])
            sleeper.start()
            folder.note([sleeper.pid or 0])
        with pytest.raises(StackError, match=f"process ids: {sleeper.pid}"), Folder(path):
            pass
    finally:
        if sleeper is not None:
            sleeper.kill()
    with Folder(path):
        pass


def test_a_part_that_ends_by_itself_is_told_of_with_its_last_words(tmp_path: Path) -> None:
    """Exit code, and the end of what it said."""
    part = _part(tmp_path, "print('no such file: x.yaml'); raise SystemExit(3)", is_ready=lambda: False)
    part.start()
    with pytest.raises(StackError, match=r"(?s)part ended by itself \(exit code 3\).*no such file: x\.yaml"):
        part.wait()


def test_a_part_that_was_told_to_end_is_no_fault(tmp_path: Path) -> None:
    """It can be ended, killed and started again."""
    part = _part(tmp_path, "import time; time.sleep(60)")
    ran: list[bool] = []
    for end in (part.stop, part.kill):
        part.start()
        part.wait()
        ran.append(part.runs)
        end()
        ran.append(part.runs)
        part.check()
    assert ran == [True, False, True, False]


def test_parts_have_only_the_settings_that_they_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings of the developer's shell do not change the stack, and no proxy stands before loopback."""
    monkeypatch.setenv("REACH_TASKS", "elsewhere")
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    monkeypatch.setenv("NO_PROXY", "example.com")
    environment = clean_environment()
    assert not [name for name in environment if name.startswith(("REACH_", "OTEL_"))]
    assert environment["NO_PROXY"] == "example.com,127.0.0.1,localhost"


def _part(folder: Path, code: str, **options: Any) -> Part:
    return Part("part", [sys.executable, "-c", code], folder / "part.log", **options)


# Webhook.


def test_the_webhook_keeps_each_alert_of_a_notification() -> None:
    """With labels, texts and whether it fires; what is no JSON is refused and kills nothing."""
    seen: list[Notice] = []
    (port,) = ports.choose_any(["webhook"]).values()
    alerts = [
        {"status": status, "labels": {"alertname": name}, "annotations": {"summary": "s"}}
        for status, name in (("firing", "A"), ("resolved", "B"))
    ]
    with Webhook(port, seen.append) as webhook:
        with pytest.raises(urllib.error.HTTPError) as refused:
            DIRECT.open(webhook.url, b"{", timeout=5)
        refused.value.close()
        assert refused.value.code == 400
        DIRECT.open(webhook.url, json.dumps({"receiver": "on-call", "alerts": alerts}).encode(), timeout=5).close()
        assert [(notice.name, notice.fires) for notice in webhook.notices] == [("A", True), ("B", False)]
    assert seen == webhook.notices
    assert seen[0].annotations == {"summary": "s"}
    assert seen[0].at <= time.monotonic()
