"""Find the Python functions that conditions name."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

_TARGET = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


def resolve_target(target: str) -> Callable[[Any, Any], Any]:
    """Import ``pkg.mod:function``; raise ``ValueError`` that says which part is not there."""
    if not _TARGET.fullmatch(target):
        raise ValueError(f"bad Python target {target!r}; write it like pkg.mod:function")
    module_name, _, names = target.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a module may do anything while it is imported
        raise ValueError(f"cannot import {module_name}: {type(error).__name__}: {error}") from None
    for name in names.split("."):
        if not hasattr(found, name):
            near = get_close_matches(name, dir(found), n=1)
            hint = f'; did you mean "{near[0]}"?' if near else ""
            raise ValueError(f'{module_name} has no "{name}"{hint}')
        found = getattr(found, name)
    if not callable(found):
        raise ValueError(f"{target} is not callable")
    function: Callable[[Any, Any], Any] = found
    return function


def check_target(target: str) -> str:
    """Give ``target`` back once it can be imported."""
    resolve_target(target)
    return target
