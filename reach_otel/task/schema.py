"""Publish the JSON Schema of the task file, so that editors complete and check it.

``python -m reach_otel.task.schema --write`` writes :data:`FILE` anew; ``--check`` fails where it is out of date. An
editor with the YAML language server finds it through a first line in the task file, with a path or URL of the schema::

    # yaml-language-server: $schema=task.schema.json

JSON files name it under ``$schema`` in the editor's own settings, as the task file knows no such key.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from reach_otel.task.model import TaskFile

FILE: Final = Path(__file__).with_name("task.schema.json")


def schema() -> dict[str, Any]:
    """Give the schema of draft 2020-12 as plain values."""
    made = TaskFile.model_json_schema(by_alias=True)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **_without_titles(made),
        "title": "reach-otel task",
    }


def schema_text() -> str:
    """Give the schema as the text of :data:`FILE`."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _without_titles(value: Any, *, names: bool = False) -> Any:
    """Drop the titles that repeat a key's name; ``names``: the keys here are names of properties, not of the schema."""
    if isinstance(value, list):
        return [_without_titles(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: item
        if key in ("default", "enum", "const") and not names
        else _without_titles(item, names=_holds_names(key, names))
        for key, item in value.items()
        if names or key != "title"
    }


def _holds_names(key: str, names: bool) -> bool:
    return not names and key in ("properties", "$defs")


def main(arguments: Sequence[str]) -> int:
    """Run the command line of this module; return its exit code."""
    if list(arguments) == ["--write"]:
        FILE.write_text(schema_text(), encoding="utf-8")
        return 0
    if list(arguments) == ["--check"]:
        if FILE.is_file() and FILE.read_text(encoding="utf-8") == schema_text():
            return 0
        sys.stderr.write(f"{FILE.name} is out of date; run python -m reach_otel.task.schema --write\n")
        return 1
    sys.stderr.write("usage: python -m reach_otel.task.schema --check | --write\n")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
