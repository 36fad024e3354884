"""Check that what the documentation says is so: generated blocks, commands, code, links."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from reach_otel.publish import catalog
from reach_otel.task import load
from tools import docs

README = docs.README.read_text(encoding="utf-8")
FENCE = re.compile(r"^```(?P<language>\w+)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(language: str) -> list[str]:
    """Return the code blocks of a language which nobody generates."""
    by_hand = docs.BLOCK.sub("", README)
    return [found["code"] for found in FENCE.finditer(by_hand) if found["language"] == language]


def run_python(code: str, folder: Path) -> str:
    command = [sys.executable, "-W", "error", "-c", code]
    environment = {**os.environ, "REACH_METRICS_PORT": "none"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("found", list(docs.BLOCK.finditer(README)), ids=lambda found: found["name"])
def test_generated_block_is_up_to_date(found: re.Match[str]) -> None:
    """Run `make docs` when this fails: the code has changed, or what a command prints."""
    assert docs.filled(found[0]) == found[0]


def test_every_kind_of_block_is_used() -> None:
    """Settings, metrics and commands are all documented."""
    assert set(docs.BLOCKS) <= {found["name"] for found in docs.BLOCK.finditer(README)}


def test_a_stale_block_is_found() -> None:
    """The check itself can fail."""
    stale = "<!-- generated: settings -->\nold\n<!-- end -->"
    assert docs.filled(stale) != stale
    with pytest.raises(KeyError):
        docs.filled("<!-- generated: nothing of that name -->\n<!-- end -->")


@pytest.mark.parametrize(("source", "copy"), docs.COPIES.items(), ids=lambda path: path.name)
def test_copied_file_is_up_to_date(source: Path, copy: Path) -> None:
    """An example which is a copy of a shipped file is still the same."""
    assert copy.read_bytes() == source.read_bytes()


@pytest.mark.parametrize("code", blocks("python"))
def test_code_of_the_readme_runs(code: str, tmp_path: Path) -> None:
    """Each Python block runs as it stands, in a folder that has task files, with no warning."""
    (tmp_path / "tasks").mkdir()
    shutil.copy(docs.ROOT / "examples" / "ticket.task.yaml", tmp_path / "tasks")
    run_python(code, tmp_path)


def test_hand_made_spans_of_the_readme_are_scored(tmp_path: Path) -> None:
    """The block on hand instrumentation prints a run of its task, with the first milestone reached."""
    (tmp_path / "tasks").mkdir()
    shutil.copy(docs.ROOT / "examples" / "ticket.task.yaml", tmp_path / "tasks")
    (code,) = [code for code in blocks("python") if "@reach_otel.agent" in code]
    assert re.fullmatch(r"\[\('ticket-handling', 0\.0909\d+\)\]\n", run_python(code, tmp_path))


@pytest.mark.parametrize("text", blocks("yaml"))
def test_task_files_of_the_readme_are_valid(text: str, tmp_path: Path) -> None:
    """Each YAML block is a task file."""
    file = tmp_path / "readme.task.yaml"
    file.write_text(text, encoding="utf-8")
    assert len(load([file])) == 1


def test_make_targets_of_the_readme_exist() -> None:
    """Every `make X` that the README names is a target."""
    makefile = (docs.ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(
        re.findall(r"\bmake ([a-z]+)\b", " ".join(re.findall(r"`[^`\n]+`|^make .*$", README, re.MULTILINE)))
    ):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_links_of_the_readme_lead_somewhere() -> None:
    """Relative links name files that are there, and anchors name headings."""
    headings = {
        re.sub(r"[^\w-]", "", line.lower().replace(" ", "-")) for line in re.findall(r"^#+ (.*)$", README, re.MULTILINE)
    }
    for target in re.findall(r"\]\(([^)\s]+)\)", README):
        if target.startswith("#"):
            assert target[1:] in headings, target
        elif "://" not in target:
            assert (docs.ROOT / target.partition("#")[0]).exists(), target


def test_metrics_and_labels_that_the_readme_names_exist() -> None:
    """No metric is named that is not exposed, and none with a label that it has not."""
    known = {metric.name: metric.all_labels for metric in (*catalog.METRICS, *catalog.SERVICE_METRICS)}
    prometheus = yaml.safe_load((docs.ROOT / "dashboards" / "prometheus" / "prometheus.yml").read_text("utf-8"))
    links = prometheus["global"]["external_labels"]
    found = re.findall(r"(?<![:\w])(reach_(?!otel\b)[a-z_]+)(?:\{([^}]*)\})?(?![:\w])", README)
    assert any(matchers for _, matchers in found)
    for name, matchers in found:
        assert name in known or name in links, name
        for label in re.findall(r"(\w+)\s*[=!~]", matchers):
            assert label in known[name], (name, label)


def test_example_agent_runs_as_the_readme_shows() -> None:
    """The example needs nothing but the package, and its own claim does not make it a success."""
    text = docs.printed("python examples/agent.py")
    assert "agent:  Resolved" in text
    assert "really: partial" in text
