"""Say all that the page of one run shows; the script says the same when the run goes on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from reach_otel.service.render import (
    MARKS,
    NOTHING,
    description,
    moment,
    number,
    outcome_mark,
    percent,
    ratio,
    seconds,
    visible,
    width,
    words,
)

Json = Mapping[str, Any]

ACTION_KINDS: Final = frozenset(("tool", "handoff", "retrieval"))
SENTENCE_MAX: Final = 300
CONTENT_MAX: Final = 400
LEVELS: Final = {"L0": "intent", "L1": "resource", "L2": "action", "L3": "result", "L4": "delivery"}


def run_view(record: Json) -> dict[str, Any]:
    """Turn a run record into texts: ``milestones``, ``steps``, ``levels``, ``obstacles`` and ``findings`` are lists."""
    scores = record["scores"]
    must = [m for m in record["milestones"] if m["type"] == "must"]
    stop = record["break_point"]
    view: dict[str, Any] = {
        "outcome": words(record["outcome"]),
        "why_outcome": visible(record.get("why_outcome") or "", SENTENCE_MAX),
        "mark": outcome_mark(record["outcome"]),
        "agent": visible(record["agent"] or ("no agent name" if record["final"] else "agent not named yet")),
        "variant": visible(record["variant"] or NOTHING),
        "start": moment(record["start"]),
        "duration": seconds(record["duration_seconds"]),
        "reached": f"{sum(m['state'] == 'reached' for m in must)} of {len(must)}",
        "break_point": f"{stop['level']} {LEVELS.get(stop['level'], '')}: {words(stop['reason'])}" if stop else "none",
        "tokens": number(record["tokens"]["total"]),
        "utilisation": percent(record["utilisation"]),
        "cost": NOTHING if record["cost_dollars"] is None else f"${record['cost_dollars']:.4f}",
        "actions": number(sum(record["actions"].values())),
        "desc": description(record["milestones"]),
        "milestones": [_milestone(m, record) for m in record["milestones"]],
        "levels": [_level(name, record) for name in LEVELS],
        "steps": _steps(record),
        "obstacles": [_obstacle(o, record, n) for n, o in enumerate(record["obstacles"])],
        "findings": [_finding(f) for f in record["findings"]],
    }
    for name in ("composite", "depth", "purity", "digestion", "high_layer"):
        view[name] = ratio(scores[name])
        view[f"{name}_width"] = width(scores[name])
    return view


def _milestone(milestone: Json, record: Json) -> dict[str, str]:
    state, why = milestone["state"], record.get("why") or {}
    return {
        "id": visible(milestone["id"]),
        "key": milestone["id"],
        "type": milestone["type"],
        "layer": str(milestone["layer"]),
        "state": state,
        "mark": MARKS[state],
        "action": NOTHING if milestone["action"] is None else str(milestone["action"]),
        "seconds": seconds(milestone["seconds"]),
        "why": visible(why.get(milestone["id"]) or words(milestone["reason"] or state), SENTENCE_MAX),
        "note": note(milestone, final=record["final"]),
        "short": note(milestone, final=record["final"], short=True),
    }


def note(milestone: Json, *, final: bool, short: bool = False) -> str:
    """Say in the box of a milestone how it stands."""
    if milestone["state"] == "reached":
        at = "" if short or milestone["seconds"] is None else f" · {seconds(milestone['seconds'])}"
        return "reached" if milestone["action"] is None else f"action {milestone['action']}{at}"
    if milestone["reason"]:
        return words(milestone["reason"])
    return "passed" if milestone["state"] == "passed" else "missed" if final else "not yet"


def _level(name: str, record: Json) -> dict[str, str]:
    level, stop = record["levels"].get(name), record["break_point"]
    if level is None:
        state, said = "unknown", NOTHING
    elif level["passed"]:
        state, said = "pass", "passed"
    else:
        state, said = "fail", words(level["reason"])
    breaks = stop is not None and stop["level"] == name
    mark = {"pass": "✓", "fail": "✕"}.get(state, NOTHING)
    return {
        "name": name,
        "title": LEVELS[name],
        "state": "break" if breaks else state,
        "mark": mark,
        "said": said,
        "why": visible((record.get("why_levels") or {}).get(name, ""), SENTENCE_MAX),
        "breaks": "break point" if breaks else "",
    }


def _steps(record: Json) -> list[dict[str, Any]]:
    """Tell the story: each step, with what it brought; actions are numbered as in milestones and findings."""
    told: dict[int, list[dict[str, str]]] = {}
    for n, notes in _notes(record):
        told.setdefault(n, []).append(notes)
    steps, action = [], 0
    for step in record.get("steps") or ():
        acts = step["kind"] in ACTION_KINDS
        action += acts
        klass = step["class"] or ""
        steps.append(
            {
                "number": str(action) if acts else "",
                "kind": step["kind"],
                "name": visible(step["tool"] or step["agent"] or step["kind"]),
                "by": visible(step["agent"]) if step["agent"] and step["agent"] != record["agent"] else "",
                "class": words(klass) if klass else "",
                "state": "ok" if step["ok"] else "error",
                "ok": "✓ ok" if step["ok"] else "✕ error",
                "seconds": seconds(step["seconds"]),
                "args": content(step["args"]),
                "result": content(step["result"]),
                "error": content(step["error"]),
                "derived": "no span of its own" if step["derived"] else "",
                "notes": told.pop(action, []) if acts else [],
            }
        )
    return steps


def content(value: object) -> str:
    """Show a value of a step, where the service lets it out at all."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return visible(text, CONTENT_MAX)


def _notes(record: Json) -> list[tuple[int, dict[str, str]]]:
    notes = [
        (m["action"], {"kind": m["state"], "text": f"{MARKS[m['state']]} {_arrived(m)}"})
        for m in record["milestones"]
        if m["action"] is not None
    ]
    notes += [(t["action"], {"kind": "risk", "text": f"▲ trap {visible(t['id'])}"}) for t in record["traps"]]
    for o in record["obstacles"]:
        end = "digested" if o["digested"] else "not digested"
        notes.append((o["action"], {"kind": "obstacle", "text": f"◆ obstacle: {words(o['kind'])}, {end}"}))
    # What a milestone or an obstacle has said already is not said again.
    said = {"unused", "trap"}
    notes += [
        (f["action"], {"kind": "finding", "text": f"▲ {words(f['finding'])}"})
        for f in record["findings"]
        if f["action"] is not None and f["finding"] not in said
    ]
    return notes


def _arrived(milestone: Json) -> str:
    name = visible(milestone["id"])
    if milestone["state"] == "reached":
        return f"{name} reached"
    return f"{name} {milestone['state']}: {words(milestone['reason'] or 'not reached')}"


def _obstacle(obstacle: Json, record: Json, n: int) -> dict[str, str]:
    why = record.get("why_obstacles") or ()
    return {
        "kind": words(obstacle["kind"]),
        "tool": visible(obstacle["tool"]),
        "milestone": NOTHING if obstacle["milestone"] is None else visible(obstacle["milestone"]),
        "action": str(obstacle["action"]),
        "retries": str(obstacle["retries"]),
        "end": "✓ digested" if obstacle["digested"] else "✕ not digested",
        "why": visible(why[n], SENTENCE_MAX) if n < len(why) else "",
    }


def _finding(finding: Json) -> dict[str, str]:
    return {
        "finding": words(finding["finding"]),
        "action": NOTHING if finding["action"] is None else str(finding["action"]),
        "detail": visible(finding["detail"] or "", SENTENCE_MAX),
    }
