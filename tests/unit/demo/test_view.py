"""Check what the demo draws, at several widths."""

from __future__ import annotations

import pytest
from rich.console import Console, RenderableType

from reach_otel.demo import view
from reach_otel.demo.board import Board, Finished
from tests.unit.demo.samples import record, summary


def drawn(renderable: RenderableType, width: int) -> str:
    console = Console(width=width, force_terminal=False, color_system=None)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


@pytest.fixture
def board() -> Board:
    verdicts = {
        "good": record("good"),
        "bad": record("bad", outcome="partial", missed="stock", reason="fabricated"),
        "worse": record("worse", outcome="partial", missed="customer", reason="unused"),
    }
    board = Board(verdicts.get, {"good": "clean", "bad": "makes up an id", "worse": "ignores results"}.get)
    board.look([summary(trace_id) for trace_id in verdicts])
    board.look([summary("0123456789", 2, findings=("loop",))])
    return board


def screen(board: Board, width: int, height: int) -> str:
    state = view.State(seconds=83, agents=4, degraded=True, metrics="http://localhost:9464/metrics")
    return drawn(view.screen(board, state, width=width, height=height), width)


@pytest.mark.parametrize("width", [50, 80, 133, 134, 200])
def test_a_frame_fits_its_terminal(board: Board, width: int) -> None:
    """No line is wider than the terminal and no frame higher, whatever the width."""
    lines = screen(board, width, 40).rstrip().split("\n")
    assert max(len(text) for text in lines) <= width
    assert len(lines) <= 40


def test_a_frame_shows_what_matters(board: Board) -> None:
    """Runs, scores, the reasons, the high-layer mark and the metrics address are all there."""
    text = screen(board, 160, 40)
    for words in (
        "http://localhost:9464/metrics",
        "DEGRADED",
        "0:01:23",
        "high-layer reach 0.33  < 0.5 HIGH RISK",
        "012345",
        "read_ticket ! loop",
        "◪ fabrica…",
        "stock fabricated (L2)",
        "makes up an id",
    ):
        assert words in text


def test_a_low_terminal_keeps_the_running_ones(board: Board) -> None:
    """Where there is no room, finished runs go first."""
    text = screen(board, 100, 21)
    assert "Running" in text
    assert "Finished" not in text


def test_a_path_has_a_gap_between_layers() -> None:
    """One mark a milestone; each layer stands apart."""
    run = record("a", outcome="partial", missed="stock", reason="fabricated")
    assert view.path(run.milestones).plain == "■ ■◪· ·"


def test_a_plain_line_says_it_all() -> None:
    """Without a terminal each finished run is one line of text."""
    run = Finished(record("a", outcome="partial", missed="stock", reason="unused"), "ignores results")
    assert view.line(run) == (
        "partial   ■ ■◪· ·  depth 0.25 purity 1.00 digestion    - score 0.90  ignores results stock unused (L2)"
    )


def test_the_summary_sets_what_agents_did_beside_their_scores(board: Board) -> None:
    """The closing table has a row a behaviour and one for all."""
    text = drawn(view.closing(board, seconds=61), 120)
    assert "3 runs in 0:01:01" in text
    assert "makes up an id" in text
    assert "stock fabricated (L2)" in text
    assert text.count("\n") < 14
