"""Paths into values: keys, list places, quoted keys, and texts that are no path."""

from __future__ import annotations

from typing import Any

import pytest

from reach_otel.task.path import MISSING, Path

VALUE = {"a": {"b": [{"c": 1}, {"c": None}], "x.y": 2, "n": None}, "list": [1, 2]}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a.b[0].c", 1),
        ("a.b[-1].c", None),
        ("a.b[2].c", MISSING),
        ("a.b[-3]", MISSING),
        ('a["x.y"]', 2),
        ("a['x.y']", 2),
        ("a.n", None),
        ("a.n.deeper", MISSING),
        ("a.b.c", MISSING),
        ("list[1]", 2),
        ("list.a", MISSING),
        ("nothing", MISSING),
        (".", VALUE),
    ],
)
def test_a_path_finds_its_value_or_says_missing(text: str, found: Any) -> None:
    assert Path(text).get(VALUE) == found


def test_a_path_may_begin_with_a_place() -> None:
    assert Path("[1].a").get([{}, {"a": 5}]) == 5


@pytest.mark.parametrize("value", ["text", 3, None, True])
def test_plain_values_have_no_paths_inside(value: Any) -> None:
    assert Path("a.b").get(value) is MISSING
    assert Path("[0]").get(value) is MISSING


@pytest.mark.parametrize("text", ["", "a..b", ".a", "a.", "a[", "a[x]", "a]", "a[1]b", "x" * 501, " a"])
def test_a_bad_path_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="path"):
        Path(text)


def test_paths_are_equal_by_what_they_find_and_missing_is_false() -> None:
    assert Path("a.b") == Path('a["b"]')
    assert len({Path("a.b"), Path('a["b"]')}) == 1
    assert not MISSING
    assert repr(Path("a")) == "Path('a')"
