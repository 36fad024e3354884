"""Check what counts as the same value, as a whole token, and as known."""

from __future__ import annotations

from typing import Any

import pytest

from reach_otel.engine.sources import (
    DEPTH_MAX,
    LEAVES_MAX,
    Sources,
    canonical,
    contains,
    is_trivial,
    leaves,
    tokens,
    without,
)


@pytest.mark.parametrize(
    ("value", "spelled"),
    [
        (3, "3"),
        (3.0, "3"),
        ("3.0", "3"),
        (" 3 ", "3"),
        (-2.50, "-2.5"),
        ("-2.50", "-2.5"),
        ("007", "007"),
        ("1.2.3", "1.2.3"),
        (" SKU-7 ", "SKU-7"),
        (True, "true"),
        (1e-7, "1e-07"),
        ("", None),
        ("  ", None),
        (None, None),
        ({"a": 1}, None),
    ],
)
def test_equal_values_are_spelled_alike(value: Any, spelled: str | None) -> None:
    """Text is trimmed, numbers go by value, and what says nothing has no spelling."""
    assert canonical(value) == spelled


@pytest.mark.parametrize(
    ("value", "trivial"),
    [(99, True), (100, False), (-99.5, True), ("ab", True), ("abc", False), ("42", True), ("142", False), (True, True)],
)
def test_short_values_prove_nothing(value: Any, trivial: bool) -> None:
    """Booleans, numbers under three digits and strings under three characters are trivial."""
    assert is_trivial(value) is trivial


def test_leaves_bear_the_key_they_stand_under() -> None:
    """Scalars are listed at any depth; items of a list bear the key of the list, nulls are left out."""
    value = {"a": 1, "b": {"c": ["x", {"d": None, "e": False}]}, 5: "y"}
    assert leaves(value) == [("a", 1), ("c", "x"), ("e", False), (5, "y")]


def test_leaves_have_an_end() -> None:
    """Neither a deep nor a wide value is read to its end."""
    deep: Any = 1
    for _ in range(DEPTH_MAX + 1):
        deep = [deep]
    assert leaves(deep) == []
    assert len(leaves([[n, n] for n in range(LEAVES_MAX)])) <= LEAVES_MAX + 1


def test_tokens_are_whole() -> None:
    """Ids, addresses and amounts are one token each, and numbers are canonical."""
    assert tokens("Send SKU-7 to a.b@c.com for 129.90.") == ["Send", "SKU-7", "to", "a.b@c.com", "for", "129.9"]
    assert tokens("订单A17已发货") == ["A17"]


@pytest.mark.parametrize(
    ("text", "value", "held"),
    [
        ("order SKU-7, please", "SKU-7", True),
        ("order SKU-77", "SKU-7", False),
        ("order XSKU-7", "SKU-7", False),
        ("order SKU-7-B", "SKU-7", False),
        ("it is SKU-7.", "SKU-7", True),
        ("#W237", "#W237", True),
        ("see blue shoes here", "blue shoes", True),
        ("订单SKU-7已发货", "SKU-7", True),
        ("SKU-77 and SKU-7", "SKU-7", True),
    ],
)
def test_a_part_of_a_token_is_not_the_token(text: str, value: str, held: bool) -> None:
    """A value stands in a text only as a whole; scripts without spaces bound it as punctuation does."""
    assert contains(text, value) is held


def test_cutting_out_leaves_longer_tokens_alone() -> None:
    """Only whole occurrences are cut."""
    assert without("7 of SKU-7 or 7", "7") == "  of SKU-7 or  "


def test_a_value_is_known_from_its_time_on() -> None:
    """A result's value is known from the result's time on, an earlier source wins, and other spellings count."""
    sources = Sources()
    sources.add_result({"price": 12.50, "sku": "SKU-7"}, 10)
    assert not sources.knows("SKU-7", 9)
    assert sources.knows("SKU-7", 10)
    assert sources.knows("12.5", 10)
    sources.add_result({"sku": "SKU-7"}, 5)
    assert sources.knows("SKU-7", 5)


def test_a_text_is_known_by_its_tokens_and_phrases() -> None:
    """Free text makes its whole tokens known, and longer values that stand in it word for word."""
    sources = Sources()
    sources.add_text("Ship order #W237 to 12 Main Street.", 3)
    assert sources.knows("W237", 3)
    assert sources.knows("#W237", 3)
    assert sources.knows("12 Main Street", 3)
    assert not sources.knows("Main Street 12", 3)
    assert not sources.knows("W23", 3)
    sources.add_text("later: W999", 8)
    assert not sources.knows("W999", 7)
    assert sources.knows("W999", 8)


def test_an_error_text_makes_nothing_judgeable() -> None:
    """What does not tell is a source, but no reason to think that anything was said."""
    sources = Sources()
    sources.add_result("unknown id, try SKU-8", 4, tells=False)
    assert sources.earliest_ns is None
    assert sources.knows("SKU-8", 4)
    sources.add_text("hello", 9)
    assert sources.earliest_ns == 9


def test_an_echo_is_no_source() -> None:
    """What a call invented is cut out of its own answer, and nothing else is."""
    sources = Sources()
    sources.add_result({"id": "7", "note": "7 became ORD-7", "next": "ORD-1770"}, 4, invented={"7"})
    assert not sources.knows("7", 9)
    assert sources.knows("ORD-7", 9)
    assert sources.knows("ORD-1770", 9)


def test_a_trusted_value_is_known() -> None:
    """A value that could not be judged is known from then on."""
    sources = Sources()
    sources.trust("SKU-7", 5)
    assert sources.knows("SKU-7", 5)
    assert not sources.knows("SKU-7", 4)
    assert sources.earliest_ns is None


def test_a_text_known_from_later_on_brings_its_tokens_when_it_comes_earlier() -> None:
    """The tokens of a text are known from the earliest time at which it was there, in whatever order it is added."""
    sources = Sources()
    sources.add_result("see SKU-3", 9)
    sources.add_result("see SKU-3", 4)
    assert sources.knows("SKU-3", 5)
    assert not sources.knows("SKU-3", 3)


def test_a_constant_does_not_hide_what_a_result_says() -> None:
    """A text of the task's own is no reason to leave out the tokens of an equal result."""
    sources = Sources()
    sources.trust("see SKU-3", 0)
    sources.add_result("see SKU-3", 4)
    assert sources.knows("SKU-3", 5)
