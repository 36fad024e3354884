"""Turn what Pydantic finds wrong into messages with a line, what is allowed, and what was probably meant."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from difflib import get_close_matches
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from reach_otel.errors import Problem
from reach_otel.task.model import TaskFile
from reach_otel.task.source import Location, Source

_VALUE_CHARS_MAX = 60
_WANTED = {
    "string_type": "text (quote it)",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}


def problems(error: ValidationError, source: Source) -> list[Problem]:
    """Give one problem an error, by line."""
    errors = [(_place(each["loc"]), each) for each in error.errors(include_url=False)]
    misspelt = {(*where[:-1], *_nearest(where)) for where, each in errors if each["type"] == "extra_forbidden"}
    found: dict[tuple[int, Location], Problem] = {}
    for where, each in errors:
        if each["type"] == "missing" and where in misspelt:
            continue  # told by the key that was meant to be this one
        line = source.line_of(where)
        found.setdefault((line, where), Problem(source.file, line, _with_place(where, _text(each, where))))
    return sorted(found.values(), key=lambda problem: problem.line)


def _place(location: tuple[int | str, ...]) -> Location:
    """Keep of Pydantic's location what the file has: no tags of unions, no marks of keys."""
    where = tuple(part for part in location if not str(part).startswith(("$", "[")))
    return tuple(part for index, part in enumerate(where) if not _is_branch(where, index))


def _nearest(where: Location) -> list[str]:
    return get_close_matches(str(where[-1]), keys_at(where[:-1]), n=1)


def did_you_mean(name: str, names: list[str] | tuple[str, ...]) -> str:
    """Give ``; did you mean "x"?`` for the nearest of ``names``, or nothing."""
    near = get_close_matches(name, names, n=1)
    return f'; did you mean "{near[0]}"?' if near else ""


def place_name(where: Location) -> str:
    """Spell a place as people do: ``milestones[2].verify.tool``, list items counted from 0 as in paths."""
    text = ""
    for part in where:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _with_place(where: Location, text: str) -> str:
    return f"{place_name(where)}: {text}" if where else text


def _is_branch(where: Location, index: int) -> bool:
    """Tell a branch of a union, which Pydantic names behind the place of the value, from a key of the file."""
    part = where[index]
    return (
        index > 0
        and isinstance(part, str)
        and bool(re.fullmatch(r"(int|float|str|bool|none|constrained-.*|list\[.*)", part))
    )


def _text(error: Any, where: Location) -> str:
    kind, value, context = error["type"], error["input"], error.get("ctx", {})
    if kind == "extra_forbidden":
        keys = sorted(keys_at(where[:-1]))
        return f"unknown key; allowed: {', '.join(keys)}{did_you_mean(str(where[-1]), keys)}"
    if kind == "missing":
        return "this key is missing"
    if kind == "literal_error":
        allowed = re.findall(r"'([^']*)'", context["expected"])
        return f"{_shown(value)} is not allowed; allowed: {', '.join(allowed)}{did_you_mean(str(value), allowed)}"
    if kind == "string_pattern_mismatch":
        return f"bad name {_shown(value)}; a name starts with a letter, digit or _ and goes on with these and . / : @ -"
    if kind in _WANTED:
        return f"takes {_WANTED[kind]}, not {_shown(value)}"
    if kind == "value_error":
        return str(context["error"])
    message = str(error["msg"])
    if message.startswith("Input should be"):
        return f"must be{message.removeprefix('Input should be')}, not {_shown(value)}"
    return message


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= _VALUE_CHARS_MAX else f"{text[:_VALUE_CHARS_MAX]}..."


def keys_at(where: Location) -> set[str]:
    """Give the keys that the task file allows at a place."""
    at: list[Any] = [TaskFile]
    for part in where:
        at = [inner for each in at for inner in _inside(each, part)] or at
    return {field.alias or name for model in at if _is_model(model) for name, field in model.model_fields.items()}


def _inside(annotation: Any, part: str | int) -> Iterator[Any]:
    """Give the types of what stands under one key or place."""
    if _is_model(annotation):
        for name, field in annotation.model_fields.items():
            if part == (field.alias or name):
                yield from _branches(field.annotation)
    elif get_origin(annotation) is list and isinstance(part, int):
        yield from _branches(get_args(annotation)[0])
    elif get_origin(annotation) is dict and isinstance(part, str):
        yield from _branches(get_args(annotation)[1])


def _branches(annotation: Any) -> Iterator[Any]:
    """Look through ``Annotated`` and unions."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _branches(get_args(annotation)[0])
    elif origin in (Union, UnionType):
        for branch in get_args(annotation):
            yield from _branches(branch)
    else:
        yield annotation


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
