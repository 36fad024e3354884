"""Name the version of this package that is installed."""

from __future__ import annotations

from importlib import metadata
from typing import Final

UNKNOWN: Final = "unknown"  # run from a checkout


def version() -> str:
    """Return the version, or ``UNKNOWN``."""
    try:
        return metadata.version("reach-otel")
    except metadata.PackageNotFoundError:
        return UNKNOWN
