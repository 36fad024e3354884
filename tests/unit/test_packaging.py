"""Check what a user installs: the wheel's files, the licences that come along, and the oldest versions promised."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOWER_BOUNDS = ROOT / "tests" / "lower-bounds.txt"

PERMISSIVE = re.compile(r"\b(MIT|BSD|ISC|Apache|PSF|Python Software Foundation|0BSD|Unlicense|Zlib)\b", re.IGNORECASE)
EXCUSED = {"certifi": "MPL-2.0, unchanged: a list of root certificates that requests brings along"}


def installed() -> Iterator[str]:
    """Yield the names of all packages that come with reach-otel in this environment."""
    todo = [Requirement(text) for text in PROJECT["project"]["dependencies"]]
    seen: set[str] = set()
    while todo:
        name = canonicalize_name(todo.pop().name)
        if name in seen:
            continue
        seen.add(name)
        yield name
        wanted = [Requirement(text) for text in distribution(name).requires or ()]
        todo += [one for one in wanted if one.marker is None or one.marker.evaluate({"extra": ""})]


def licence_of(name: str) -> str:
    about = distribution(name).metadata
    said = [value for key in ("License-Expression", "License") for value in about.get_all(key) or ()]
    return "; ".join(said or [word for word in about.get_all("Classifier") or () if word.startswith("License ::")])


def test_every_licence_is_permissive() -> None:
    """Nothing that comes along binds the user to more than naming its authors."""
    bad = {name: licence for name in installed() if not PERMISSIVE.search(licence := licence_of(name))}
    assert set(bad) <= set(EXCUSED), bad


def pins() -> dict[str, str]:
    lines = LOWER_BOUNDS.read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if "==" in line)


def test_lower_bounds_are_those_that_are_tested() -> None:
    """The bounds in pyproject.toml and the versions in the constraints file are the same."""
    promised = {}
    for text in PROJECT["project"]["dependencies"]:
        requirement = Requirement(text)
        (bound,) = requirement.specifier
        assert bound.operator == ">=", f"{requirement.name} has another bound than a lower one"
        promised[requirement.name] = bound.version
    assert promised == pins()


def environment(folder: Path) -> Path:
    venv.create(folder, with_pip=True)
    return folder / "bin" / "python"


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# About files beside the package, which do not depend on what is installed with it.
NOT_OF_THE_PACKAGE = """
collector compose dashboards image packaging paging_by_chance panel_numbers readme rules stack up
""".split()


@pytest.mark.slow
def test_unit_tests_pass_with_the_oldest_versions_promised(tmp_path: Path) -> None:
    """Each lower bound is real: with exactly these versions the unit tests pass."""
    python = environment(tmp_path / "venv")
    tools = [tool for tool in PROJECT["dependency-groups"]["dev"] if tool.startswith(("pytest", "hypothesis"))]
    run(python, "-m", "pip", "install", "--quiet", "--constraint", LOWER_BOUNDS, ROOT, *tools)
    tests = ["tests/unit", *(f"--ignore=tests/unit/test_{name}.py" for name in NOT_OF_THE_PACKAGE)]
    run(python, "-m", "pytest", "-q", "-m", "not slow and not bench and not e2e", "-p", "no:cacheprovider", *tests)


@pytest.mark.slow
def test_wheel_holds_what_is_needed_and_no_more(tmp_path: Path) -> None:
    """The wheel has the types, the schema and the demo's task file, works by itself, and carries no test along."""
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, ROOT)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for wanted in ("py.typed", "task/task.schema.json", "demo/ticket.task.yaml", "cli/main.py", "service/runbook.md"):
        assert f"reach_otel/{wanted}" in names
    assert {name.split("/")[0] for name in names} == {
        "reach_otel",
        next(n.split("/")[0] for n in names if ".dist-info" in n),
    }
    assert any(name.endswith("licenses/LICENSE") for name in names)
    python = environment(tmp_path / "venv")
    run(python, "-m", "pip", "install", "--quiet", wheel)
    text = run(python.with_name("reach-otel"), "demo", "--duration", "2", "--metrics-port", "none", cwd=tmp_path)
    assert "high-layer reach" in text


def python_found(path: str) -> str:
    """Return which interpreter the Makefile would take with this PATH."""
    show = ["make", "--silent", "--eval", "show:; @echo $(PYTHON)", "show"]
    environment = {
        name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "MAKELEVEL", "PYTHON"}
    }
    done = subprocess.run(show, cwd=ROOT, env=environment | {"PATH": path}, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def script(file: Path, text: str) -> None:
    file.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    file.chmod(0o755)


def test_make_takes_the_first_python_that_really_runs(tmp_path: Path) -> None:
    """A version manager's shim that only fails is passed over, and so is a Python that is too old."""
    system = os.defpath.lstrip(":")
    script(tmp_path / "python3.13", "echo 'no such version is installed' >&2; exit 127")
    script(tmp_path / "python3.12", "exit 1")
    script(tmp_path / "python3.11", f'exec {sys.executable} "$@"')
    assert python_found(f"{tmp_path}:{system}") == "python3.11"
    script(tmp_path / "python3.12", f'exec {sys.executable} "$@"')
    assert python_found(f"{tmp_path}:{system}") == "python3.12"


@pytest.mark.slow
def test_make_demo_sets_up_everything_by_itself(tmp_path: Path) -> None:
    """In a folder with nothing but the sources, one command ends in runs with scores."""
    clone = tmp_path / "clone"
    shutil.copytree(
        ROOT, clone, ignore=shutil.ignore_patterns(".git", ".venv", ".stack", "__pycache__", ".*_cache", ".hypothesis")
    )
    text = run("make", "demo", "ARGS=--duration 4 --metrics-port none", cwd=clone)
    assert "installing reach-otel" in text
    assert "high-layer reach" in text
