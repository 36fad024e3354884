"""Check how a model is found in the price table."""

from __future__ import annotations

import pytest

from reach_otel.engine.models import find_model, listed_names


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("gpt-4o", "gpt-4o"),
        ("GPT-4o", "gpt-4o"),
        ("gpt-4o-mini-2031-01-02", "gpt-4o-mini"),
        ("gpt-4o-mini-20310102", "gpt-4o-mini"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("no-such-model", None),
        ("", None),
        ("claude-sonnet-4-5" + "x" * 1_000, None),
    ],
)
def test_a_model_is_found_by_name_date_or_pattern(name: str, known: str | None) -> None:
    """Case and a date at the end do not matter; a name of absurd length is not looked up."""
    model = find_model(name)
    assert (model and model.id) == known


def test_the_names_spelled_out_are_found_again() -> None:
    """Names that the table lists hold its models' own and the further ones of these."""
    assert {"gpt-4o", "gpt-4o-2024-08-06", "claude-sonnet-4-5"} <= listed_names()
    assert "claude-sonnet-4-5-20250929" not in listed_names(), "known by a pattern only"
