"""Write the JSON of the dashboards, or with ``--check`` say how what is there differs."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards import fleet, scorer, system, task

FOLDER: Final = Path(__file__).parent / "json"


def build() -> dict[str, Dashboard]:
    """Return each dashboard by the name of its file."""
    return {
        "fleet.json": fleet.dashboard(),
        "task.json": task.dashboard(),
        "system.json": system.dashboard(),
        "scorer.json": scorer.dashboard(),
    }


def render(model: Dashboard) -> str:
    """Return the JSON that Grafana reads."""
    return json.dumps(model, cls=JSONEncoder, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def differences(folder: Path = FOLDER) -> Iterator[str]:
    """Yield the lines of a diff from the files that are there to those that should be; none when all is well."""
    wanted = {name: render(model) for name, model in build().items()}
    found = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.json")}
    for name in sorted(wanted | found):
        old, new = found.get(name, ""), wanted.get(name, "")
        yield from difflib.unified_diff(
            old.splitlines(True), new.splitlines(True), f"{name} (there)", f"{name} (built)"
        )


def write(folder: Path = FOLDER) -> None:
    """Make the folder hold these dashboards and no others."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = build()
    for path in folder.glob("*.json"):
        if path.name not in wanted:
            path.unlink()
    for name, model in wanted.items():
        (folder / name).write_text(render(model), encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Do what the command line asks; return the exit code."""
    if arguments == ["--check"]:
        lines = list(differences())
        sys.stdout.writelines(lines)
        if lines:
            sys.stdout.write("The dashboards are stale: run `python -m dashboards`.\n")
        return 1 if lines else 0
    if arguments:
        sys.stderr.write("usage: python -m dashboards [--check]\n")
        return 2
    write()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
