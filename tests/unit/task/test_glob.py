"""Name globs: matching, bad ones, and whether two can match one name."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reach_otel.task.glob import check_glob, is_glob, matcher, overlap


def test_names_and_globs_match_whole_names_with_case() -> None:
    fits = matcher(("read", "mcp__*", "get_?", "[ab]x"))
    assert all(map(fits, ("read", "mcp__x__y", "get_1", "ax")))
    assert not any(map(fits, ("READ", "reader", "amcp__", "get_12", "cx", "")))
    assert not matcher(())("anything")


@pytest.mark.parametrize("bad", ["", "a[bc", "x[", "[z-a]"])
def test_bad_globs_are_refused(bad: str) -> None:
    with pytest.raises(ValueError, match="glob"):
        check_glob(bad)


@pytest.mark.parametrize("good", ["a", "*", "[[]x", "[!a]*", "[]a]", "a]"])
def test_good_globs_are_kept(good: str) -> None:
    assert check_glob(good) == good


def test_a_glob_is_told_from_a_name() -> None:
    assert is_glob("a*")
    assert not is_glob("a.b-c")


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("a", "a", True),
        ("a", "b", False),
        ("a*", "*b", True),
        ("a*", "b*", False),
        ("get_?", "get_*", True),
        ("get_?", "get_ab", False),
        ("*x*", "yyy", False),
        ("[ab]c", "bc", True),
        ("*", "", True),
        ("a*c", "ab", False),
        ("**", "x", True),
    ],
)
def test_overlap(one: str, other: str, expected: bool) -> None:
    assert overlap(one, other) is expected
    assert overlap(other, one) is expected


PATTERNS = st.text("ab*?", max_size=6)


@given(PATTERNS, PATTERNS, st.text("ab", max_size=6))
def test_patterns_that_match_one_name_overlap(one: str, other: str, name: str) -> None:
    """``overlap`` is never wrongly false."""
    if fnmatchcase(name, one) and fnmatchcase(name, other):
        assert overlap(one, other)


@given(PATTERNS, st.text("ab", max_size=6))
def test_a_plain_name_overlaps_just_the_patterns_that_match_it(pattern: str, name: str) -> None:
    assert overlap(pattern, name) is fnmatchcase(name, pattern)
