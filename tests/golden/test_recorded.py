"""Spans recorded from real frameworks give the steps and scores of the script that drove them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.golden.recorded import ANY, HERE, expectation, expectations, read, recordings, score, script

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reach_otel.engine.record import Record, StepRecord

RECORDINGS = recordings()
ACTIONS = ("tool", "handoff", "retrieval")

each_recording = pytest.mark.parametrize(("combo", "run"), RECORDINGS, ids=["__".join(pair) for pair in RECORDINGS])


@each_recording
def test_actions(combo: str, run: str) -> None:
    """Each call counts once, with its tool, arguments, result or error, in order, under its agent."""
    expected = expectation(combo, run)
    records = _runs(combo, run, expected)
    said = [[_told(step) for step in _actions(record)] for record in records]
    wanted = [[_wanted(call, expected) for call in part.split()] for part in expected["calls"].split("|")]
    assert [[step["who"] for step in part] for part in said] == [[call["who"] for call in part] for part in wanted]
    for step, call in zip(_flat(said), _flat(wanted), strict=True):
        for key, value in call.items():
            assert value == ANY or step[key] == value, f"{call['who']}: {key}"


@each_recording
def test_models_and_tokens(combo: str, run: str) -> None:
    """Each model call counts once, and so do its tokens."""
    expected = expectation(combo, run)
    steps, faults = read(combo, run)
    assert not faults
    models = [step for step in steps if step.kind == "model" and step.tokens is not None]
    hidden = expected.get("tokens_hidden", ())
    count = expected["models"]
    if "all" in hidden:
        assert not models
        return
    assert len(models) == count
    totals = {
        "input": 100 * count + 5 * count * (count + 1),
        "output": 20 * count + count * (count + 1) // 2,
        "cached": 64 * count,
        "reasoning": 8 * count,
    }
    for name, total in totals.items():
        found = sum(getattr(step.tokens, name) for step in models)
        assert found == (0 if name in hidden else total), name


@each_recording
def test_score(combo: str, run: str) -> None:
    """The score against the ticket task is the same whatever the framework, where it tells what the score needs."""
    expected = expectation(combo, run)
    records = _runs(combo, run, expected)
    reached = [" ".join(m.id for m in record.milestones if m.state == "reached") for record in records]
    findings = {finding.finding for record in records for finding in record.findings}
    digestion = next((r.scores.digestion for r in records if r.scores.digestion is not None), None)
    assert [part.strip() for part in expected["reached"].split("|")] == reached
    assert digestion == expected["digestion"]
    assert findings == set(expected["findings"])


@each_recording
def test_final_output(combo: str, run: str) -> None:
    """What the agent said last is found, where it is told."""
    expected = expectation(combo, run)
    wanted = script()["outputs"].get(expected["output"], expected["output"])
    steps, _ = read(combo, run)
    said = [step.output for step in sorted(steps, key=lambda s: s.end_ns) if step.output and step.kind != "other"]
    assert (said[-1] if said else None) == wanted


def test_what_every_recording_must_show() -> None:
    """The truths that no expectation may hide where content is told."""
    for combo, run in RECORDINGS:
        expected = expectation(combo, run)
        if run == "happy" and "content" not in expected.get("hidden", ()):
            assert expected["reached"] == "read customer stock decide update", combo
        if run == "stuck":
            assert expected["digestion"] == 0, combo
            assert "stuck" in expected["findings"], combo
        if run == "error" and "content" not in expected.get("hidden", ()):
            assert expected["digestion"] == 1, combo


def test_every_deviation_is_of_a_recording_and_explained() -> None:
    combos = {combo for combo, _ in RECORDINGS}
    assert combos == {file.stem for file in (HERE / "expected").glob("*.yaml")}
    for combo in combos:
        own = expectations(combo)
        runs = {run for other, run in RECORDINGS if other == combo}
        assert set(own["runs"]) == runs, combo
        for run, special in own["runs"].items():
            assert not special or special.get("why") or set(special) <= {"hidden"}, f"{combo} {run}"


def _runs(combo: str, run: str, expected: dict[str, Any]) -> list[Record]:
    steps, _ = read(combo, run)
    records = score(steps)
    assert len(records) == len(expected["calls"].split("|")), [record.agent for record in records]
    return records


def _actions(record: Record) -> list[StepRecord]:
    return [step for step in record.steps or () if step.kind in ACTIONS]


def _told(step: StepRecord) -> dict[str, Any]:
    return {
        "who": f"{step.tool}@{step.agent}",
        "args": step.args,
        "result": step.result,
        "ok": step.ok,
        "error": step.error,
        "kind": step.kind,
    }


def _wanted(written: str, expected: dict[str, Any]) -> dict[str, Any]:
    """Expand ``call@agent`` into what the record must say of it."""
    name, _, agent = written.partition("@")
    agent = agent or expected["agent"]
    kind, _, tool = expected.get(name, "").partition(" ")
    if tool:  # a handoff, named by the framework
        return {"who": f"{tool}@{agent}", "kind": kind, "ok": True, "error": None}
    call = script()["calls"][name]
    is_hidden = "content" in expected.get("hidden", ())
    error = expected.get("errors", {}).get(name, call.get("error"))
    wanted = {
        "who": f"{call['tool']}@{agent}",
        "kind": "tool",
        "args": None if is_hidden else call["args"],
        "ok": error is None,
        "error": error,
    }
    if name in expected.get("other_args", {}):
        wanted["args"] = expected["other_args"][name]
    if "result" in call:
        wanted["result"] = None if is_hidden else call["result"]
    return wanted


def _flat(parts: list[list[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    return (item for part in parts for item in part)
