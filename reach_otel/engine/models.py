"""Find a model in the price table of ``genai-prices`` by its name, and keep no more names than a limit."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo

NAME_CHARS_MAX: Final = 256
NAMES_MAX: Final = 1_024  # remembered
_DATED = re.compile(r"-\d{4}-?\d{2}-?\d{2}$")


def find_model(name: str) -> ModelInfo | None:
    """Find the model of this name, also with a date at its end; ``None`` for one that the table does not know."""
    return _find(name) if len(name) <= NAME_CHARS_MAX else None


@lru_cache(maxsize=NAMES_MAX)
def _find(name: str) -> ModelInfo | None:
    """Ask the table's providers one by one: the package's own search remembers every name it was ever asked for."""
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415 - slow to import, and only needed for a run

    providers = get_snapshot().providers
    for each in dict.fromkeys((name.lower(), _DATED.sub("", name.lower()))):
        maker = next((p for p in providers if p.model_match is not None and p.model_match.is_match(each)), None)
        model = maker.find_model(each, all_providers=providers) if maker is not None else None
        if model is not None:
            return model
    return None


@lru_cache(maxsize=1)
def listed_names() -> frozenset[str]:
    """Give every name that the table spells out: a closed set, unlike its patterns, which fit any ending."""
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415 - as above

    found: set[str] = set()
    for provider in get_snapshot().providers:
        for model in provider.models:
            found.add(model.id)
            todo = [model.match]
            while todo:
                clause = todo.pop()
                todo.extend(getattr(clause, "or_", ()))
                if (spelt := getattr(clause, "equals", None)) is not None:
                    found.add(spelt)
    return frozenset(found)
