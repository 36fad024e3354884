"""Build a program from Go modules once, say what is going on, and keep it where every checkout finds it.

Programs are kept in a cache folder (``$REACH_CACHE``, else ``~/.cache/reach-otel``) under a name that changes with what
they are built from, so that a second call, also from another checkout, has nothing to do.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
BIN: Final = ROOT / "collector" / "bin"
GO_VERSION: Final = (1, 21)
"""From this one on, Go fetches by itself the newer one that a module asks for."""
TELL_SECONDS: Final = 15.0
LAST_LINES: Final = 15

_PROXY: Final = re.compile(r"proxyconnect|dial tcp|no such host|i/o timeout|TLS handshake|connection refused|GOPROXY")
_DISK: Final = re.compile(r"no space left on device")
_OLD: Final = re.compile(r"requires go >= (\S+)")


class BuildError(Exception):
    """Say why a program cannot be built, and what to do."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What to build: ``source`` is all that the result depends on, and ``make`` leaves the program in a folder."""

    name: str
    version: str
    source: str
    make: Callable[[Building], Path]


@dataclass(frozen=True, slots=True)
class Building:
    """Run Go for one recipe, in a folder that is thrown away."""

    name: str
    go: str
    folder: Path
    environ: Mapping[str, str]

    def run(self, *arguments: str, folder: Path | None = None) -> str:
        """Run ``go`` with these arguments, tell now and then that it still works, and return the last lines it said.

        :raises BuildError: it failed.
        """
        env = {**self.environ, "GOFLAGS": self.environ.get("GOFLAGS") or "-buildvcs=false", "GOWORK": "off"}
        log = self.folder / "build.log"
        ended = threading.Event()
        with log.open("wb") as output:
            teller = threading.Thread(target=self._tell, args=(log, ended), daemon=True)
            teller.start()
            try:
                done = subprocess.run(
                    [self.go, *arguments],
                    cwd=folder or self.folder,
                    env=env,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    check=False,
                )
            finally:
                ended.set()
                teller.join()
        said = log.read_text(errors="replace")
        last = "\n".join(f"  {line}" for line in said.splitlines()[-LAST_LINES:])
        if done.returncode:
            raise BuildError(f"{_why(said, env)}\n{last}")
        return last

    def _tell(self, log: Path, ended: threading.Event) -> None:
        started = time.monotonic()
        while not ended.wait(TELL_SECONDS):
            lines = log.read_text(errors="replace").splitlines() or [""]
            at = re.sub(r"^\S+\s+INFO\s+\S+\s+", "", lines[-1])[:100] or "still at work"
            print(f"{self.name}: {time.monotonic() - started:.0f} s: {at}", flush=True)


def build(recipe: Recipe, environ: Mapping[str, str], links: Path = BIN) -> Path:
    """Return the program of a recipe, built if it is not in the cache; a link in ``links`` leads to it.

    :raises BuildError: Go is missing or too old, or the build fails; the cache is as it was.
    """
    name = recipe.name
    kept = cache(environ) / name / key(recipe.source) / name
    if kept.is_file():
        print(f"{name}: {kept} is there; nothing to build")
    else:
        go = find_go(environ)
        print(
            f"{name}: building {recipe.version} with {go}. The first time this takes some minutes and fetches"
            " some hundred MB of Go modules; all output is shown when something goes wrong.",
            flush=True,
        )
        started = time.monotonic()
        kept.parent.mkdir(parents=True, exist_ok=True)
        # Beside its place, so that it is moved there at once: two builds at the same time do not meet half of one.
        with tempfile.TemporaryDirectory(dir=kept.parent, prefix="build-") as folder:
            recipe.make(Building(name, go, Path(folder), environ)).replace(kept)
        print(f"{name}: built in {time.monotonic() - started:.0f} s, kept as {kept}")
    _link(links / name, kept)
    return kept


def cache(environ: Mapping[str, str]) -> Path:
    """Return the folder of all programs ever built."""
    given = environ.get("REACH_CACHE")
    return Path(given) if given else Path(environ.get("HOME") or Path.home()) / ".cache" / "reach-otel"


def key(source: str) -> str:
    """Return the name under which the result of a source is kept."""
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def find_go(environ: Mapping[str, str]) -> str:
    """Return the Go to build with.

    :raises BuildError: there is none, or it is too old to fetch a newer one by itself.
    """
    go = shutil.which("go", path=environ.get("PATH"))
    wanted = ".".join(map(str, GO_VERSION))
    how = f"install Go {wanted} or newer: https://go.dev/doc/install"
    if go is None:
        raise BuildError(f"Go is not on the PATH; {how}")
    try:
        said = subprocess.run([go, "env", "GOVERSION"], env=dict(environ), capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise BuildError(f"{go} does not run ({error}); {how}") from None
    found = re.match(r"go(\d+)\.(\d+)", said.stdout.strip())
    if found is None or (int(found[1]), int(found[2])) < GO_VERSION:
        raise BuildError(f"{go} is {said.stdout.strip() or 'of an unknown version'}, too old; {how}")
    return go


def _why(said: str, env: Mapping[str, str]) -> str:
    if _DISK.search(said):
        return "the build failed: the disk is full; it needs about 3 GB for Go's caches (go clean -cache makes room)"
    if old := _OLD.search(said):
        return f"the build failed: Go is too old; install Go {old[1]} or newer, or let it fetch one (GOTOOLCHAIN=auto)"
    if _PROXY.search(said):
        proxy = env.get("GOPROXY") or "the default proxy"
        return f"the build failed: the Go modules cannot be fetched from {proxy}; set GOPROXY to a proxy you can reach"
    return "the build failed"


def _link(link: Path, kept: Path) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    if link.is_symlink() or link.exists():
        if link.resolve() == kept.resolve():
            return
        link.unlink()
    link.symlink_to(kept.absolute())
    print(f"{kept.name}: {link} leads to it")
