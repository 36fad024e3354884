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

    With ``declared``, any other than these is ``other``. Without, what the deployer names passes if it has the form of
    a name, and a model's name if the price table spells it out; a model that the table knows by a pattern counts under
    the table's own name for it, as a pattern fits whatever is put at its end.
    """

    __slots__ = ("declared",)

    def __init__(self, declared: Iterable[str] = ()) -> None:
        self.declared: Final = tuple(dict.fromkeys(declared))

    def label(self, variant: str | None, by: VariantBy | None) -> str:
        """Return the label value of a variant; ``by`` says where it comes from, and ``None`` is not trusted."""
        if not variant:
            return UNKNOWN
        if variant == OVERFLOW:  # a name of our own, which must not be taken by what is no overflow
            return OTHER
        if self.declared:
            return variant if variant in self.declared else OTHER
        if by in ("named", "task"):
            return variant if FORM.fullmatch(variant) else OTHER
        return _model(variant)


def _model(name: str) -> str:
    if name not in listed_names():
        model = find_model(name)
        if model is None:
            return OTHER
        name = model.id
    return name if FORM.fullmatch(name) else OTHER
