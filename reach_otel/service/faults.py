"""Tell of an exception for the log: what kind and where, without its message, which may hold values of a span."""

from __future__ import annotations

import traceback
from pathlib import PurePath
from typing import Final

FRAMES_MAX: Final = 8


def told(error: BaseException) -> str:
    """Name the kind of an exception and the lines it came through, innermost first."""
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES_MAX:]
    places = " < ".join(f"{PurePath(frame.filename).name}:{frame.lineno} {frame.name}" for frame in reversed(frames))
    return f"{type(error).__name__} at {places or 'an unknown place'}"
