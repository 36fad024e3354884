"""Hold docker-compose.yml and the configuration that it mounts to each other; no container is started."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from typer.main import get_command

from reach_otel.cli.main import app
from reach_otel.settings.serve import read_serve
from tests.support import compose as support
from tests.support.compose import ROOT, Service
from tests.support.programs import need
from tools.stack.ports import PREFERRED, SCORER_HTTP
from tools.up import DOORS

SERVICES: Final = support.services()
NAMES: Final = sorted(SERVICES)
PYPROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BUILDER: Final = yaml.safe_load((ROOT / "collector" / "builder.yaml").read_text())

PORTS: Final = {
    ("collector", 4317): PREFERRED["collector grpc"],
    ("collector", 4318): PREFERRED["collector http"],
    ("collector", 13133): PREFERRED["collector health"],
    ("collector", 8888): PREFERRED["collector metrics"],
    ("scorer-1", 4318): SCORER_HTTP,
    ("scorer-2", 4318): SCORER_HTTP + 1,
    ("prometheus", 9090): PREFERRED["prometheus"],
    ("alertmanager", 9093): PREFERRED["alertmanager"],
    ("grafana", 3000): 3000,
    ("jaeger", 16686): 16686,
}
"""What is published, by service and port of its container: the ports of `make stack` where it has the same part."""

WITHOUT_HEALTH: Final = {
    "demo": "serves nothing",
    "collector": "an image with one program, which cannot ask itself",
    "collector-setup": "ends at once",
}


def listens(service: Service) -> set[int]:
    """Return the ports on which the container takes connections, by its own settings."""
    ports = {published.target for published in service.published}
    ports |= {int(word.partition("=")[2]) for word in service.command if re.match(r"--(grpc-)?port=", word)}
    ports |= {int(value) for name, value in service.environment.items() if name.endswith("_PORT")}
    if service.name == "jaeger":
        endpoint = yaml.safe_load((ROOT / "collector" / "jaeger.yaml").read_text())["receivers"]["otlp"]
        ports.add(int(endpoint["protocols"]["grpc"]["endpoint"].rpartition(":-")[2].rstrip("}")))
    return ports


def wires() -> list[tuple[str, str, str, int]]:
    """Return who is told to talk to whom: place, client, service, port."""
    collector, scorer, demo = SERVICES["collector"], SERVICES["scorer-1"], SERVICES["demo"]
    told = [("SCORERS", "collector", address) for address in yaml.safe_load(collector.environment["SCORERS"])]
    told.append(("TRACE_STORE_ENDPOINT", "collector", collector.environment["TRACE_STORE_ENDPOINT"]))
    evaluations = scorer.environment["REACH_SERVE_EVALUATIONS_ENDPOINT"].removeprefix("http://")
    told += [("REACH_SERVE_EVALUATIONS_ENDPOINT", name, evaluations) for name in ("scorer-1", "scorer-2")]
    told.append(("--endpoint", "demo", demo.command[demo.command.index("--endpoint") + 1].removeprefix("http://")))
    for file in sorted((ROOT / "dashboards" / "prometheus" / "targets").glob("*.yml")):
        for group in yaml.safe_load(file.read_text()):
            told += [(file.name, "prometheus", target) for target in group["targets"]]
    for file in sorted((ROOT / "dashboards" / "provisioning" / "datasources").glob("*.y*ml")):
        for source in yaml.safe_load(file.read_text())["datasources"]:
            told.append((file.name, "grafana", source["url"].removeprefix("http://").rstrip("/")))
    return [(place, client, *_split(address)) for place, client, address in told]


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.partition(":")
    return host, int(port)


def test_every_image_is_pinned_by_its_full_version() -> None:
    """No image may change under the same file."""
    for service in SERVICES.values():
        assert re.fullmatch(r"[\w./-]+:v?\d+\.\d+\.\d+", service.image), service.image
    base = dict(argument.split("=", 1) for word, argument in support.instructions() if word == "ARG")["PYTHON_IMAGE"]
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-[a-z]+", base)
    assert [argument.split()[0] for word, argument in support.instructions() if word == "FROM"] == [
        "${PYTHON_IMAGE}"
    ] * 2
    assert f'base.name="docker.io/library/{base}"' in support.DOCKERFILE.read_text()


def test_versions_agree() -> None:
    """The image is named after the package, and the official Collector is of the release that is built from source."""
    assert {service.image for service in SERVICES.values() if service.is_ours} == {f"reach-otel:{PYPROJECT['version']}"}
    assert SERVICES["collector"].image.rpartition(":")[2] == BUILDER["dist"]["version"]


def test_own_image_is_never_pulled() -> None:
    """Nobody else's image of that name can get in: it is built from the clone, always."""
    for service in SERVICES.values():
        assert service.is_ours == (service.raw.get("pull_policy") == "build"), service.name


def test_ports_are_on_loopback_and_those_of_the_documentation() -> None:
    """Nothing is published to other machines, and nothing twice."""
    published = [(name, port) for name, service in SERVICES.items() for port in service.published]
    assert {port.host for _, port in published} == {"127.0.0.1"}
    assert len({port.port for _, port in published}) == len(published)
    assert {(name, port.target): port.port for name, port in published} == PORTS


def test_every_port_can_be_moved() -> None:
    """Each published port has a variable of its own, which moves that port alone."""
    text = support.FILE.read_text()
    variables = re.findall(r"^ +- 127\.0\.0\.1:\$\{(\w+):-\d+\}:\d+$", text, re.MULTILINE)
    assert len(variables) == len(set(variables)) == len(PORTS)
    moved = support.services({name: str(50_000 + number) for number, name in enumerate(variables)})
    assert sorted(port.port for service in moved.values() for port in service.published) == list(
        range(50_000, 50_000 + len(variables))
    )
    assert ":50" in moved["scorer-1"].environment["REACH_SERVE_TRACE_URL"], "links follow"


def test_addresses_that_make_up_prints_are_published_ones() -> None:
    """Each of `make up`'s addresses is a port of the file, and everything with a page is among them."""
    doors = {(door.service, door.port) for door in DOORS}
    assert doors <= set(PORTS)
    assert set(PORTS) - doors == {("collector", 8888)}, "numbers, which Prometheus has too"


def test_readme_names_the_addresses() -> None:
    """Who reads the README finds every page."""
    readme = (ROOT / "README.md").read_text()
    missing = [port for (service, _), port in PORTS.items() if f"127.0.0.1:{port}" not in readme]
    assert not missing


def test_everything_mounted_exists() -> None:
    """Docker would make an empty folder of a path that is not there."""
    declared = support.load()["volumes"]
    used = set()
    for service in SERVICES.values():
        for target, source in service.mounts.items():
            if source.startswith("."):
                assert (ROOT / source).exists(), f"{service.name}: {source}"
                assert target in service.read_only, f"{service.name} may write to {source}"
            else:
                used.add(source)
    assert used == set(declared)


def test_configuration_that_a_command_names_is_mounted() -> None:
    """A `--config…=` path lies in a mount, and there is such a file in the clone."""
    for service in SERVICES.values():
        for word in service.command:
            if word.startswith("--config"):
                path = word.partition("=")[2]
                [(target, source)] = [pair for pair in service.mounts.items() if path.startswith(pair[0])]
                assert (ROOT / (source + path.removeprefix(target))).is_file(), word


@pytest.mark.parametrize(("place", "client", "server", "port"), wires())
def test_who_is_told_to_talk_can(place: str, client: str, server: str, port: int) -> None:
    """Every address in a configuration is a service that listens there, in a network that both are in."""
    assert server in SERVICES, place
    assert port in listens(SERVICES[server]), place
    assert SERVICES[client].networks & SERVICES[server].networks, place


def test_agents_reach_the_collector_alone() -> None:
    """The network of agents has no way out, and the Collector is all that agents find in it."""
    assert support.load()["networks"]["agents"] == {"internal": True}
    assert SERVICES["demo"].networks == {"agents"}
    assert {name for name, service in SERVICES.items() if "agents" in service.networks} == {"demo", "collector"}


def test_scorers_are_reached_by_collector_and_prometheus_alone() -> None:
    """They take spans and show numbers without a token, so few may reach them."""
    for scorer in ("scorer-1", "scorer-2"):
        assert SERVICES[scorer].networks == {"scoring"}
    inside = {name for name, service in SERVICES.items() if "scoring" in service.networks}
    assert inside == {"scorer-1", "scorer-2", "collector", "prometheus"}


def test_networks_are_declared_and_used() -> None:
    used = set().union(*(service.networks for service in SERVICES.values()))
    assert used == set(support.load()["networks"])
    for service in SERVICES.values():
        assert service.networks or service.raw["network_mode"] == "none"


@pytest.mark.parametrize(("service", "file"), [("collector", "scaled.yaml"), ("jaeger", "jaeger.yaml")])
def test_variables_of_a_collector_file_are_those_given(service: str, file: str) -> None:
    """None is given in vain, none that has no default is missing, and nobody inside listens on loopback only."""
    given = SERVICES[service].environment
    read = dict(re.findall(r"\$\{env:(\w+)(:-)?", (ROOT / "collector" / file).read_text()))
    assert set(given) | SERVICES[service].passed_on <= {*read, "GOMEMLIMIT"}
    assert {name for name, default in read.items() if not default} <= set(given)
    assert {name for name in read if name.endswith(("_HOST", "HEALTH_ENDPOINT"))} <= {*given, "HEALTH_ENDPOINT"}
    assert not any("127.0.0.1" in value for value in given.values())


def test_no_secret_stands_in_the_file() -> None:
    """What is named like a secret comes from outside, or from a file that is made at the first start."""
    for service in SERVICES.values():
        for name, value in service.environment.items():
            if re.search(r"(PASSWORD|PASSWD|TOKEN|SECRET|KEY|CREDENTIALS|USER)$", name):
                assert value == "" or value.startswith("${file:"), name


def test_key_for_masks_is_made_once_and_readable_by_its_owner_alone(tmp_path: Any) -> None:
    """The program of collector-setup, run for real, makes one key and keeps it."""
    python, flag, program = SERVICES["collector-setup"].raw["entrypoint"]
    assert (python, flag) == ("python", "-c")
    inside = SERVICES["collector"].environment["REDACTION_KEY"].removeprefix("${file:").rstrip("}")
    folders = {service.mounts_of("collector") for service in (SERVICES["collector-setup"], SERVICES["collector"])}
    assert inside == f"{SERVICES['collector'].mounts_of('collector')}/redaction-key"
    assert len(folders) == 2, "each at its place"
    here = program.replace(SERVICES["collector-setup"].mounts_of("collector"), str(tmp_path))
    keys = []
    for _ in range(2):
        subprocess.run(["python3", "-c", here], check=True)
        keys.append((tmp_path / "redaction-key").read_text())
    assert keys[0] == keys[1]
    assert len(keys[0]) > 60
    assert (tmp_path / "redaction-key").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("name", NAMES)
def test_service_is_hardened_and_bounded(name: str) -> None:
    """No root, no capability, nothing to write to but what is meant, and a limit on all that can grow."""
    raw = SERVICES[name].raw
    assert raw["read_only"] is True
    assert raw["cap_drop"] == ["ALL"]
    assert raw["security_opt"] == ["no-new-privileges:true"]
    assert raw["init"] is True
    user, _, group = raw["user"].partition(":")
    assert int(user) > 0
    assert group.isdigit()
    assert 0 < raw["pids_limit"] <= 512
    assert 0 < raw["cpus"] <= 2
    assert re.fullmatch(r"\d+[mg]", raw["mem_limit"])
    assert raw["logging"]["options"].keys() >= {"max-size", "max-file"}
    assert raw["restart"] == ("no" if name == "collector-setup" else "unless-stopped")
    assert not raw.keys() & {"privileged", "cap_add", "pid", "ipc", "devices", "extra_hosts"}


def test_health_is_known_where_it_can_be() -> None:
    """Each service has a check of its own or its image's, or a reason."""
    assert {name for name, service in SERVICES.items() if not service.has_health} == set(WITHOUT_HEALTH)
    for service in SERVICES.values():
        if test := service.health.get("test"):
            assert test[0] == "CMD", "without a shell, which not every image has"
            port = re.findall(r"127\.0\.0\.1:(\d+)", " ".join(test))
            assert {*map(int, port)} <= listens(service) | {13133}
    assert "HEALTHCHECK" in {word for word, _ in support.last_stage()}


def test_nobody_waits_for_what_cannot_come() -> None:
    """`depends_on` names services; healthy is waited for only where health is known, and there is no circle."""
    for service in SERVICES.values():
        for other, condition in service.depends_on.items():
            assert other in SERVICES
            if condition == "service_healthy":
                assert SERVICES[other].has_health, f"{service.name} would wait for {other} for ever"
            if condition == "service_completed_successfully":
                assert SERVICES[other].raw["restart"] == "no"
    left = dict(SERVICES)
    while left:
        free = [name for name, service in left.items() if not service.depends_on.keys() & left.keys()]
        assert free, f"a circle: {sorted(left)}"
        for name in free:
            del left[name]


def test_scorers_differ_in_their_volume_and_port_alone() -> None:
    """Replicas are alike, so that their counters add up; no two share a database."""
    one, two = (dict(SERVICES[name].raw) for name in ("scorer-1", "scorer-2"))
    different = {key for key in one if one[key] != two[key]}
    assert different == {"volumes", "ports"}
    for name in ("scorer-1", "scorer-2"):
        assert SERVICES[name].mounts["/var/lib/reach-otel"] == name


@pytest.mark.parametrize("environ", [{}, {"INGEST_TOKEN": "t", "VARIANTS": "a,b", "JAEGER_PORT": "1"}])
def test_scorers_settings_are_read(environ: dict[str, str]) -> None:
    """Flags and variables of the scorers are settings that exist, and the service starts with them."""
    scorer = support.services(environ)["scorer-1"]
    given = _parsed(scorer.command)
    flags = {"tasks": given.pop("task"), **{name: value for name, value in given.items() if value}}
    serve, scoring = read_serve(flags, scorer.environment)
    assert (serve.host, serve.port, serve.grpc_port, serve.insecure) == ("0.0.0.0", 4318, 4317, True)
    assert serve.database.startswith("/var/lib/reach-otel/")
    assert list(scoring.tasks) == ["/tasks"]
    assert scoring.variants == (("a", "b") if "VARIANTS" in environ else read_serve({}, {})[1].variants)
    assert serve.ingest_token == environ.get("INGEST_TOKEN")
    assert serve.trace_url == f"http://127.0.0.1:{environ.get('JAEGER_PORT', 16686)}/trace/{{trace_id}}"


@pytest.mark.parametrize(
    ("environ", "degrade", "recover"),
    [({}, None, None), ({"DEGRADE_AFTER": "60"}, 60.0, None), ({"DEGRADE_AFTER": "5", "RECOVER_AFTER": "9"}, 5.0, 9.0)],
)
def test_demo_takes_its_flags_from_variables(
    environ: dict[str, str], degrade: float | None, recover: float | None
) -> None:
    """The variables at the top of the file become the flags that the demo knows."""
    given = _parsed(support.services(environ)["demo"].command)
    assert (given["degrade_after"], given["recover_after"]) == (degrade, recover)
    assert (given["plain"], given["agents"], given["seed"]) == (True, 4, 0)


def _parsed(command: list[str]) -> dict[str, Any]:
    commands: Any = get_command(app)
    return dict(commands.commands[command[0]].make_context(command[0], command[1:]).params)


def test_tasks_are_the_demos_unless_a_folder_is_named() -> None:
    """The scorers know the task on which the demo's agents work."""
    assert SERVICES["scorer-1"].mounts["/tasks"] == "./examples"
    demo = (ROOT / "reach_otel" / "demo" / "ticket.task.yaml").read_text()
    assert (ROOT / "examples" / "ticket.task.yaml").read_text() == demo
    assert support.services({"TASKS": "./mine"})["scorer-2"].mounts["/tasks"] == "./mine"


def test_grafana_finds_its_dashboards() -> None:
    """The folder that provisioning names is the one that is mounted, and the home page is in it."""
    grafana = SERVICES["grafana"]
    [file] = sorted((ROOT / "dashboards" / "provisioning" / "dashboards").glob("*.y*ml"))
    paths = {provider["options"]["path"] for provider in yaml.safe_load(file.read_text())["providers"]}
    assert paths == {target for target, source in grafana.mounts.items() if source == "./dashboards/json"}
    home = grafana.environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert (ROOT / "dashboards" / "json" / home.rpartition("/")[2]).is_file()
    assert home.rpartition("/")[0] in paths


def test_compose_itself_reads_the_file(tmp_path: Path) -> None:
    """Compose's own reader takes the file, with nothing set, and finds what these tests found."""
    copy = tmp_path / "docker-compose.yml"  # in a folder that has no `.env`
    copy.write_text(support.FILE.read_text(encoding="utf-8"), encoding="utf-8")
    command = [str(need("compose")), "-format", "json", str(copy)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = {name: Service(name, {"image": "", **raw}) for name, raw in json.loads(done.stdout)["services"].items()}
    assert set(found) == set(SERVICES)
    for name, service in SERVICES.items():
        assert found[name].command == service.command, name
        assert found[name].environment == service.environment, name
        assert found[name].networks == service.networks, name
        assert found[name].depends_on == service.depends_on, name
