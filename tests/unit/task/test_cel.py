"""CEL expressions: names they may use, bad ones, and what is known without running them."""

from __future__ import annotations

import pytest

from reach_otel.task.cel import check_expression, compile_expression


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("result.x >", "bad CEL"),
        ("", "bad CEL"),
        ("((" * 100, "bad CEL"),
        ("reslt.x == 1", 'knows no variable "reslt"; allowed: tool, args, result.*did you mean "result"'),
        ("result.items.exists(x, y == 1)", 'knows no variable "y"'),
        ("result.name.lowerAscii() == 'a'", 'knows no function "lowerAscii"; allowed: '),
        ("text.contain('a')", 'did you mean "contains"'),
        ("1 + 1", "is always 2; a condition must be true or false"),
        ("'a'", "is always 'a'"),
        ("1 / 0 == 1", "always fails"),
    ],
)
def test_bad_expressions_are_refused(source: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_expression(source)


def test_a_syntax_error_says_at_which_character_in_one_line() -> None:
    with pytest.raises(ValueError, match="character 11: ") as caught:
        check_expression("result.x >")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "source",
    [
        "result.l.exists(x, x > 1) && result.l.all(y, y < 9)",
        "result.l.map(x, x * 2).size() == 2",
        "type(args.n) == int",
        "duration > 1.0 && duration('3s') < duration('5s')",
        "has(result.x) ? result.x == 1 : true",
        "timestamp(result.t).getFullYear() == 2026",
        "text.matches('^a') || text.endsWith('.exists(z, ')",
        "'it // is' == text // and a comment: nope.x",
        "true",
    ],
)
def test_good_expressions_are_kept(source: str) -> None:
    assert check_expression(source) == source


def test_a_constant_expression_is_known() -> None:
    assert compile_expression("1 > 2").constant is False
    assert compile_expression("true").constant is True
    assert compile_expression("tool == 'a'").constant is None


def test_variables_are_those_of_a_step() -> None:
    assert compile_expression("args.a == run.b && [1].exists(x, x == 1)").variables == ("args", "run")


def test_paths_that_lead_nowhere_are_told_from_wrong_types() -> None:
    expression = compile_expression('args.a["b.c"].d[0] > 1 && args.e.startsWith("x")')
    there = {"args": {"a": {"b.c": {"d": [1]}}, "e": "x"}}
    assert not expression.lacks(there)
    assert expression.lacks({"args": {"a": {}, "e": "x"}})
    assert expression.lacks({"args": {"a": {"b.c": {"d": [1]}}, "e": None}})
