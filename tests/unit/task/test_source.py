"""Reading YAML and JSON text: YAML 1.2 values, lines, and everything that is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reach_otel.errors import TaskError
from reach_otel.task.source import BYTES_MAX, read_source, reads_as_text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("2024-01-31", "2024-01-31"),
        ("1:30", "1:30"),
        ("010", 10),
        ("0o17", 15),
        ("0x1F", 31),
        ("-3", -3),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("true", True),
        ("False", False),
        ("~", None),
        ("null", None),
        ("", None),
        ("'5'", "5"),
        ('"true"', "true"),
        ("1.2.3", "1.2.3"),
        ("+", "+"),
        ("9" * 500, "9" * 500),
    ],
)
def test_plain_scalars_are_read_by_the_core_schema_of_yaml_1_2(text: str, value: Any) -> None:
    found = read_source(f"x: {text}", "t.yaml").value["x"]
    assert found == value
    assert type(found) is type(value)


def test_lines_lead_to_the_deepest_part_that_the_text_has() -> None:
    source = read_source("a: 1\nb:\n  - x\n  -\n    c: 2\n", "t.yaml")
    assert source.line_of(("b", 1, "c")) == 5
    assert source.line_of(("b", 1, "not there")) == 5
    assert source.line_of(("b", "$tag", 0)) == 3
    assert source.line_of(()) == 1


def test_json_is_read_with_tabs_surrogate_pairs_and_lines() -> None:
    source = read_source('{\n\t"a": "\\ud83d\\ude00",\n\t"b": [1,\n\t\t2]\n}', "t.json")
    assert source.value == {"a": "😀", "b": [1, 2]}
    assert source.line_of(("b", 1)) == 4


def test_json_that_no_yaml_parser_takes_still_has_values() -> None:
    source = read_source('{"a"\n:\n1}', "t.json")
    assert source.value == {"a": 1}
    assert source.line_of(("a",)) == 1


def test_anchors_and_merge_keys_work() -> None:
    text = "base: &base {tool: a, status: ok}\none:\n  <<: *base\n  tool: b\ntwo: {<<: [{x: 1}, *base]}\n"
    value = read_source(text, "t.yaml").value
    assert value["one"] == {"tool": "b", "status": "ok"}
    assert value["two"] == {"x": 1, "tool": "a", "status": "ok"}


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
)


@pytest.mark.parametrize(
    ("name", "text", "line", "message"),
    [
        ("t.yaml", "a: 1\nb: [1", 2, "not valid YAML"),
        ("t.yaml", "a: 1\n  b: 2", 2, "not valid YAML"),
        ("t.yaml", "a: 1\nb: \x01", 2, "not valid YAML"),
        ("t.yaml", "a: 1\nb: 2\na: 3", 3, 'key "a" stands twice, first in line 1'),
        ("t.yaml", "a: 1\n---\nb: 2", 2, "one task a file"),
        ("t.yaml", "a: 1\nb: !!python/object:os.system x", 2, "tag"),
        ("t.yaml", "a: !!str 5", 1, "tag"),
        ("t.yaml", "a: &a\n  b: *a", 1, "an anchor holds itself"),
        ("t.yaml", BOMB, 1, "grows over"),
        ("t.yaml", "[" * 70 + "]" * 70, 1, "nests deeper than 64 levels"),
        ("t.yaml", "- " * 2_000 + "x", 1, "nests deeper than 64 levels"),
        ("t.yaml", "a: .nan", 1, "not a number that anything can equal"),
        ("t.yaml", "a: 1e999", 1, "too large for a number"),
        ("t.yaml", "? [a]\n: 1", 1, "a key must be text"),
        ("t.yaml", "<<: 5", 1, "<< takes a mapping"),
        ("t.yaml", "a: 1\n" + "#" * BYTES_MAX, 0, "larger than"),
        ("t.json", '{"a": 1,\n "b": }', 2, "not valid JSON"),
        ("t.json", '{"a": 1,\n "b": 2,\n "a": 3}', 3, 'key "a" stands twice'),
        ("t.json", '{"a": 1,\n "b": NaN}', 2, "not a number JSON knows"),
        ("t.json", "[" * 100_000, 0, "nests deeper"),
        ("t.json", '{"a":' * 70 + "1" + "}" * 70, 1, "nests deeper"),
        ("t.json", '{"a": ' + "9" * 5_000 + "}", 0, "not valid JSON"),
    ],
)
def test_what_cannot_be_read_says_where_and_why(name: str, text: str, line: int, message: str) -> None:
    with pytest.raises(TaskError) as caught:
        read_source(text, name)
    (problem,) = caught.value.problems
    assert (problem.file, problem.line) == (name, line)
    assert message in problem.message


def test_unreadable_text_is_refused_quickly_however_large() -> None:
    with pytest.raises(TaskError, match=r"nests deeper|not valid YAML"):
        read_source("[" * (BYTES_MAX - 1), "t.yaml")


@pytest.mark.parametrize(
    ("text", "is_text"), [("no", True), ("1e5", False), (".nan", False), ("a b", True), ("", False)]
)
def test_text_that_needs_quotes_is_known(text: str, is_text: bool) -> None:
    assert reads_as_text(text) is is_text


def test_plain_json_gives_the_same_values_as_the_json_module() -> None:
    text = '{"a": [1, 2.5, null, true, {"b": "x\\ty"}]}'
    assert read_source(text, "t.json").value == json.loads(text)
