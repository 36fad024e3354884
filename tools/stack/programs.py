"""Find the foreign programs that the stack and its tests run, and say how to get one that is not here."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
VARIABLE: Final = "REACH_TEST_"
"""Before the name of a program, in capitals: a variable that names the executable to use instead of what is found."""

_PROMETHEUS: Final = "apt-get install prometheus, brew install prometheus, or https://prometheus.io/download"
_ALERTMANAGER: Final = (
    "apt-get install prometheus-alertmanager, brew install alertmanager, or https://prometheus.io/download"
)


class Program(NamedTuple):
    """What a program may be called, where it may be beside ``PATH``, and how to get it."""

    commands: tuple[str, ...]
    how: str
    places: tuple[Path, ...] = ()


def _built(name: str) -> Program:
    how = "make programs (needs Go; built once, within some minutes)"
    return Program((name,), how, (ROOT / "collector" / "bin" / name,))


PROGRAMS: Final[Mapping[str, Program]] = {
    "prometheus": Program(("prometheus",), _PROMETHEUS),
    "promtool": Program(("promtool",), _PROMETHEUS),
    # Debian's name first: it is the surer one.
    "alertmanager": Program(("prometheus-alertmanager", "alertmanager"), _ALERTMANAGER),
    "amtool": Program(("amtool",), _ALERTMANAGER),
    "otelcol": _built("otelcol-reach"),
    "jaeger": _built("jaeger"),
    "compose": _built("compose-spec"),
    "chromium": Program(
        ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"), "apt-get install chromium"
    ),
}


class MissingProgram(Exception):
    """Say which programs are not here, and how to get each."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)
        super().__init__("; ".join(f"{name} is not here: {PROGRAMS[name].how}" for name in self.names))


def find(name: str, environ: Mapping[str, str] | None = None) -> Path:
    """Return the executable of a program.

    Looked for in this order: the variable ``REACH_TEST_`` with its name, where ``make`` puts it, and ``PATH``.

    :raises MissingProgram: it is nowhere, or the variable names no executable.
    """
    environ = os.environ if environ is None else environ
    program = PROGRAMS[name]
    if named := environ.get(VARIABLE + name.upper()):
        found = shutil.which(named, path=environ.get("PATH"))
        if found is None:
            raise MissingProgram([name])
        return Path(found).absolute()
    for place in program.places:
        if place.is_file() and os.access(place, os.X_OK):
            return place.resolve()
    for command in program.commands:
        if found := shutil.which(command, path=environ.get("PATH")):
            return Path(found).absolute()
    raise MissingProgram([name])


def find_all(*names: str) -> dict[str, Path]:
    """Return the executables of several programs.

    :raises MissingProgram: names all that are missing, so that one round of installing is enough.
    """
    found: dict[str, Path] = {}
    missing: list[str] = []
    for name in names:
        try:
            found[name] = find(name)
        except MissingProgram:
            missing.append(name)
    if missing:
        raise MissingProgram(missing)
    return found
