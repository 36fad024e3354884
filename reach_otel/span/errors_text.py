"""Tell a failed tool call by its text or its structure, and say why: the one place for such patterns."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal

from reach_otel.span.value import parse

_BEGINNINGS = (
    r"(?i:\W*(?:tool |function |execution |validation |runtime |internal |fatal )?error\b\s*(?:\(\w*\)\s*)?[:!])",
    r"(?i:\W*error (?:executing|calling|invoking|running|while|in|during|processing|fetching|occurred)\b)",
    r"(?i:\W*an? (?:unexpected |internal )?error (?:has )?occurred\b)",
    r"(?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)\b\s*[:(]",
    r"Traceback \(most recent call last\)",
    r"(?i:(?:tool|function)(?: with name)? ?['\"`]?[\w.-]*['\"`]? ?(?:was |is |does )?not (?:found|available|exist)\b)",
    r"(?i:(?:unknown|unrecogni[sz]ed|invalid|no such) (?:tool|function)\b)",
    r"(?i:\W*[\w.\-]+ is not a valid (?:tool|function)\b)",
    r"(?i:(?:tool|function)(?: call| execution)? (?:['\"`]?[\w.\-]+['\"`]? )?(?:has )?failed\b)",
    r"(?i:failed to (?:execute|call|invoke|run) (?:the )?(?:tool|function)\b)",
    r"(?i:\W*permission denied\b)",
)
_FAILURE = re.compile("|".join(_BEGINNINGS))
DEFAULT_PATTERNS: tuple[re.Pattern[str], ...] = tuple(re.compile(rf"\A(?:{beginning})") for beginning in _BEGINNINGS)
"""A result text that begins like one of these is a failure; a task may replace the list by its ``error_when``."""

Steering = Literal["handoff", "pause"]
CONTROL_FLOW_HANDOFF = frozenset(("ParentCommand",))
CONTROL_FLOW_PAUSE = frozenset(
    (
        "GraphInterrupt",
        "NodeInterrupt",
        "GraphBubbleUp",
        "InterruptException",
        "CallDeferred",
        "ApprovalRequired",
        "ToolApprovalRequired",
        "FunctionApprovalRequired",
    )
)
CONTROL_FLOW = CONTROL_FLOW_HANDOFF | CONTROL_FLOW_PAUSE
"""Exceptions by which frameworks hand over or wait for a person: bare class names."""

ERROR_CHARS_MAX = 300
HEAD_CHARS = 500

_PAUSE_TEXT = "(Interrupt(value="
_COMMAND_TEXT = "Command(graph="
_BAD_WORDS = frozenset(("error", "failed", "failure", "fail"))
_GOOD_WORDS = frozenset(("ok", "success", "succeeded", "completed"))
_REASONS = ("error", "error_message", "errorMessage", "message", "detail", "details", "reason", "msg")
_TELLING_TYPE = re.compile(r"Timeout|Permission|Forbidden|Unauthori[sz]ed|Cancelled|Canceled|Connection")
_WRAPPED = re.compile(r"^(?P<before>[^{]*)(?P<dict>\{.*\})$", re.DOTALL)
_REPR_MESSAGE = re.compile(r"^[A-Z]\w*\((?P<quote>['\"])(?P<text>.*?)(?P=quote)\)")


def bare_type(name: str) -> str:
    """Give the class name without its module: ``langgraph.errors.ParentCommand`` is ``ParentCommand``."""
    return name.rpartition(".")[2]


def control_flow(types: Iterable[str], message: str) -> Steering | None:
    """Say ``handoff`` or ``pause`` where an error is how a framework steers, else ``None``."""
    for name in types:
        bare = bare_type(name)
        if bare in CONTROL_FLOW_PAUSE:
            return "pause"
        if bare in CONTROL_FLOW_HANDOFF:
            return "handoff"
    if message.startswith(_PAUSE_TEXT):
        return "pause"
    return "handoff" if message.startswith(_COMMAND_TEXT) else None


def failed_by_text(text: str, patterns: Iterable[re.Pattern[str]] = DEFAULT_PATTERNS) -> bool:
    """Tell whether a result that is bare text reports a failure."""
    head = text[:HEAD_CHARS]
    if patterns is DEFAULT_PATTERNS:
        return _FAILURE.match(head) is not None
    return any(pattern.search(head) for pattern in patterns)


def failed_by_structure(result: Any) -> bool:
    """Tell whether a structured result says of itself that the call failed.

    ``isError: true``, ``status: error``, an ``error`` that is set, or ``success: false`` with a reason; a result which
    says that it succeeded has not failed, whatever else it holds.
    """
    if not isinstance(result, dict):
        return False
    if result.get("isError") is True or result.get("is_error") is True:
        return True
    status = result.get("status")
    if isinstance(status, str) and status.lower() in _BAD_WORDS:
        return True
    done = result.get("success", result.get("ok"))
    if done is True or (isinstance(status, str) and status.lower() in _GOOD_WORDS):
        return False
    error = result.get("error")
    if error is True or (isinstance(error, str | dict) and error):
        return True
    return done is False and any(isinstance(result.get(key), str) for key in _REASONS)


def reason_of(result: Any) -> str | None:
    """Find the words with which a failed result says why."""
    for _ in range(4):
        if isinstance(result, str):
            return first_line(result)
        if not isinstance(result, dict):
            return None
        found = next((result[key] for key in _REASONS if isinstance(result.get(key), str | dict) and result[key]), None)
        if found is None:
            return None
        result = found
    return None


def first_line(text: str) -> str | None:
    """Give the first line that holds something, bounded; ``None`` when there is none."""
    line = next((line for line in text[:4000].splitlines() if line.strip()), None)
    return line.strip()[:ERROR_CHARS_MAX] if line is not None else None


def from_status(message: str) -> str | None:
    """Unwrap a status message: a dict repr around the real words, or a repr followed by a traceback."""
    if not message:
        return None
    head = message.partition("Traceback (most recent call last)")[0] or message
    wrapped = _WRAPPED.match(head.strip())
    if wrapped is not None:
        value = parse(wrapped["dict"])
        if isinstance(value, dict):
            inner = value["data"] if isinstance(value.get("data"), dict) else value
            said = inner.get("error") or inner.get("message") or value.get("message")
            if isinstance(said, str):
                return first_line(said)
    plain = _REPR_MESSAGE.match(head)
    return first_line(plain["text"] if plain is not None else head)


def from_exception(kind: str, message: str) -> str | None:
    """Word an exception: its message, with its class where that tells more than the message does."""
    line = first_line(message)
    bare = bare_type(kind)
    if line is None:
        return bare or None
    if _TELLING_TYPE.search(bare) and bare not in line:
        return f"{bare}: {line}"[:ERROR_CHARS_MAX]
    return line
