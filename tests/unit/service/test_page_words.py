"""What the page says of values, names and graphs, piece by piece."""

from __future__ import annotations

import re
from typing import Any

import pytest

from reach_otel.service import graph, render
from reach_otel.service.run_view import note, run_view
from reach_otel.task import Tasks
from tests.support.records import record, summary
from tests.support.stand import ticket_tasks
from tests.support.steps import plain


def task_json(tasks: Tasks | None = None) -> dict[str, Any]:
    """Shape the demo's task as the API does."""
    task = (tasks or ticket_tasks()).by_name["ticket-handling"]
    ids = [m.id for m in task.milestones]
    return {
        "name": task.name,
        "layer_weights": list(task.layer_weights),
        "milestones": [
            {
                "id": m.id,
                "type": m.type,
                "layer": m.layer,
                "depends_on": [[ids[i] for i in group] for group in m.depends_on],
                "tools": list(m.tools),
            }
            for m in task.milestones
        ],
        "critical_edges": [[None if a is None else ids[a], ids[b]] for a, b in task.critical_edges],
    }


def chain(length: int, across: int = 1) -> dict[str, Any]:
    """Make a task of so many layers, each with so many milestones."""
    milestones = [
        {
            "id": f"m{layer}-{n}",
            "type": "must",
            "layer": layer,
            "depends_on": [[f"m{layer - 1}-{n}"]] if layer > 1 else [],
            "tools": [],
        }
        for layer in range(1, length + 1)
        for n in range(across)
    ]
    return {"name": "chain", "layer_weights": [], "milestones": milestones, "critical_edges": []}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("Größe 注文 🙂", "Größe 注文 🙂"),
        ("a\x00b\x1b[31m", "a␀b␛[31m"),
        ("del\x7f", "del␡"),
        ("abc\u202egpj.exe", "abc‹U+202E›gpj.exe"),
        ("\u2066x\u2069", "‹U+2066›x‹U+2069›"),
        ("half \ud800", "half ‹U+D800›"),
        ("می\u200cخواهم", "می\u200cخواهم"),
    ],
)
def test_what_cannot_be_seen_is_spelled_out(text: str, shown: str) -> None:
    """Control characters and those that turn text round become signs; letters of all scripts stay."""
    assert render.visible(text) == shown


def test_a_name_is_cut() -> None:
    """A name of a megabyte takes the room of a name."""
    assert render.visible("x" * 1_000_000) == "x" * 79 + "…"


@pytest.mark.parametrize(
    ("value", "said"),
    [(None, "–"), (0.0, "0 ms"), (0.0423, "42 ms"), (2.13, "2.1 s"), (192.0, "3 min 12 s"), (3_780.0, "1 h 3 min")],
)
def test_durations_are_said_in_their_unit(value: float | None, said: str) -> None:
    """Nothing measured is a dash, never a 0."""
    assert render.seconds(value) == said


def test_numbers_are_said_plainly() -> None:
    """Ratios have two digits, counts a gap at the thousands, absent ones a dash."""
    assert [render.ratio(None), render.ratio(0.664)] == ["–", "0.66"]
    assert [render.percent(None), render.percent(2 / 3)] == ["–", "67 %"]
    assert [render.number(None), render.number(4251), render.number(5.54)] == ["–", "4\u202f251", "5.5"]
    assert render.bytes(3 << 20) == "3 MiB"


def test_times_are_utc() -> None:
    """A time with an offset is turned; what is no time is a dash."""
    assert render.clock("2026-11-30T08:00:00+02:00") == "06:00:00"
    assert render.moment("2026-11-30T08:00:00.5Z") == "2026-11-30 08:00:00 UTC"
    assert render.clock("soon") == render.clock(None) == "–"


def test_addresses_hold_any_id() -> None:
    """An id with slashes, dots and query signs stays one part of the path."""
    assert render.run_path("../a?b#c") == "/runs/..%2Fa%3Fb%23c"


def test_a_card_says_what_is_in_the_way() -> None:
    """A milestone that went by comes first; a run that is over names where it stopped."""
    missed = {"id": "a", "type": "must", "layer": 1, "state": "missed", "reason": None}
    passed = {"id": "b", "type": "must", "layer": 2, "state": "passed", "reason": "out_of_order"}
    run = {"final": True, "findings": ["loop"], "milestones": [missed]}
    assert render.stopped({**run, "milestones": [missed, passed]}) == "b: out of order"
    assert render.stopped(run) == "loop"
    assert render.stopped({**run, "findings": []}) == "a: missed"
    assert render.stopped({**run, "findings": [], "final": False}) == ""


def test_a_graph_is_said_in_words() -> None:
    """Who cannot see the graph hears every milestone with its state, in layers."""
    milestones = [
        {"id": "late", "layer": 2, "state": "passed", "reason": "unused"},
        {"id": "early", "layer": 1, "state": "reached", "reason": None},
    ]
    assert render.description(milestones) == "early reached; late passed (unused)"


@pytest.mark.parametrize(
    "drawing", [graph.dots(task_json()), *(graph.boxes(task_json(), down=down) for down in (False, True))]
)
def test_everything_drawn_is_inside(drawing: graph.Drawing) -> None:
    """Nodes and ways lie within the drawing, and no two nodes touch."""
    for node in drawing.nodes:
        assert drawing.node_width / 2 <= node.x <= drawing.width - drawing.node_width / 2
        assert drawing.node_height / 2 <= node.y <= drawing.height - drawing.node_height / 2
    for one in drawing.nodes:
        for other in drawing.nodes:
            apart = abs(one.x - other.x) >= drawing.node_width or abs(one.y - other.y) >= drawing.node_height
            assert one is other or apart
    for edge in drawing.edges:
        for x, y in re.findall(r"(-?[\d.]+),(-?[\d.]+)", edge.path):
            assert 0 <= float(x) <= drawing.width
            assert 0 <= float(y) <= drawing.height


def test_edges_are_those_of_the_task() -> None:
    """Each dependency is a way, each member of a choice one; what waits for nothing hangs on the start."""
    edges = {(edge.source, edge.target): edge for edge in graph.dots(task_json()).edges}
    assert (None, "read") in edges
    assert edges["suggestion", "update"].choice
    assert edges["escalate", "update"].choice
    assert not edges["read", "customer"].choice


def test_layers_run_down_a_narrow_window() -> None:
    """On a phone layers are rows, at most as wide as the window."""
    drawing = graph.boxes(task_json(), down=True)
    by_id = {node.id: node for node in drawing.nodes}
    assert by_id["read"].y < by_id["stock"].y < by_id["update"].y
    assert drawing.width <= 328


@pytest.mark.parametrize("layers", [1, 5, 7, 12])
def test_boxes_are_large_enough_to_read(layers: int) -> None:
    """A graph of many layers runs down in a wide window too, instead of shrinking."""
    drawing = graph.boxes(chain(layers, across=2), down=False)
    assert drawing.width <= 1_200
    assert all(node.label == node.id for node in drawing.nodes)


def test_a_deep_graph_has_small_dots() -> None:
    """With many layers the names would collide, so the dots bear none."""
    assert any(node.label for node in graph.dots(chain(6)).nodes)
    deep = graph.dots(chain(20))
    assert not any(node.label for node in deep.nodes)
    assert deep.width < 800


def test_a_record_in_words() -> None:
    """The page of a run says every part of its record, with dashes where nothing is known."""
    view = run_view({**plain(record("r")), "steps": None})
    assert view["composite"] == render.ratio(plain(record("r"))["scores"]["composite"])
    assert [level["name"] for level in view["levels"]] == ["L0", "L1", "L2", "L3", "L4"]
    assert view["steps"] == []


def test_notes_fit_the_state() -> None:
    """A box says when its milestone was reached, why it was passed, or that it is not there yet."""
    base = {"state": "missed", "reason": None, "action": None, "seconds": None}
    assert note(base, final=False) == "not yet"
    assert note(base, final=True) == "missed"
    assert note({**base, "state": "passed", "reason": "cut_off", "action": 16}, final=True) == "cut off"
    reached = {**base, "state": "reached", "action": 3, "seconds": 2.1}
    assert note(reached, final=True) == "action 3 · 2.1 s"
    assert note(reached, final=True, short=True) == "action 3"


def test_the_summary_of_an_open_run() -> None:
    """A run whose agent has not ended is not named yet, and nothing measured is a dash."""
    from reach_otel.service.shape import of_open

    view = render.summary_view({**of_open(summary("r")), "agent": None})
    assert view["agent"] == "agent not named yet"
    assert view["outcome"] == "running"
