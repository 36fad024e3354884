"""The Collector's configuration is valid and of one piece, and its build says what is wrong."""

from __future__ import annotations

import re
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.collector import FOLDER, KEY
from tests.support.programs import need
from tools import gobuild, programs

FILES = ("single.yaml", "scaled.yaml")
SETS = {
    "single": ["single.yaml"],
    "scaled": ["scaled.yaml"],
    "scaled, by conversation": ["scaled.yaml", "by-conversation.yaml"],
    "single, with a token": ["single.yaml", "require-token.yaml"],
    "scaled, with a token": ["scaled.yaml", "require-token.yaml"],
    "queue": ["queue.yaml"],
}
CONTRACT = {
    "OTLP_HOST": "127.0.0.1",
    "OTLP_GRPC_PORT": "4317",
    "OTLP_HTTP_PORT": "4318",
    "HEALTH_ENDPOINT": "127.0.0.1:13133",
    "METRICS_HOST": "127.0.0.1",
    "METRICS_PORT": "8888",
}
VARIABLE = re.compile(r"\$\{env:(\w+)(?::-([^}]*))?\}")


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))
    return found


def variables(name: str) -> dict[str, str | None]:
    return {match[1]: match[2] for match in VARIABLE.finditer((FOLDER / name).read_text(encoding="utf-8"))}


def validated(names: list[str], **env: str) -> subprocess.CompletedProcess[str]:
    command = [str(need("otelcol")), "validate", *(f"--config=file:{FOLDER / name}" for name in names)]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=30)


@pytest.mark.parametrize("names", SETS.values(), ids=SETS)
def test_the_collector_finds_nothing_wrong(names: list[str], tmp_path: Path) -> None:
    """`otelcol validate` takes each file, alone and with what may be laid over it, with nothing set but the secrets."""
    done = validated(names, REDACTION_KEY=KEY, INGEST_TOKEN="secret", STORAGE_DIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("key", [None, "", "short"])
def test_without_a_key_for_masks_it_does_not_start(name: str, key: str | None) -> None:
    """No key, or one that can be guessed, is no reason to go on with less."""
    done = validated([name], **({} if key is None else {"REDACTION_KEY": key}))
    assert done.returncode != 0
    assert "hmac_key must" in done.stderr


def test_without_a_token_to_ask_for_it_does_not_start() -> None:
    """Who asks for a token and sets none does not stand open."""
    done = validated(["single.yaml", "require-token.yaml"], REDACTION_KEY=KEY, INGEST_TOKEN="")
    assert done.returncode != 0
    assert "no bearer token" in done.stderr


def test_both_files_are_alike_but_for_the_way_to_the_scorers() -> None:
    """One scorer or many: what is let in, dropped, masked and stored is the same."""
    single, scaled = map(read, FILES)
    assert single["extensions"] == scaled["extensions"]
    assert single["receivers"] == scaled["receivers"]
    scaled["processors"].pop("transform/route")
    assert single["processors"] == scaled["processors"]
    assert single["exporters"]["otlp_grpc/store"] == scaled["exporters"]["otlp_grpc/store"]
    assert single["service"]["telemetry"] == scaled["service"]["telemetry"]
    assert list(single["service"]["pipelines"]) == list(scaled["service"]["pipelines"])


@pytest.mark.parametrize("name", [*FILES, "queue.yaml"])
def test_memory_and_queues_are_bounded(name: str) -> None:
    """Memory is limited first; what waits for scorers is on disk, bounded, tried for ever, and keeps its order."""
    found = read(name)
    pipelines = found["service"]["pipelines"].values()
    assert all(p["processors"][0] == "memory_limiter" for p in pipelines if p["receivers"] == ["otlp"])
    exporters = {exporter for p in pipelines for exporter in p["exporters"] if exporter in found["exporters"]}
    assert exporters == set(found["exporters"])
    for exporter in exporters:
        queue = found["exporters"][exporter]["sending_queue"]
        assert (queue["storage"], queue["sizer"]) == ("file_storage", "bytes")
        assert queue["batch"]["max_size"] > queue["batch"]["min_size"]
        elapsed = found["exporters"][exporter]["retry_on_failure"]["max_elapsed_time"]
        assert (elapsed == "0s") == (exporter != "otlp_grpc/store")
        assert (queue["num_consumers"] == 1) == (exporter != "otlp_grpc/store")


@pytest.mark.parametrize("name", [*FILES, "queue.yaml"])
def test_variables_are_documented_with_their_defaults(name: str) -> None:
    """Each variable is in the README's table, with the default that the file has."""
    table = dict(
        re.findall(r"^\| `(\w+)` \| (.*?) \|", (FOLDER / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    )
    for variable, default in variables(name).items():
        assert table[variable].strip("`") == (default if default is not None else "none"), variable
    assert CONTRACT.items() <= variables(name).items()


def test_every_part_that_is_built_in_is_used_and_of_one_release() -> None:
    """The distribution is slim: each component is of the release of the whole."""
    manifest = read("builder.yaml")
    version = manifest["dist"]["version"]
    kinds = ("receivers", "processors", "exporters", "connectors", "extensions")
    modules = [module["gomod"] for kind in kinds for module in manifest[kind]]
    assert {module.split()[1] for module in modules} == {f"v{version}"}
    used = {
        key.split("/")[0] for names in SETS.values() for n in names for kind in kinds for key in read(n).get(kind, {})
    }
    assert len(modules) == len(used | {"file"})


def go(folder: Path, script: str) -> dict[str, str]:
    """Put a ``go`` on a path of its own; gives the environment to use it."""
    program = folder / "go"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {"PATH": f"{folder}:/usr/bin:/bin", "REACH_CACHE": str(folder / "cache"), "HOME": str(folder)}


VERSION = 'if [ "$1" = env ]; then echo go1.26.0; exit 0; fi'
MAKES_IT = f"{VERSION}\nmkdir -p _build; echo made >> _build/otelcol-reach; echo x >> $HOME/runs"


def test_a_build_is_done_once_and_linked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first call builds into the cache and links it; the next one has nothing to do, also for another link."""
    env = go(tmp_path, MAKES_IT)
    for name in ("one", "two", "one"):
        kept = gobuild.build(programs.collector(), env, links=tmp_path / name / "bin")
        assert (tmp_path / name / "bin" / "otelcol-reach").resolve() == kept
    assert kept.is_relative_to(tmp_path / "cache")
    assert (tmp_path / "runs").read_text() == "x\n"
    assert [path.name for path in kept.parent.iterdir()] == ["otelcol-reach"]
    assert "nothing to build" in capsys.readouterr().out


def test_another_manifest_is_another_build(tmp_path: Path) -> None:
    """A change of builder.yaml does not meet what was built before."""
    env = go(tmp_path, MAKES_IT)
    other = tmp_path / "builder.yaml"
    other.write_text(programs.MANIFEST.read_text(encoding="utf-8") + "\n# changed\n", encoding="utf-8")
    first = gobuild.build(programs.collector(), env, links=tmp_path / "bin")
    second = gobuild.build(programs.collector(other), env, links=tmp_path / "bin")
    assert first != second
    assert (tmp_path / "bin" / "otelcol-reach").resolve() == second


FAILURES = {
    "exit 3": "does not run",
    "echo go1.20.1": "go1.20.1, too old; install Go 1.21",
    f"{VERSION}\necho 'dial tcp: no such host'; exit 1": "the Go modules cannot be fetched",
    f"{VERSION}\necho 'go: requires go >= 1.26.0 (running go 1.22)'; exit 1": "install Go 1.26.0 or newer",
    f"{VERSION}\necho 'no space left on device'; exit 1": "the disk is full",
    f"{VERSION}\necho 'main.go:3: what is this'; exit 1": "main.go:3: what is this",
    VERSION: "the builder left no otelcol-reach",
}


@pytest.mark.parametrize("script", FAILURES)
def test_a_build_that_fails_says_why_and_leaves_nothing(script: str, tmp_path: Path) -> None:
    """Each failure names its cause and what to do; neither cache nor link holds half a build."""
    links = tmp_path / "bin"
    with pytest.raises(gobuild.BuildError, match=re.escape(FAILURES[script])):
        gobuild.build(programs.collector(), go(tmp_path, script), links=links)
    assert not links.exists()
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_no_go_says_how_to_get_it(tmp_path: Path) -> None:
    """Without Go the message says where it is."""
    env = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    with pytest.raises(gobuild.BuildError, match="Go is not on the PATH; install Go"):
        gobuild.build(programs.collector(), env, links=tmp_path / "bin")
