"""Run several scorers that keep their addresses and databases, and compare what they count and say together."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.support import recordings
from tests.support.service import Served
from tools.stack import ports

_SAMPLE: Final = re.compile(r"(reach_\w+)(\{[^}]*\})? (\S+)")
_HEALTH: Final = ("reach_scorer_", "reach_service_", "reach_live_")


class Fleet:
    """Some scorers; a context manager that ends them."""

    def __init__(self, folder: Path, *flags: str, scorers: int = 2, env: dict[str, str] | None = None) -> None:
        self.folder = folder
        self._flags = flags
        self._env = env
        self._ports = [tuple(ports.choose_any(("http", "grpc")).values()) for _ in range(scorers + 1)]  # room for one
        self.scorers: list[Served] = []
        for n in range(scorers):
            self.scorers.append(self._start(n))

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, *_: object) -> None:
        for scorer in self.scorers:
            scorer.stop()

    def addresses(self, count: int) -> list[str]:
        """Give where the first scorers take spans, whether they are started or not."""
        return [f"127.0.0.1:{grpc}" for _, grpc in self._ports[:count]]

    def kill(self, n: int) -> None:
        """End one at once."""
        self.scorers[n].kill()

    def restart(self, n: int, *flags: str, new_database: bool = False) -> None:
        """Start one again: same address, same database, or a new one; ``flags`` go over those of all."""
        if new_database:
            for file in self.scorers[n].folder.glob("reach-otel.db*"):
                file.unlink()
        self.scorers[n] = self._start(n, *flags)

    def add(self) -> Served:
        """Start one more, with a database of its own."""
        self.scorers.append(self._start(len(self.scorers)))
        return self.scorers[-1]

    def verdicts(self) -> list[list[str]]:
        """Give the runs that have their verdict, by scorer."""
        return [recordings.verdicts(scorer) for scorer in self.scorers]

    def _start(self, n: int, *flags: str) -> Served:
        folder = self.folder / f"scorer-{n + 1}"
        folder.mkdir(exist_ok=True)
        http, grpc = self._ports[n]
        return Served(folder, "--grpc-port", str(grpc), *self._flags, *flags, port=http, env=self._env)


def counted(scorers: Sequence[Served], *, health: bool = False) -> dict[str, float]:
    """Add up all counters and histograms of scorers, by name and labels: of the runs, or of their own health."""
    sums: dict[str, float] = defaultdict(float)
    for scorer in scorers:
        _, _, body = scorer.ask("GET", "/metrics")
        kinds: dict[str, str] = {}
        for line in body.decode().splitlines():
            if line.startswith("# TYPE "):
                name, kind = line.split()[2:4]
                kinds[name.removesuffix("_total")] = kind
            elif match := _SAMPLE.match(line):
                kind = kinds.get(re.sub(r"_(total|bucket|sum|count)$", "", match[1]), "")
                if match[1].startswith(_HEALTH) == health and kind in ("counter", "histogram"):
                    sums[match[1] + (match[2] or "")] += float(match[3])
    return dict(sums)
