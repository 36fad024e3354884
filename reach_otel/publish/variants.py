"""Decide which variant a run counts under: one of a closed set, however freely spans name theirs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from reach_otel import names
from reach_otel.engine.models import find_model, listed_names
from reach_otel.publish.labels import OTHER, OVERFLOW, UNKNOWN

if TYPE_CHECKING:
    from reach_otel.engine.events import VariantBy

FORM: Final = re.compile(names.VARIANT_FORM)


class Variants:
    """Map what a run calls its variant onto a label value.

    With ``declared``, any other is ``other``, but for those ``known``: fixed by a setting or a task file. Without, what
    the deployer names passes if it has the form of a name, and a model's name if the price table spells it out; a model
    that the table knows by a pattern counts under the table's own name for it, as a pattern fits whatever is put at its
    end. What only a span names passes if it is known: whoever sends to a service makes up spans, while in the process
    of the application (``trust_spans``) they are the deployer's too.
    """

    __slots__ = ("_known", "_trusted", "declared")

    def __init__(self, declared: Iterable[str] = (), *, known: Iterable[str] = (), trust_spans: bool = False) -> None:
        self.declared: Final = tuple(dict.fromkeys(declared))
        self._known = frozenset((*self.declared, *known))
        self._trusted = frozenset(("task", "named", "span") if trust_spans else ("task", "named"))

    def label(self, variant: str | None, by: VariantBy | None) -> str:
        """Return the label value of a variant; ``by`` says where it comes from, and ``None`` is not trusted."""
        if not variant:
            return UNKNOWN
        if variant == OVERFLOW:  # a name of our own, which must not be taken by what is no overflow
            return OTHER
        if variant in self._known:
            return variant
        if self.declared:
            return OTHER
        if by in self._trusted:
            return variant if FORM.fullmatch(variant) else OTHER
        return OTHER if by == "span" else _model(variant)


def _model(name: str) -> str:
    if name not in listed_names():
        model = find_model(name)
        if model is None:
            return OTHER
        name = model.id
    return name if FORM.fullmatch(name) else OTHER
