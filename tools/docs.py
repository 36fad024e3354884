"""Write the generated parts of the documentation anew: the marked blocks of README.md, and copied example files.

``make docs`` runs it; ``tests/unit/test_readme.py`` fails when something was changed and this was not run.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import typer

from reach_otel import settings
from reach_otel.cli import main as cli
from reach_otel.publish import catalog
from reach_otel.service import runbook

ROOT: Final = Path(__file__).parent.parent
README: Final = ROOT / "README.md"
COLUMNS: Final = 165

BLOCK: Final = re.compile(
    r"(?P<begin><!-- generated: (?P<name>[^>]+?) -->\n)(?P<body>.*?)(?P<end><!-- end -->)", re.DOTALL
)

COPIES: Final = {ROOT / "reach_otel" / "demo" / "ticket.task.yaml": ROOT / "examples" / "ticket.task.yaml"}
"""Files that the package ships and the examples show."""


def commands_table() -> str:
    """Return every command with its options, as ``--help`` has them."""
    group: Any = typer.main.get_command(cli.build())
    parts: list[str] = []
    for name in cli.COMMANDS:
        command = group.commands[name]
        summary = (command.help or "").strip().split("\n\n")[0].replace("\n", " ")
        rows = ["| option | default | what it does |", "|---|---|---|", *map(_option, command.params)]
        parts.append(f"**`reach-otel {name}`**: {summary}\n\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def _option(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        names = f"`{parameter.metavar or parameter.name.upper()}{' ...' if parameter.nargs == -1 else ''}`"
    else:
        names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    default = "" if parameter.default in (None, False) else f"`{parameter.default}`"
    what = " ".join((parameter.help or "").split()).replace("|", r"\|")
    return f"| {names} | {'required' if parameter.required else default} | {what} |"


def console(command: str) -> str:
    """Return a command with what it prints, run in the repository's folder in a terminal of fixed width."""
    return f"```console\n$ {command}\n{printed(command)}```\n"


def printed(command: str) -> str:
    """Run a ``reach-otel`` or ``python`` command; return its standard output without trailing blanks."""
    program, *args = shlex.split(command)
    modules = {"reach-otel": ["-m", "reach_otel.cli.main"], "python": []}
    done = subprocess.run(
        [sys.executable, *modules[program], *args],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": str(COLUMNS), "NO_COLOR": "1", "TERM": "dumb"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return "\n".join(line.rstrip() for line in done.stdout.strip("\n").split("\n")) + "\n"


BLOCKS: Final[dict[str, Callable[[], str]]] = {
    "settings": settings.markdown,
    "service settings": settings.serve_markdown,
    "runbook": runbook.markdown,
    "metrics": catalog.markdown,
    "commands": commands_table,
}
"""What fills a block, by its name; a block named ``$ command`` is filled by running it."""


def filled(text: str) -> str:
    """Return a document with every generated block made anew; an unknown block raises ``KeyError``."""

    def fill(found: re.Match[str]) -> str:
        name = found["name"]
        body = console(name.removeprefix("$ ")) if name.startswith("$ ") else BLOCKS[name]()
        return f"{found['begin']}{body}{found['end']}"

    return BLOCK.sub(fill, text)


def main() -> None:
    """Write all generated parts."""
    for source, copy in COPIES.items():
        shutil.copyfile(source, copy)
        print(f"copied  {copy.relative_to(ROOT)}")
    README.write_text(filled(README.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"written {README.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
