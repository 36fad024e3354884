"""Say what a tool name means: one name per tool, and whether it hands over, or only ends the run."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Literal, NamedTuple

ToolKind = Literal["tool", "handoff", "pseudo"]

PSEUDO_TOOLS = frozenset(
    (
        "final_answer",
        "final_result",
        "final_output",
        "final_response",
        "finish",
        "structured_output",
        "structuredoutput",
        "(merged_tools)",
    )
)
"""Names by which frameworks let a model end its run, or report a batch: nothing is done in the world."""

HANDOFF = re.compile(r"(?:transfer_to|hand_?off(?:_to)?|delegate(?:_\w+)?_to|delegate)(?:_(\w+))?")
NO_NAMES = frozenset(
    ("agent", "agents", "member", "members", "coworker", "coworkers", "a_coworker", "to", "task", "work")
)
"""What may follow in the name of a handoff tool without naming an agent."""

TARGET_ARGUMENTS = (
    "to_agent agent_name target_agent target agent coworker member_id member recipient subagent_type assignee"
).split()
_SUBAGENT_TOOLS = frozenset(("task", "agent"))
_HANDOFF_SPAN = re.compile(r"handoff to (.+)", re.IGNORECASE)
_METHOD = re.compile(r"(.+?)(?:\.(?:__call__|_?a?run|a?call|a?invoke|a?execute|tool|ainvoke_tool))+")


class Tool(NamedTuple):
    """A tool as its name alone shows it."""

    name: str
    kind: ToolKind = "tool"
    to_agent: str | None = None


@lru_cache(maxsize=4096)
def tool_of(name: str) -> Tool:
    """Read a tool name.

    A name that a server or a client put something before (``mcp__server__x``, ``functions.x``) or that is written for
    people (``Delegate work to coworker``) gives the name which the model and the tool itself use.
    """
    name = name.strip()
    if name.startswith("mcp__"):
        name = name.split("__", 2)[-1] or name
    name = name.removeprefix("functions.")
    if " " in name:
        said = _HANDOFF_SPAN.fullmatch(name)
        name = "transfer_to_" + said[1].strip() if said else name
        name = re.sub(r"\s+", "_", name.lower()) if not said else re.sub(r"\s+", "_", name)
    lower = name.lower()
    if lower in PSEUDO_TOOLS or lower.startswith("final_result_"):
        return Tool(name, "pseudo")
    handoff = HANDOFF.fullmatch(lower)
    if handoff is None:
        return Tool(name)
    target = name[handoff.start(1) :] if handoff[1] else None
    return Tool(name, "handoff", None if target is None or target.lower() in NO_NAMES else target)


def with_arguments(tool: Tool, args: Any) -> Tool:
    """Look into the arguments for what the name leaves open: who receives, and whether a ``Task`` is an agent's."""
    if not isinstance(args, dict):
        return tool
    if tool.kind == "tool":
        if tool.name.lower() not in _SUBAGENT_TOOLS or not isinstance(args.get("subagent_type"), str):
            return tool
        return Tool(tool.name, "handoff", args["subagent_type"])
    if tool.kind == "handoff" and tool.to_agent is None:
        for key in TARGET_ARGUMENTS:
            value = args.get(key)
            if isinstance(value, str) and value:
                return tool._replace(to_agent=value)
    return tool


def name_from_span(name: str) -> str:
    """Take the tool name out of a span name where no attribute gives it: ``x.__call__``, ``tools/call x``."""
    for prefix in ("execute_tool ", "running tool: ", "running tool "):
        if name.startswith(prefix):
            return name[len(prefix) :]
    if "tools/call " in name:
        return name.partition("tools/call ")[2]
    method = _METHOD.fullmatch(name)
    return method[1] if method else name
