"""Hold the house rules of the code, with one walk over the syntax trees of the package."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import reach_otel

ROOT = Path(reach_otel.__file__).parent
LINES_MAX = 400

# Imports go from a row to the rows below it only; what shares a row does not import its neighbours.
ROWS = (
    ("__main__", "cli", "testing"),
    ("demo",),
    ("instrument",),
    ("service", "processor", "provider", "offline"),
    ("settings",),
    ("worker",),
    ("publish",),
    ("engine",),
    ("task", "span", "api"),
    ("errors", "names", "clock", "version"),
)
HEIGHT = {part: len(ROWS) - n for n, row in enumerate(ROWS) for part in row}
FACADE = "__init__"  # the package itself, which only hands out what the rows have
MAY_USE_THE_FACADE = frozenset({FACADE, "cli", "testing", "demo"})

PURE = frozenset({"engine", "task"})
IMPURE_MODULES = frozenset(
    """asyncio logging multiprocessing opentelemetry os prometheus_client random secrets socket subprocess threading
    time urllib""".split()
)
IMPURE_CALLS = frozenset({"now", "today", "utcnow", "uuid1", "uuid4"})

OWN_NAME = re.compile(r"reach\.[a-z]|reach_(?!otel\b)[a-z]")
FOREIGN_NAME = re.compile(
    r"(gen_ai|openinference|traceloop|llm|mcp|tool_call|graph\.node|session|user|input|output|pydantic_ai|haystack"
    r"|gcp\.vertex)\.[a-z_]+(\.[a-z_.]*)?$"
)
FOREIGN_NAMES_MAY_STAND_IN = frozenset({"span"})  # the tables of the dialects are about nothing else


class Fault(NamedTuple):
    """A broken rule and where it is broken."""

    where: str
    what: str


def part_of(module: str) -> str:
    """Return the first name below the package: ``reach_otel.engine.fold`` -> ``engine``."""
    names = module.split(".")
    return names[1] if len(names) > 1 else FACADE


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            # `from reach_otel import names` names a module; `from reach_otel.names import X` does not
            yield f"{node.module}.{alias.name}" if node.module == "reach_otel" else node.module or ""


def import_faults(module: str, where: str, target: str) -> Iterator[Fault]:
    part = part_of(module)
    if target.split(".")[0] == "reach_otel":
        other = part_of(target)
        if part not in HEIGHT and part != FACADE:
            yield Fault(where, f"{part} has no row in the layout")
        elif other in HEIGHT and part in HEIGHT and other != part and HEIGHT[other] >= HEIGHT[part]:
            yield Fault(where, f"{part} may not import {other}: imports go downward only")
        elif other not in HEIGHT and part not in MAY_USE_THE_FACADE:
            yield Fault(where, f"{part} may not import the package's front door ({target})")
    elif part in PURE and target.split(".")[0] in IMPURE_MODULES:
        yield Fault(where, f"{part} is pure and may not import {target}")


def docstrings(tree: ast.Module) -> set[int]:
    """Return the ids of the constants that are documentation: docstrings and bare strings after an assignment."""
    return {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    }


def name_faults(module: str, where: str, text: str) -> Iterator[Fault]:
    if part_of(module) == "names":
        return
    if OWN_NAME.match(text):
        yield Fault(where, f"{text!r} is a name of ours: spell it in names.py")
    elif FOREIGN_NAME.match(text) and part_of(module) not in FOREIGN_NAMES_MAY_STAND_IN:
        yield Fault(where, f"{text!r} is an attribute name: spell it in names.py")


def doc_faults(where: str, tree: ast.Module) -> Iterator[Fault]:
    doc = ast.get_docstring(tree)
    if not tree.body:
        return
    if doc is None:
        yield Fault(where, "says nowhere what the module is for")
    elif not doc.split("\n\n")[0].rstrip().endswith((".", ":")):
        yield Fault(where, "its docstring starts with no sentence")


def check(module: str, source: str) -> list[Fault]:
    """Return every rule that a module's source breaks."""
    tree = ast.parse(source)
    faults = list(doc_faults(module, tree))
    if (lines := source.count("\n")) > LINES_MAX:
        faults.append(Fault(module, f"has {lines} lines, more than {LINES_MAX}: two jobs?"))
    documentation = docstrings(tree)
    for node in ast.walk(tree):
        where = f"{module}:{getattr(node, 'lineno', 0)}"
        for target in imported(node):
            faults += import_faults(module, where, target)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            faults += name_faults(module, where, node.value)
        if isinstance(node, ast.Attribute) and node.attr in IMPURE_CALLS and part_of(module) in PURE:
            faults.append(Fault(where, f"{part_of(module)} is pure and may not call .{node.attr}"))
    return faults


MODULES = sorted(ROOT.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=module_of)
def test_module_keeps_the_house_rules(path: Path) -> None:
    """Imports go downward, pure parts stay pure, names are spelled once, each module says its one job."""
    assert check(module_of(path), path.read_text(encoding="utf-8")) == []


DOC = '"""Do one thing."""\n'


@pytest.mark.parametrize(
    ("module", "source", "complaint"),
    [
        ("reach_otel.engine.x", DOC + "import time", "is pure and may not import time"),
        ("reach_otel.task.x", DOC + "from os import path", "is pure and may not import os"),
        (
            "reach_otel.engine.x",
            DOC + "def f():\n    import prometheus_client.core",
            "may not import prometheus_client",
        ),
        ("reach_otel.engine.x", DOC + "from datetime import datetime\nx = datetime.now()", "may not call .now"),
        ("reach_otel.engine.x", DOC + "from reach_otel.publish import metrics", "engine may not import publish"),
        ("reach_otel.task.x", DOC + "from reach_otel import span", "task may not import span"),
        ("reach_otel.publish.x", DOC + "import reach_otel.worker", "publish may not import worker"),
        ("reach_otel.worker", DOC + "import reach_otel", "front door"),
        ("reach_otel.stray", DOC + "from reach_otel import names", "has no row"),
        ("reach_otel.publish.x", DOC + "x = 'reach_runs_total'", "spell it in names.py"),
        ("reach_otel.span.x", DOC + "x = 'reach.task'", "spell it in names.py"),
        ("reach_otel.api", DOC + "x = 'gen_ai.tool.name'", "spell it in names.py"),
        ("reach_otel.api", DOC + "def f(n):\n    return f'reach.{n}'", None),
        ("reach_otel.api", DOC + "def f(n):\n    return f'reach.milestone.{n}'", "spell it in names.py"),
        ("reach_otel.span.x", DOC + "x = 'gen_ai.tool.name'", None),
        ("reach_otel.cli.x", DOC + "x = 'reach_otel.cli.main:main'", None),
        ("reach_otel.api", '"""Set gen_ai.tool.name."""\n\ndef f():\n    """reach.task goes on."""', None),
        ("reach_otel.api", "x = 1", "says nowhere what the module is for"),
        ("reach_otel.api", '"""x"""\n', "starts with no sentence"),
        ("reach_otel.api", DOC + "x = 1\n" * LINES_MAX, "more than 400"),
    ],
)
def test_the_rules_can_be_broken(module: str, source: str, complaint: str | None) -> None:
    """Each rule finds its fault in a bad snippet, and none in a good one."""
    found = "; ".join(fault.what for fault in check(module, source))
    assert (complaint in found) if complaint else (found == "")
