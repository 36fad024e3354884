"""Hold ``make up`` to what it says when it cannot go on, and to the addresses that it finds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import compose
from tests.support.compose import ROOT
from tools import up


def run(path: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the tool as make does, with the programs of ``path`` alone."""
    command = [sys.executable, str(ROOT / "tools" / "up.py"), *arguments]
    return subprocess.run(command, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False)


def program(folder: Path, name: str, script: str) -> None:
    folder.joinpath(name).write_text(f"#!/bin/sh\n{script}\n")
    folder.joinpath(name).chmod(0o755)


@pytest.mark.parametrize("what", ["up", "down"])
def test_without_docker_it_says_what_to_install_and_what_else_there_is(what: str, tmp_path: Path) -> None:
    done = run(str(tmp_path), what)
    assert done.returncode == 1
    assert done.stderr.startswith(f"{what}: docker is not here. Install Docker")
    assert "make stack" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ('[ "$1" = version ] && echo 28', "no `compose` command"),
        ('[ "$1" = compose ] && echo v2', "engine does not answer"),
    ],
)
def test_a_part_of_docker_that_is_missing_is_named(script: str, said: str, tmp_path: Path) -> None:
    """A client without the plugin, and one whose engine is down, are two things to mend."""
    program(tmp_path, "docker", script)
    done = run(str(tmp_path))
    assert done.returncode == 1
    assert said in done.stderr


def test_what_compose_refuses_ends_it(tmp_path: Path) -> None:
    """No address is printed for what was not started."""
    program(tmp_path, "docker", 'case "$*" in *config*) echo no >&2; exit 1;; *) echo 1;; esac')
    done = run(str(tmp_path), "up")
    assert done.returncode == 1
    assert "what Compose said stands above" in done.stderr
    assert done.stdout == ""


def test_down_passes_volumes_on(tmp_path: Path) -> None:
    """Data go only when that was asked for."""
    program(tmp_path, "docker", f'echo "$@" >> {tmp_path}/said; echo 1')
    assert run(str(tmp_path), "down").returncode == 0
    assert run(str(tmp_path), "down", "--volumes").returncode == 0
    ended = [line.partition("docker-compose.yml ")[2] for line in (tmp_path / "said").read_text().splitlines()]
    assert [line for line in ended if line] == ["down", "down --volumes"]


def test_addresses_are_those_of_the_file_with_ports_moved() -> None:
    """Who moves a port by its variable is told the port that it is."""
    services = compose.services({"GRAFANA_PORT": "13000"})
    config = {
        name: {"ports": [{"host_ip": p.host, "target": p.target, "published": str(p.port)} for p in service.published]}
        for name, service in services.items()
    }
    found = up.addresses({"services": config})
    assert found[0].url == "http://127.0.0.1:13000/"
    assert found[0].health == "http://127.0.0.1:13000/api/health"
    assert [address.url for address in found if address.service == "scorer-1"] == ["http://127.0.0.1:8321/"]
    assert len({address.url for address in found}) == len(found) == len(up.table(found).splitlines())
