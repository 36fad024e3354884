"""Hold the Dockerfile to what an image of ours must be; no image is built."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Final

from packaging.requirements import Requirement

from tests.support import compose
from tests.support.compose import ROOT

PYPROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_base_is_pinned_and_labels_say_what_is_inside() -> None:
    """Both stages have the same base, by its full version, and the label's versions are the real ones."""
    base = dict(argument.split("=", 1) for word, argument in compose.instructions() if word == "ARG")["PYTHON_IMAGE"]
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-[a-z]+", base)
    bases = [argument.split()[0] for word, argument in compose.instructions() if word == "FROM"]
    assert bases == ["${PYTHON_IMAGE}"] * 2
    [labels] = [argument for word, argument in compose.last_stage() if word == "LABEL"]
    assert f'base.name="docker.io/library/{base}"' in labels
    assert f'image.version="{PYPROJECT["version"]}"' in labels
    assert f'image.licenses="{PYPROJECT["license"]}"' in labels


def test_image_runs_without_root_and_without_tools_to_build_with() -> None:
    """The last stage installs nothing from an index, and its user is the one in the file."""
    stage, services = compose.last_stage(), compose.services()
    [user] = [argument for word, argument in stage if word == "USER"]
    assert user == services["scorer-1"].raw["user"] == services["collector"].raw["user"]
    runs = " ".join(argument for word, argument in stage if word == "RUN")
    assert "pip uninstall" in runs
    assert not re.search(r"pip install|apt|curl|wget", runs)
    assert ("ENTRYPOINT", '["reach-otel"]') in stage
    assert ("WORKDIR", services["scorer-1"].command[-1].partition("=")[2].rpartition("/")[0]) in stage


def test_builder_gets_what_it_copies_and_nothing_else() -> None:
    """A build from a work tree equals one from a clean clone."""
    copied = [
        word
        for name, rest in compose.instructions()
        if name == "COPY" and "--from" not in rest
        for word in rest.split()[:-1]
    ]
    assert copied
    for path in copied:
        assert (ROOT / path).exists(), path
        assert compose.is_sent(path), path
    assert compose.is_sent("reach_otel/cli/main.py")
    for path in (
        ".git",
        ".git/HEAD",
        ".venv/bin/python",
        "tests",
        "tools/up.py",
        "docker-compose.yml",
        "reach-otel.db",
        ".env",
    ):
        assert not compose.is_sent(path), path
    assert not compose.is_sent("reach_otel/__pycache__/x.cpython-313.pyc")


def test_image_has_a_version_that_the_package_allows_of_everything_it_needs() -> None:
    """The pinned versions are exact, and none is outside of what pyproject.toml says."""
    lines = (ROOT / "tools" / "image-requirements.txt").read_text().splitlines()
    pinned = {}
    for line in (line for line in lines if line and not line.startswith("#")):
        assert re.fullmatch(r"[a-z0-9-]+==[\w.]+", line), line
        name, _, version = line.partition("==")
        pinned[name] = version
    for text in [*PYPROJECT["dependencies"], *PYPROJECT["optional-dependencies"]["grpc"]]:
        asked = Requirement(text)
        name = re.sub(r"[-_.]+", "-", asked.name).lower()
        assert asked.specifier.contains(pinned[name]), text


def test_health_check_is_a_program_of_the_image_and_needs_no_shell() -> None:
    """It is given word by word, and asks the port that is exposed."""
    check = health_check()
    assert check[0] == "python"
    assert "4318" in dict(compose.last_stage())["EXPOSE"].split()
    assert "4318, " in check[-1]


def health_check() -> list[str]:
    """Return the command of HEALTHCHECK."""
    [argument] = [argument for word, argument in compose.last_stage() if word == "HEALTHCHECK"]
    words: list[str] = json.loads(argument.partition("CMD ")[2])
    return words
