"""Run a small application as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import reach_otel

APPLICATION_SECONDS = 60


def run_application(code: str, folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the code in a folder, with no settings but those given; what the SDK deprecates is not its concern."""
    script = folder / "app.py"
    script.write_text(textwrap.dedent(code), encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "REACH_"))}
    return subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", str(script)],
        capture_output=True,
        text=True,
        check=False,
        timeout=APPLICATION_SECONDS,
        cwd=folder,
        env={**kept, "PYTHONPATH": str(Path(reach_otel.__file__).parents[1]), **environ},
    )
