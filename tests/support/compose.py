"""Read docker-compose.yml and Dockerfile as their programs do, as far as the tests about them need."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

import yaml

ROOT: Final = Path(__file__).parents[2]
FILE: Final = ROOT / "docker-compose.yml"
DOCKERFILE: Final = ROOT / "Dockerfile"

# $$ | ${NAME:-default} | ${NAME:+instead} | ${NAME} | $NAME; a default may hold one pair of braces of its own.
_VARIABLE: Final = re.compile(
    r"\$(?:(?P<dollar>\$)|\{(?P<braced>\w+)(?::(?P<how>[-+])(?P<word>(?:[^{}]|\{[^{}]*\})*))?\}|(?P<plain>\w+))"
)


def interpolate(text: str, environ: Mapping[str, str]) -> str:
    """Put the variables of ``environ`` in, as Compose does with every value."""

    def one(found: re.Match[str]) -> str:
        if found["dollar"]:
            return "$"
        value = environ.get(found["braced"] or found["plain"], "")
        if found["how"] == "-":
            return value or interpolate(found["word"], environ)
        if found["how"] == "+":
            return interpolate(found["word"], environ) if value else ""
        return value

    return _VARIABLE.sub(one, text)


class Published(NamedTuple):
    """A port of a container that the machine can reach."""

    host: str
    port: int
    target: int


class Service:
    """One service of the file, with variables put in."""

    def __init__(self, name: str, raw: Mapping[str, Any]) -> None:
        self.name = name
        self.raw = raw
        self.image: str = raw["image"]
        self.is_ours: bool = "build" in raw
        # As Compose does: what has no value is passed on from outside, and is not there when outside has none.
        given = raw.get("environment") or {}
        self.environment: dict[str, str] = {key: str(value) for key, value in given.items() if value is not None}
        self.passed_on = {key for key, value in given.items() if value is None}
        command = raw.get("command") or []
        self.command: list[str] = shlex.split(command) if isinstance(command, str) else [str(word) for word in command]
        self.networks = set(raw.get("networks") or ())
        self.health: Mapping[str, Any] = raw.get("healthcheck") or {}
        self.depends_on: dict[str, str] = {
            name: how["condition"] for name, how in (raw.get("depends_on") or {}).items()
        }

    @property
    def published(self) -> list[Published]:
        found = []
        for text in self.raw.get("ports") or ():
            host, port, target = text.split(":")
            found.append(Published(host, int(port), int(target)))
        return found

    @property
    def mounts(self) -> dict[str, str]:
        """Sources by target: a path of the clone (``./...``) or the name of a volume."""
        return {target: source for source, target, _ in self._volumes()}

    @property
    def read_only(self) -> set[str]:
        """Targets that the service cannot write to."""
        return {target for _, target, is_read_only in self._volumes() if is_read_only}

    def _volumes(self) -> Iterator[tuple[str, str, bool]]:
        for part in self.raw.get("volumes") or ():
            if isinstance(part, str):
                source, target, *options = part.split(":")
                yield source, target, "ro" in options
            else:
                yield part["source"], part["target"], part.get("read_only", False)

    def mounts_of(self, volume: str) -> str:
        """Return where a volume is in this container."""
        [target] = [target for target, source in self.mounts.items() if source == volume]
        return target

    @property
    def has_health(self) -> bool:
        """Say whether Docker can tell that it is healthy; our own image brings its check along."""
        return not self.health.get("disable") and (self.is_ours or "test" in self.health)


def load(environ: Mapping[str, str] | None = None) -> Mapping[str, Any]:
    """Read the file with the given variables set, and no others."""
    tree: Mapping[str, Any] = _each(yaml.safe_load(FILE.read_text()), environ or {})
    return tree


def services(environ: Mapping[str, str] | None = None) -> dict[str, Service]:
    """Return the services by name."""
    return {name: Service(name, raw) for name, raw in load(environ)["services"].items()}


def _each(node: Any, environ: Mapping[str, str]) -> Any:
    if isinstance(node, dict):
        return {key: _each(value, environ) for key, value in node.items()}
    if isinstance(node, list):
        return [_each(value, environ) for value in node]
    return interpolate(node, environ) if isinstance(node, str) else node


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile in order, with continued lines joined and comments left out."""
    lines = (line for line in DOCKERFILE.read_text().splitlines() if not line.lstrip().startswith("#"))
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]


def last_stage() -> list[tuple[str, str]]:
    """Return the instructions of the stage that becomes the image."""
    found = instructions()
    start = max(number for number, (word, _) in enumerate(found) if word == "FROM")
    return found[start:]


def is_sent(path: str) -> bool:
    """Say whether .dockerignore lets a path of the clone go to the builder: the last pattern that fits decides."""
    sent = True
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        pattern = line.removeprefix("!").rstrip("/")
        # A pattern that fits a folder fits all below it.
        parts = PurePosixPath(path)
        names = [str(parts), *(str(parent) for parent in parts.parents if str(parent) != ".")]
        if any(_fits(name, pattern) for name in names):
            sent = line.startswith("!")
    return sent


def _fits(name: str, pattern: str) -> bool:
    if pattern.startswith("**/"):
        return fnmatch(PurePosixPath(name).name, pattern[3:])
    # A star does not go over a slash.
    return name.count("/") == pattern.count("/") and fnmatch(name, pattern)
