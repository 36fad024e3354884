"""Write a task file's model as YAML text that loads as the same model."""

from __future__ import annotations

from typing import Any

import yaml

from reach_otel.task.model import TaskFile
from reach_otel.task.source import reads_as_text


class _Dumper(yaml.SafeDumper):
    """Quote text that YAML 1.2 would read as something else; the library only knows YAML 1.1."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the signature of the library
        return True


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=None if reads_as_text(value) else '"')


_Dumper.add_representer(str, _text)


def dump(model: TaskFile) -> str:
    """Write only what the model was given, in its own order."""
    values = model.model_dump(mode="json", by_alias=True, exclude_unset=True)
    text: str = yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
    return text
