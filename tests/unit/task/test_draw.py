"""Drawings: every part is there, and no text of a task can break out of its place."""

from __future__ import annotations

import re
import shutil
import subprocess
from xml.etree import ElementTree as ET

import pytest

from reach_otel.task import Task, load_task_text
from reach_otel.task.draw import dot, mermaid
from reach_otel.task.svg import NODE_HEIGHT, NODE_WIDTH, svg

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def task() -> Task:
    return load_task_text("""
task: shop/orders
description: 'A "quoted" <b>text</b> & more'
milestones:
  - {id: read, verify: {tool: read_order}}
  - {id: check, depends_on: [read], verify: {tool: 'mcp__stock__*'}}
  - {id: note, type: optional, depends_on: [read], verify: {tool: take_note}}
  - {id: manual, type: fallback, covers: check, depends_on: [read], verify: {tool: 'weird"]<tool>\\n&'}}
  - {id: pay, depends_on: [{any: [check, manual]}], verify: {tool: pay}}
  - {id: send, depends_on: [pay, check], verify: {tool: send}}
traps:
  - {id: refund, when_not_reached: [check, pay], verify: {tool: refund}}
  - {id: delete, verify: {tool: delete}}
""")


def test_svg_is_well_formed_and_holds_every_part(task: Task) -> None:
    root = ET.fromstring(svg(task))
    texts = [element.text or "" for element in root.iter(f"{SVG}text")]
    for milestone in task.milestones:
        assert milestone.id in texts
    assert "⚠ refund" in texts
    assert "while check or pay is not reached" in texts
    assert "layer 1 · weight 1" in texts
    kinds = [element.get("class") for element in root.iter(f"{SVG}rect")]
    assert kinds.count("fallback") == 2  # one in the legend
    assert kinds.count("optional") == 2
    assert kinds.count("must") == 5


def test_svg_marks_critical_and_any_of_edges(task: Task) -> None:
    root = ET.fromstring(svg(task))
    edges = [element.get("class") or "" for element in root.iter(f"{SVG}path") if element.get("marker-end")]
    assert len(edges) == 8
    assert sum("choice" in edge for edge in edges) == 2
    assert sum("critical" in edge for edge in edges) == len(task.critical_edges)


def test_svg_escapes_what_tasks_say(task: Task) -> None:
    text = svg(task)
    assert "<b>" not in text
    assert "&lt;b&gt;" in text
    assert "<tool>" not in text


def test_svg_boxes_do_not_cover_each_other() -> None:
    lines = [f"  - {{id: m{n}, depends_on: [{f'm{n // 3}' if n else ''}], verify: {{tool: t{n}}}}}" for n in range(40)]
    root = ET.fromstring(
        svg(load_task_text("task: t\nmilestones:\n" + "\n".join(lines).replace("[m0], v", "[], v", 1)))
    )
    boxes = [
        (float(rect.get("x", 0)), float(rect.get("y", 0)))
        for rect in root.iter(f"{SVG}rect")
        if rect.get("width") == str(NODE_WIDTH)
    ]
    assert len(boxes) == 40
    for number, (x, y) in enumerate(boxes):
        for other_x, other_y in boxes[number + 1 :]:
            assert abs(x - other_x) >= NODE_WIDTH or abs(y - other_y) >= NODE_HEIGHT


def test_svg_colours_by_rate_where_rates_are_given(task: Task) -> None:
    text = svg(task, {"read": 1.0, "check": 0.5, "pay": 0.0})
    assert all(f"var(--h{n})" in text for n in (4, 2, 0))
    assert "100% · read_order" in text
    assert 'style="fill:var' not in svg(task)


def test_svg_shortens_long_names_and_keeps_them_whole_in_the_tooltip() -> None:
    name = "查询客户信息并核对订单号码和地址"
    text = svg(load_task_text(f"task: t\nmilestones: [{{id: {name}, verify: {{tool: x}}}}]"))
    assert "查询客户信息并核对…" in text
    assert f"<title>{name}\n" in text


def test_a_task_of_traps_alone_is_drawn() -> None:
    only = load_task_text("task: t\ntraps: [{id: a, verify: {tool: x}}]")
    assert "always a trap" in svg(only)
    assert "octagon" in dot(only)
    assert "trap: a".replace(":", "") in mermaid(only).replace(":", "")


def test_dot_holds_every_part_and_quotes_text(task: Task) -> None:
    text = dot(task)
    assert 'digraph "shop/orders" {' in text
    assert "start -> m0 [style=solid, penwidth=3];" in text
    assert "m3 -> m4 [style=dashed, penwidth=1];" in text
    assert r'm3 [label="manual\nweird\"]<tool>\\n&", style="rounded,dashed"];' in text
    assert 'label="layer 2 · weight 2"' in text
    assert text.count("octagon") == 2


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not here")
def test_graphviz_takes_it(task: Task) -> None:
    done = subprocess.run(["dot", "-Tsvg"], input=dot(task), capture_output=True, text=True, check=True)
    assert "<svg" in done.stdout


def test_mermaid_holds_every_part_and_no_character_that_could_end_a_label(task: Task) -> None:
    text = mermaid(task)
    assert "start ==> m0" in text
    assert "m3 -.-> m4" in text
    assert 'm3{{"manual"}}:::fallback' in text
    odd = load_task_text("task: t\nmilestones: [{id: a, verify: {tool: x}}]\ntraps: [{id: 'a:b', verify: {tool: y}}]")
    for label in re.findall(r'"([^"\n]*)"', mermaid(odd)):
        assert not set(label) & set("[]{}()<>|\\`") - set("<br/>")
