"""Check prices: of known, unknown, dated and tiered models, and that the quick way agrees with the exact one."""

from __future__ import annotations

import pytest
from genai_prices import Usage, calc_price

from reach_otel.engine.cost import cost_of
from reach_otel.engine.tree import Tree
from reach_otel.span.step import Step, Tokens
from tests.support.steps import Steps, at


def model_step(model: str | None, tokens: Tokens | None, start: int = 0) -> Step:
    return Step(
        kind="model",
        trace_id="t",
        span_id=f"s{start}",
        start_ns=at(start),
        end_ns=at(start + 1),
        model=model,
        tokens=tokens,
    )


def exact(model: str, tokens: Tokens) -> float:
    usage = Usage(input_tokens=tokens.input, cache_read_tokens=tokens.cached, output_tokens=tokens.output)
    return float(calc_price(usage, model).total_price)


@pytest.mark.parametrize("model", ["gpt-4o-mini", "claude-sonnet-4-5", "gemini-2.5-pro"])
@pytest.mark.parametrize(
    "tokens", [Tokens(1_000, 50), Tokens(5_000, 10, cached=4_000), Tokens(900_000, 2_000), Tokens()]
)
def test_prices_are_those_of_the_tables(model: str, tokens: Tokens) -> None:
    """Flat and tiered prices are what the package computes exactly."""
    assert cost_of([model_step(model, tokens)], Tree()) == pytest.approx(exact(model, tokens), rel=1e-9)


def test_a_dated_name_is_the_model_s() -> None:
    """A date after a name the tables do not know is left out."""
    tokens = Tokens(1_000, 50)
    dated = cost_of([model_step("gpt-4o-mini-2031-01-02", tokens)], Tree())
    assert dated == cost_of([model_step("gpt-4o-mini", tokens)], Tree())


def test_more_cached_tokens_than_input_cost_no_less_than_nothing() -> None:
    """Counts that cannot be are bounded."""
    assert cost_of([model_step("gpt-4o-mini", Tokens(10, 0, cached=1_000))], Tree()) == pytest.approx(
        exact("gpt-4o-mini", Tokens(10, 0, cached=10))
    )


@pytest.mark.parametrize("model", ["no-such-model", "", None])
def test_an_unknown_model_costs_an_unknown_amount(model: str | None) -> None:
    """One unknown price makes the sum unknown, never 0."""
    steps = [model_step("gpt-4o-mini", Tokens(10, 1)), model_step(model, Tokens(10, 1), start=1)]
    assert cost_of(steps, Tree()) is None


def test_a_run_without_tokens_has_no_cost() -> None:
    """Nothing was told, so nothing is known."""
    steps = [Steps().tool("find", 0, 1), model_step("gpt-4o-mini", None)]
    assert cost_of(steps, Tree()) is None


def test_odd_clocks_have_prices_too() -> None:
    """Spans from 1970 or the far future are priced, not refused."""
    for start_ns in (0, 1 << 62):
        step = Step(
            kind="model",
            trace_id="t",
            span_id="s",
            start_ns=start_ns,
            end_ns=start_ns,
            model="gpt-4o-mini",
            tokens=Tokens(9),
        )
        assert cost_of([step], Tree()) is not None
