"""Warnings and advice: each rule once broken, once kept, with the line of the milestone."""

from __future__ import annotations

import pytest

from reach_otel.task import check, load_task_text

HEAD = "task: t\nmatch: {agent: a}\n"


def found(text: str) -> set[tuple[str, str, int]]:
    warnings = check(load_task_text(text, "t.task.yaml"))
    return {(warning.kind, warning.code, warning.line) for warning in warnings if warning.code not in ("size", "share")}


def milestones(*lines: str) -> str:
    """Write milestones from line 4 on."""
    return HEAD + "milestones:\n" + "".join(f"  - {{{line}}}\n" for line in lines)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (milestones("id: a, verify: {tool: x}"), set()),
        (milestones("id: a, verify: {tool: mcp__crm__look_up}"), {("warning", "prefixed_tool", 4)}),
        ("task: t\nmilestones: [{id: a, verify: {tool: x}}]", {("warning", "no_match", 0)}),
        (
            milestones("id: a, type: optional, verify: {tool: x}", "id: b, depends_on: [a], verify: {tool: y}"),
            {("warning", "detour_dependency", 5)},
        ),
        (
            milestones(
                "id: a, type: optional, verify: {tool: x}", "id: b, depends_on: [{any: [a]}], verify: {tool: y}"
            ),
            {("warning", "detour_dependency", 5)},
        ),
        (
            milestones(
                "id: a, type: optional, verify: {tool: x}",
                "id: b, verify: {tool: z}",
                "id: c, depends_on: [{any: [a, b]}], verify: {tool: y}",
            ),
            set(),
        ),
        (
            milestones("id: a, verify: {tool: x}", "id: b, type: optional, depends_on: [a], verify: {tool: y}"),
            set(),
        ),
        (milestones("id: a"), {("warning", "no_condition", 4)}),
        (milestones("id: a, verify: {}"), {("warning", "no_condition", 4)}),
        (milestones("id: a, tools: [x]"), {("warning", "no_condition", 4)}),
        (milestones("id: a, verify: {tool: '*'}"), {("warning", "no_condition", 4)}),
        (milestones("id: a, verify: {status: ok}"), {("warning", "no_condition", 4)}),
        (milestones("id: a, verify: {tool: '*', result: {ok: true}}"), set()),
        (milestones("id: a, verify: {tool: x}, used: true"), {("advice", "used_last", 4)}),
        (
            milestones("id: a, verify: {tool: x}, used: true", "id: b, depends_on: [a], verify: {tool: y}"),
            set(),
        ),
        (
            milestones("id: a, verify: {tool: x}", "id: b, type: fallback, verify: {tool: y}"),
            {("advice", "no_covers", 5)},
        ),
        (
            milestones("id: a, verify: {tool: x}", "id: b, type: fallback, covers: a, verify: {tool: y}"),
            set(),
        ),
        (HEAD + "traps: [{id: a, verify: {tool: x}}]", set()),
    ],
)
def test_rules(text: str, expected: set[tuple[str, str, int]]) -> None:
    assert found(text) == expected


def test_a_warning_starts_with_file_and_line_and_says_what_to_write() -> None:
    text = milestones("id: a, type: optional, verify: {tool: x}", "id: b, depends_on: [a], verify: {tool: y}")
    (warning,) = [w for w in check(load_task_text(text, "t.task.yaml")) if w.kind == "warning"]
    assert str(warning).startswith('t.task.yaml:5: warning: must-milestone "b" waits for optional "a"')
    assert "{any: [a, ...]}" in warning.message


def sizes(must: int, optional: int, fallback: int) -> list[str]:
    kinds = ["must"] * must + ["optional"] * optional + ["fallback"] * fallback
    text = milestones(*(f"id: m{n}, type: {kind}, verify: {{tool: x{n}}}" for n, kind in enumerate(kinds)))
    return [w.message for w in check(load_task_text(text)) if w.code in ("size", "share")]


def test_sizes_are_advice() -> None:
    assert sizes(7, 2, 1) == []
    assert sizes(1, 0, 0) == [
        "100% must milestones; 60%-70% is usual",
        "0% optional milestones; 20%-30% is usual",
        "0% fallback milestones; 10%-20% is usual",
        "1 milestones; 10-15 tell most",
    ]
    assert sizes(11, 4, 2) == ["17 milestones; 10-15 tell most"]
