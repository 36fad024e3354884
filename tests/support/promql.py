"""Say which series and labels a PromQL expression needs, so that tests can hold it against what is exposed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, Final, NamedTuple

import promql_parser as promql
from promql_parser import MatchOp

_SIGNS: Final = ((MatchOp.Equal, "="), (MatchOp.NotEqual, "!="), (MatchOp.Re, "=~"), (MatchOp.NotRe, "!~"))

COUNTING = frozenset(("rate", "irate", "increase", "resets"))
"""Functions that only make sense over counters."""


class Use(NamedTuple):
    """One selector of an expression, with the labels that it or what stands around it asks for."""

    metric: str
    labels: frozenset[str]
    matchers: tuple[tuple[str, str, str], ...]
    """Label, operator (``=``, ``!=``, ``=~``, ``!~``), value."""

    window: timedelta | None
    function: str | None
    """The function that takes it, such as ``rate``."""


def uses(expression: str) -> list[Use]:
    """Return every selector of an expression.

    :raises ValueError: it is not PromQL.
    """
    return list(_uses(promql.parse(expression), frozenset(), None))


def aggregations(expression: str) -> list[tuple[str, str]]:
    """Return every aggregation as its operator, such as ``sum``, and what it aggregates."""
    found: list[tuple[str, str]] = []

    def visit(node: Any) -> None:
        if isinstance(node, promql.AggregateExpr):
            found.append((str(node.op), node.expr.prettify()))

    promql.walk(promql.parse(expression), visit)
    return found


def labels_of(expression: str, known: Callable[[str], frozenset[str]]) -> frozenset[str]:
    """Return the labels of the series that an expression gives, where ``known`` tells those of each metric."""
    return _labels(promql.parse(expression), known)


def _labels(node: Any, known: Callable[[str], frozenset[str]]) -> frozenset[str]:
    match node:
        case promql.VectorSelector():
            return known(node.name or "")
        case promql.MatrixSelector():
            return known(node.vector_selector.name or "")
        case promql.AggregateExpr():
            inner = _labels(node.expr, known)
            if str(node.op) in ("topk", "bottomk"):
                return inner
            named = frozenset(node.modifier.labels) if node.modifier else frozenset()
            return inner & named if _by(node.modifier) or node.modifier is None else inner - named
        case promql.BinaryExpr():
            left, right = _labels(node.lhs, known), _labels(node.rhs, known)
            if left and right and _is_one_to_one(node):
                on, _ = _matching(node.modifier)
                return left & on if on else left
            return left or right
        case promql.Call():
            inner = frozenset().union(*(_labels(argument, known) for argument in node.args))
            made = {node.args[1].val} if node.func.name == "label_replace" else set()
            return inner - {"le"} if node.func.name == "histogram_quantile" else inner | made
        case promql.NumberLiteral() | promql.StringLiteral():
            return frozenset()
        case _:
            return _labels(node.expr, known)


def _is_one_to_one(node: Any) -> bool:
    return node.modifier is None or node.modifier.card == promql.VectorMatchCardinality.OneToOne


def _uses(node: Any, wanted: frozenset[str], function: str | None) -> Iterator[Use]:
    match node:
        case promql.VectorSelector():
            yield _use(node, wanted, None, function)
        case promql.MatrixSelector():
            yield _use(node.vector_selector, wanted, node.range, function)
        case promql.AggregateExpr():
            yield from _uses(node.expr, wanted | _by(node.modifier), None)
            if isinstance(node.param, promql.Expr):
                yield from _uses(node.param, frozenset(), None)
        case promql.BinaryExpr():
            on, lent = _matching(node.modifier)
            # What ``group_left`` brings over comes from one side only, and is asked of the other side no more.
            yield from _uses(node.lhs, (wanted - lent) | on, None)
            yield from _uses(node.rhs, on | lent if node.modifier and node.modifier.matching else wanted, None)
        case promql.Call():
            yield from _call(node, wanted)
        case promql.NumberLiteral() | promql.StringLiteral():
            return
        case _:  # parentheses, a sign, a subquery
            yield from _uses(node.expr, wanted, function)


def _call(node: Any, wanted: frozenset[str]) -> Iterator[Use]:
    name = node.func.name
    if name == "label_replace":
        made, source = node.args[1].val, node.args[3].val
        wanted = (wanted - {made}) | ({source} if source else set())
    if name == "histogram_quantile":
        wanted = wanted | {"le"}
    for argument in node.args:
        yield from _uses(argument, wanted, name)


def _by(modifier: Any) -> frozenset[str]:
    return frozenset(modifier.labels) if modifier and modifier.type == promql.AggModifierType.By else frozenset()


def _matching(modifier: Any) -> tuple[frozenset[str], frozenset[str]]:
    """Return the labels that both sides must have, and those that the one side lends the other."""
    if modifier is None or modifier.matching is None:
        return frozenset(), frozenset()
    named = frozenset(modifier.matching.labels)
    lent = frozenset(modifier.group_labels or ())
    return named if modifier.matching.type == promql.LabelModifierType.Include else frozenset(), lent


def _use(selector: Any, wanted: frozenset[str], window: timedelta | None, function: str | None) -> Use:
    matchers = tuple((m.name, _sign(m.op), m.value) for m in selector.matchers.matchers)
    named = next((value for label, sign, value in matchers if label == "__name__" and sign == "="), None)
    metric = selector.name or named or ""
    asked = wanted | {label for label, _, _ in matchers if label != "__name__"}
    return Use(metric, asked, matchers, window, function)


def _sign(op: MatchOp) -> str:
    return next(sign for known, sign in _SIGNS if known == op)
