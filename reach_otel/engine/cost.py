"""Price the tokens of a run with the tables of ``genai-prices`` (SPEC 6.7); an unknown model has no price."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reach_otel.engine.models import find_model
from reach_otel.engine.tokens import counted_models
from reach_otel.engine.tree import Tree
from reach_otel.span.step import Step, Tokens

if TYPE_CHECKING:
    from genai_prices.types import ModelPrice

DAY_NS = 86_400_000_000_000
MODELS_MAX = 1_024  # remembered
USUAL = 100_000  # input tokens up to which every known price is flat
LONGEST = 10_000_000


class Rates(Struct, frozen=True):
    """Dollars a token. The package computes exactly and slowly, so a model is asked for its flat prices once."""

    input: float
    cached: float
    output: float
    up_to: int  # input tokens of one call for which the prices are flat

    def cost(self, tokens: Tokens) -> float:
        """Price one call; ``input`` holds the cached tokens too."""
        cached = min(tokens.cached, tokens.input)
        return (tokens.input - cached) * self.input + cached * self.cached + tokens.output * self.output


def cost_of(steps: Sequence[Step], tree: Tree) -> float | None:
    """Price all model steps of a run in dollars; ``None`` without any, or if the price of one is unknown."""
    total = 0.0
    models = counted_models(steps, tree)
    for step in models:
        cost = _cost(step)
        if cost is None:
            return None
        total += cost
    return total if models else None


def _cost(step: Step) -> float | None:
    if step.model is None or step.tokens is None:
        return None
    day = step.start_ns // DAY_NS
    rates = _rates(step.model, day)
    if rates is not None and step.tokens.input <= rates.up_to:
        return rates.cost(step.tokens)
    price = _price(step.model, day)
    return None if price is None else _exact(price, step.tokens.input, step.tokens.cached, step.tokens.output)


@lru_cache(maxsize=MODELS_MAX)
def _price(model: str, day: int) -> ModelPrice | None:
    """Find the price that a model had on a day (counted from 1970)."""
    info = find_model(model)
    if info is None:
        return None
    when = datetime.fromtimestamp(min(day, 2_000_000) * (DAY_NS // 1_000_000_000), UTC) if day >= 0 else None
    return info.get_prices(when or datetime(1970, 1, 1, tzinfo=UTC))


@lru_cache(maxsize=MODELS_MAX)
def _rates(model: str, day: int) -> Rates | None:
    """Read off a model's prices for calls of usual length; ``None`` for an unknown model or another way of pricing."""
    price = _price(model, day)
    if price is None:
        return None
    rates = Rates(
        input=_exact(price, USUAL, 0, 0) / USUAL,
        cached=_exact(price, USUAL, USUAL, 0) / USUAL,
        output=_exact(price, 0, 0, USUAL) / USUAL,
        up_to=USUAL,
    )
    if not _agrees(rates, price, Tokens(input=1_000, cached=300, output=100)):
        return None
    return replace(rates, up_to=LONGEST) if _agrees(rates, price, Tokens(input=LONGEST, output=USUAL)) else rates


def _agrees(rates: Rates, price: ModelPrice, tokens: Tokens) -> bool:
    exact = _exact(price, tokens.input, tokens.cached, tokens.output)
    return abs(rates.cost(tokens) - exact) <= 1e-9 * max(1.0, exact)


def _exact(price: ModelPrice, input_tokens: int, cached: int, output: int) -> float:
    from genai_prices import Usage  # noqa: PLC0415 - slow to import, and only needed for a verdict

    usage = Usage(input_tokens=input_tokens, cache_read_tokens=cached, output_tokens=output)
    return float(price.calc_price(usage)["total_price"])
