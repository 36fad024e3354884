"""Give tests the foreign programs of this machine: Prometheus, Alertmanager, the Collector, Chromium."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NoReturn

import pytest

from tools.stack.programs import MissingProgram, find

# As they are at import: a fixture of some tests changes the environment.
_ENVIRON: Final[Mapping[str, str]] = dict(os.environ)


def need(name: str) -> Path:
    """Return the executable; without it the test is skipped, or failed in CI, so that it cannot quietly go away."""
    try:
        return find(name, _ENVIRON)
    except MissingProgram as error:
        missing(str(error))


def missing(message: str) -> NoReturn:
    """Skip a test for want of something that it runs; in CI that is a failure."""
    if _ENVIRON.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)
