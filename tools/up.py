"""Start docker-compose.yml, wait until all of it answers and print the addresses; or stop it."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

# Only the standard library: this runs with any Python, before a virtual environment is there.
ROOT: Final = Path(__file__).parents[1]
COMPOSE: Final = ("docker", "compose", "--project-directory", str(ROOT), "--file", str(ROOT / "docker-compose.yml"))
WAIT_SECONDS: Final = 180.0
_ASK_SECONDS: Final = 3.0
_PAUSE_SECONDS: Final = 1.0
_WITHOUT: Final = "`make stack` starts the same without Docker."


class Door(NamedTuple):
    """A port of a service's container that is published, what to ask there, and what it is for."""

    service: str
    port: int
    what: str
    health: str | None = None
    path: str = "/"


# In the order in which one looks: first what went wrong, then why, then the parts behind it.
DOORS: Final = (
    Door("grafana", 3000, "dashboards: which tasks are in trouble, where runs stop", "/api/health"),
    Door("scorer-1", 4318, "live page of one scorer: its runs step by step, API, runbook", "/healthz"),
    Door("scorer-2", 4318, "the same of the other", "/healthz"),
    Door("jaeger", 16686, "traces, also by score (tag reach.depth and others)"),
    Door("prometheus", 9090, "metrics, rules and alerts", "/-/ready"),
    Door("alertmanager", 9093, "who is paged for what, silences", "/-/ready"),
    Door("collector", 13133, "health of the Collector", "/"),
    Door("collector", 4318, "for your agents: OTLP over HTTP", path=""),
    Door("collector", 4317, "for your agents: OTLP over gRPC", path=""),
)


class Failure(Exception):
    """Say why it does not go on, and what to do about it."""


class Address(NamedTuple):
    """Where a door is on this machine; ``health`` is what to ask, none when there is nothing to ask over HTTP."""

    service: str
    url: str
    what: str
    health: str | None


def addresses(config: Mapping[str, Any], doors: Iterable[Door] = DOORS) -> list[Address]:
    """Find each door in what ``docker compose config --format json`` tells, where variables stand resolved."""
    found = []
    for door in doors:
        published = {int(port["target"]): port for port in config["services"][door.service]["ports"]}
        port = published[door.port]
        base = f"http://{port['host_ip']}:{port['published']}"
        health = None if door.health is None else base + door.health
        found.append(Address(door.service, base + door.path, door.what, health))
    return found


def table(found: Sequence[Address]) -> str:
    """Show the addresses, one a line."""
    width = max(len(address.url) for address in found)
    return "\n".join(f"  {address.url:<{width}}  {address.what}" for address in found)


def wait(found: Iterable[Address], seconds: float = WAIT_SECONDS, say: Callable[[str], None] = print) -> list[Address]:
    """Ask every address that has a health until it answers; return those that did not in time."""
    silent = [address for address in found if address.health is not None]
    deadline = time.monotonic() + seconds
    while True:
        for address in [address for address in silent if _answers(address.health)]:
            silent.remove(address)
            say(f"  {address.service} is up")
        if not silent or time.monotonic() >= deadline:
            return silent
        time.sleep(_PAUSE_SECONDS)


def check_docker() -> None:
    """See that client, Compose and engine are there.

    :raises Failure: one is not, with the way to get it.
    """
    if shutil.which("docker") is None:
        raise Failure(f"docker is not here. Install Docker Engine or Docker Desktop. {_WITHOUT}")
    if not _works("docker", "compose", "version"):
        raise Failure(f"docker has no `compose` command. Install the plugin docker-compose-plugin (v2). {_WITHOUT}")
    if not _works("docker", "version", "--format", "{{.Server.Version}}"):
        raise Failure(
            f"docker is here, but its engine does not answer. Start it, or see that you may talk to it. {_WITHOUT}"
        )


def up(seconds: float) -> None:
    """Build, start and wait.

    :raises Failure: Compose failed, or something does not answer in time.
    """
    check_docker()
    found = addresses(json.loads(_compose_output("config", "--format", "json")))
    print("Building and starting; the first time images are downloaded.", flush=True)
    if subprocess.run([*COMPOSE, "up", "--build", "--detach"], check=False).returncode:
        raise Failure("docker compose up failed; what it said stands above")
    print("Waiting until everything answers.", flush=True)
    if silent := wait(found, seconds, lambda line: print(line, flush=True)):
        subprocess.run([*COMPOSE, "ps", "--all"], check=False)
        names = sorted({address.service for address in silent})
        raise Failure(
            f"no answer within {seconds:.0f} s from {', '.join(names)}; `docker compose logs {' '.join(names)}` "
            "tells why; it all goes on running, `make down` stops it"
        )
    print(f"\n{table(found)}\n\n`make down` ends it all and keeps the data; `make down ARGS=--volumes` forgets it.")


def down(arguments: Sequence[str]) -> None:
    """Stop and remove the containers; volumes stay unless ``--volumes`` is given.

    :raises Failure: Compose failed.
    """
    check_docker()
    if subprocess.run([*COMPOSE, "down", *arguments], check=False).returncode:
        raise Failure("docker compose down failed; what it said stands above")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``up`` or ``down``; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.up", description=__doc__)
    parser.add_argument("what", nargs="?", choices=("up", "down"), default="up")
    parser.add_argument("--wait", type=float, default=WAIT_SECONDS, metavar="SECONDS", help="longest wait for answers")
    parser.add_argument("--volumes", action="store_true", help="down: forget the data too")
    given = parser.parse_args(arguments)
    try:
        if given.what == "up":
            up(given.wait)
        else:
            down(["--volumes"] if given.volumes else [])
    except Failure as failure:
        print(f"{given.what}: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _answers(url: str | None) -> bool:
    try:
        with _DIRECT.open(url or "", timeout=_ASK_SECONDS) as answer:
            return bool(answer.status == 200)
    except (OSError, ValueError, urllib.error.URLError):
        return False


# A proxy of the environment does not know this machine's ports.
_DIRECT: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def _works(*command: str) -> bool:
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return done.returncode == 0 and bool(done.stdout.strip())


def _compose_output(*arguments: str) -> str:
    done = subprocess.run([*COMPOSE, *arguments], check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise Failure("docker-compose.yml cannot be read; what Compose said stands above")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
