"""Run docker-compose.yml without containers: its commands, variables and mounted files, as processes on loopback.

What differs from Docker is spelled once, in ``Here``: names of services become free ports of this machine, and paths
inside of containers become paths outside. Grafana alone is not run.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support import compose, programs
from tests.support.compose import ROOT, Service
from tests.unit.test_image import health_check
from tools import up
from tools.stack.ports import choose_any
from tools.stack.process import DIRECT, Part, answers

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

PATIENCE_SECONDS: Final = 60.0
SERVICES: Final = compose.services()
LISTENS: Final = (
    *((name, port) for name in ("collector", "scorer-1", "scorer-2") for port in (4317, 4318)),
    ("collector", 8888),
    ("collector", 13133),
    ("jaeger", 4317),
    ("jaeger", 13133),
    ("jaeger", 16685),
    ("jaeger", 16686),
    ("prometheus", 9090),
    ("alertmanager", 9093),
)
JAEGER_PORTS: Final = {"OTLP": 4317, "HEALTH": 13133, "QUERY_GRPC": 16685, "UI": 16686}


class Here:
    """Know where things of the file are on this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        chosen = choose_any(f"{name}:{port}" for name, port in LISTENS)
        self.ports = {(name, port): chosen[f"{name}:{port}"] for name, port in LISTENS}
        shutil.copytree(ROOT / "dashboards" / "prometheus", folder / "dashboards" / "prometheus")
        for file in (folder / "dashboards" / "prometheus" / "targets").glob("*.yml"):
            file.write_text(self.addresses(file.read_text()))

    def url(self, name: str, port: int, path: str = "/") -> str:
        return f"http://127.0.0.1:{self.ports[name, port]}{path}"

    def addresses(self, text: str) -> str:
        """Put the places on this machine for what the network of Docker would resolve."""
        for (name, port), here in self.ports.items():
            text = re.sub(rf"\b{name}:{port}\b", f"127.0.0.1:{here}", text)
        return text

    def inside(self, service: Service, text: str) -> str:
        """Put what a container sees into terms of this machine: paths, addresses, its own ports."""
        mounts = {target: str(self._outside(source)) for target, source in service.mounts.items()}
        if mounts:
            paths = "|".join(map(re.escape, mounts))
            text = re.sub(rf"(?<![\w/.])({paths})(?=[/\"}}]|$)", lambda found: mounts[found[1]], text)
        text = self.addresses(text)
        for (name, port), here in self.ports.items():
            if name == service.name:
                text = re.sub(rf"(?<![\w.]){port}\b", str(here), text)
        return text.replace("0.0.0.0", "127.0.0.1")

    def _outside(self, source: str) -> Path:
        if source.startswith(".") and source != "./dashboards/prometheus":
            return ROOT / source
        (self.folder / source).mkdir(parents=True, exist_ok=True)
        return self.folder / source

    def part(self, name: str, program: list[str | Path], is_ready: Callable[[], bool] | None, **more: Any) -> Part:
        service = SERVICES[name]
        command = [*program, *(self.inside(service, word) for word in service.command), *more.pop("flags", ())]
        env = {key: self.inside(service, value) for key, value in service.environment.items()}
        return Part(name, command, self.folder / f"{name}.log", env={**env, **more.pop("env", {})}, is_ready=is_ready)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Here, dict[str, Part]]]:
    found = {name: programs.need(name) for name in ("otelcol", "jaeger", "prometheus", "alertmanager")}
    here = Here(tmp_path_factory.mktemp("compose"))
    ours: list[str | Path] = [sys.executable, "-m", "reach_otel.cli.main"]
    setup = SERVICES["collector-setup"]
    subprocess.run([sys.executable, *(here.inside(setup, word) for word in setup.raw["entrypoint"][1:])], check=True)
    parts = {
        "scorer-1": here.part("scorer-1", ours, answers(here.url("scorer-1", 4318, "/healthz"))),
        "scorer-2": here.part("scorer-2", ours, answers(here.url("scorer-2", 4318, "/healthz"))),
        "jaeger": here.part(
            "jaeger",
            [found["jaeger"]],
            answers(here.url("jaeger", 13133, "/status")),
            env={f"JAEGER_{name}_PORT": str(here.ports["jaeger", port]) for name, port in JAEGER_PORTS.items()},
        ),
        "collector": here.part("collector", [found["otelcol"]], answers(here.url("collector", 13133))),
        "alertmanager": here.part(
            "alertmanager",
            [found["alertmanager"]],
            answers(here.url("alertmanager", 9093, "/-/ready")),
            flags=[f"--web.listen-address=127.0.0.1:{here.ports['alertmanager', 9093]}"],
        ),
        "prometheus": here.part(
            "prometheus",
            [found["prometheus"]],
            answers(here.url("prometheus", 9090, "/-/ready")),
            flags=[f"--web.listen-address=127.0.0.1:{here.ports['prometheus', 9090]}"],
        ),
        "demo": here.part("demo", ours, None),
    }
    try:
        for part in parts.values():
            part.start()
            part.wait()
        yield here, parts
    finally:
        for part in reversed(parts.values()):
            part.stop()


def until(condition: Callable[[], bool], parts: dict[str, Part], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        for part in parts.values():
            part.check()
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.2)


def ask(url: str, **query: str) -> Any:
    with DIRECT.open(f"{url}?{urllib.parse.urlencode(query)}", timeout=10) as answer:
        return json.load(answer)


def test_runs_are_scored_and_found_by_score(here: tuple[Here, dict[str, Part]]) -> None:
    """Demo, Collector, both scorers and trace store work together as the file says, up to the search by score."""
    place, parts = here
    scorers = [place.url(name, 4318, "/api/runs") for name in ("scorer-1", "scorer-2")]
    until(lambda: all(_finished(url) for url in scorers), parts, "runs with a verdict on both scorers")
    jaeger = place.url("jaeger", 16686)

    def found() -> bool:
        tags = json.dumps({"reach.task": "ticket-handling"})
        services = ask(f"{jaeger}api/services")["data"] or []
        traces = [
            trace
            for service in services
            for trace in ask(f"{jaeger}api/traces", service=service, operation="reach.evaluate", tags=tags)["data"]
        ]
        return any(len(trace["spans"]) > 1 for trace in traces)

    until(found, parts, "a trace, found by what the scorer said of it")


def _finished(url: str) -> bool:
    answer = ask(url, live="false")
    return any(run["task"] == "ticket-handling" for run in answer["runs"])


def test_prometheus_sees_all_and_alertmanager(here: tuple[Here, dict[str, Part]]) -> None:
    """Every target answers, the rules are loaded, and alerts have where to go."""
    place, parts = here
    prometheus = place.url("prometheus", 9090, "/api/v1/")

    def all_up() -> bool:
        result = ask(f"{prometheus}query", query="up")["data"]["result"]
        return sorted(sample["metric"]["job"] for sample in result if sample["value"][1] == "1") == [
            "otelcol",
            "reach-otel",
            "reach-otel",
        ]

    until(all_up, parts, "three targets that are up")
    [manager] = ask(f"{prometheus}alertmanagers")["data"]["activeAlertmanagers"]
    assert str(place.ports["alertmanager", 9093]) in manager["url"]
    assert ask(f"{prometheus}rules")["data"]["groups"]


def test_health_checks_tell_up_from_down(here: tuple[Here, dict[str, Part]]) -> None:
    """The image's check, and Alertmanager's, succeed on what runs and fail on what does not."""
    place, _ = here
    free = choose_any(["nobody"])["nobody"]
    ours = [sys.executable, *health_check()[1:-1]]
    for port, code in ((place.ports["scorer-1", 4318], 0), (free, 1)):
        program = health_check()[-1].replace("4318", str(port))
        assert subprocess.run([*ours, program], capture_output=True).returncode == code
    amtool = programs.need("amtool")
    words = SERVICES["alertmanager"].health["test"][2:]
    for port, code in ((place.ports["alertmanager", 9093], 0), (free, 1)):
        command = [str(amtool), *(word.replace("9093", str(port)) for word in words)]
        assert subprocess.run(command, capture_output=True).returncode == code


def test_make_up_waits_for_what_answers(here: tuple[Here, dict[str, Part]]) -> None:
    """Its addresses answer when all is up; one that does not is named when the time is over."""
    place, _ = here
    doors = [door for door in up.DOORS if door.service != "grafana"]
    published: dict[str, Any] = {}
    for door in doors:
        port = {"host_ip": "127.0.0.1", "target": door.port, "published": str(place.ports[door.service, door.port])}
        published.setdefault(door.service, {"ports": []})["ports"].append(port)
    found = up.addresses({"services": published}, doors)
    said: list[str] = []
    assert up.wait(found, PATIENCE_SECONDS, said.append) == []
    assert len(said) == len([door for door in doors if door.health])
    nobody = found[0]._replace(health=f"http://127.0.0.1:{choose_any(['x'])['x']}/")
    assert up.wait([nobody], 0.0, said.append) == [nobody]
    assert all(address.url in up.table(found) for address in found)


def test_key_for_masks_reaches_the_collector(here: tuple[Here, dict[str, Part]]) -> None:
    """The Collector started with the key of its volume, through the file that its variable names."""
    place, _ = here
    assert (place.folder / "collector" / "redaction-key").read_text().startswith("key-")
    assert (place.folder / "collector" / "queue").is_dir()
