"""Build the foreign programs that no package manager has as they are needed here.

``make programs`` runs it. The Collector is the slim distribution of ``collector/builder.yaml``, made by the
OpenTelemetry Collector Builder of the release that the file names; the trace store is Jaeger without its web pages; and
``compose-spec`` is the part of Docker Compose that reads a file, which needs no engine.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

import yaml

from tools.gobuild import ROOT, BuildError, Building, Recipe, build

MANIFEST: Final = ROOT / "collector" / "builder.yaml"
BUILDER: Final = "go.opentelemetry.io/collector/cmd/builder"
JAEGER_MODULE: Final = "github.com/jaegertracing/jaeger"
JAEGER: Final = "2.13.0"
JAEGER_MODULE_VERSION: Final = "v1.76.0"
"""Jaeger 2 has no Go module of its own version: each release of it is tagged beside one of the old line."""
COMPOSE_MODULE: Final = "github.com/compose-spec/compose-go/v2"
COMPOSE: Final = "2.16.2"


def collector(manifest: Path = MANIFEST) -> Recipe:
    """Return how to build the Collector of a manifest."""
    text = manifest.read_text(encoding="utf-8")
    distribution: dict[str, str] = yaml.safe_load(text)["dist"]
    name, version = distribution["name"], distribution["version"]

    def make(building: Building) -> Path:
        (building.folder / "builder.yaml").write_text(text, encoding="utf-8")
        said = building.run("run", f"{BUILDER}@v{version}", "--config", "builder.yaml")
        made = building.folder / distribution["output_path"] / name
        if not made.is_file():
            raise BuildError(f"the builder left no {name}\n{said}")
        return made

    return Recipe(name, version, text, make)


def jaeger() -> Recipe:
    """Return how to build the trace store."""
    return _command("jaeger", JAEGER, f"{JAEGER_MODULE}@{JAEGER_MODULE_VERSION}", "./cmd/jaeger")


def compose() -> Recipe:
    """Return how to build what reads a Compose file."""
    return _command("compose-spec", COMPOSE, f"{COMPOSE_MODULE}@v{COMPOSE}", "./cmd")


def _command(name: str, version: str, module: str, package: str) -> Recipe:
    """Build a command in its own module's folder, where its author's checksums are."""

    def make(building: Building) -> Path:
        building.run("mod", "download", module)
        sources = Path(building.run("env", "GOMODCACHE").strip()) / module
        made = building.folder / name
        building.run("build", "-trimpath", "-o", str(made), package, folder=sources)
        return made

    return Recipe(name, version, module, make)


def main() -> int:
    """Build what is missing, and say what is going on; gives the exit code."""
    try:
        for recipe in (collector(), jaeger(), compose()):
            build(recipe, dict(os.environ))
    except BuildError as error:
        print(f"programs: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
