"""Make one hand-made span: what it is called, what it is told, how it ends."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import StatusCode

from reach_otel import names
from reach_otel.api.context import end_span, hand, start_span, warn_once
from reach_otel.api.render import json_of, text_of

if TYPE_CHECKING:
    from contextvars import Token
    from types import TracebackType

    from opentelemetry.context import Context

Kind = Literal["agent", "model", "tool", "retrieval", "other"]

OPERATIONS: Final[Mapping[str, str]] = {
    "agent": "invoke_agent",
    "model": "chat",
    "tool": "execute_tool",
    "retrieval": "retrieval",
}
_NAMED_BY: Final[Mapping[str, str]] = {
    "agent": names.GEN_AI_AGENT_NAME,
    "model": names.REQUEST_MODEL,
    "tool": names.GEN_AI_TOOL_NAME,
    "retrieval": names.GEN_AI_TOOL_NAME,
}
_ERROR_TEXT_MAX: Final = 1_000


class Open:
    """Hold one span from its start to its end; nothing here raises into the agent."""

    __slots__ = ("_capture", "_ended", "_kind", "_token", "context", "span")

    def __init__(
        self,
        kind: str,
        name: str,
        *,
        capture: bool | None = None,
        context: Context | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        attributes: dict[str, Any] = dict(more or ())
        title = name
        if kind in OPERATIONS:
            attributes[names.OPERATION] = OPERATIONS[kind]
            attributes[_NAMED_BY[kind]] = name
            title = f"{OPERATIONS[kind]} {name}"
            if kind == "tool":
                attributes[names.GEN_AI_TOOL_TYPE] = "function"
        self._kind = kind
        self._ended = False
        self._token: Token[Context] | None = None
        self.span = start_span(title, attributes, context)
        self.context = trace.set_span_in_context(self.span, context)
        self._capture = (hand.capture_content if capture is None else capture) and self.span.is_recording()

    def __enter__(self) -> Open:
        self._token = otel_context.attach(self.context)
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, at: TracebackType | None) -> None:
        if self._token is not None:
            otel_context.detach(self._token)
            self._token = None
        if exc is not None:
            self.failed(exc)
        self.end()

    @contextmanager
    def current(self) -> Iterator[None]:
        """Make the span current for a while, and go on next time with what the body had made current meanwhile."""
        token = otel_context.attach(self.context)
        try:
            yield
        finally:
            self.context = otel_context.get_current()
            otel_context.detach(token)

    def given(self, value: Callable[[], Any]) -> None:
        """Tell what the span was given: arguments by name, or the text or messages of an agent or model.

        The value is asked for only when it will be recorded.
        """
        if not self._capture:
            return
        told = value()
        if self._kind in ("agent", "model"):
            self._set(names.INPUT_MESSAGES, _messages("user", _only(told)))
        else:
            self._set(names.GEN_AI_TOOL_ARGUMENTS, json_of(told, hand.content_max))
            if self._kind == "retrieval":
                self._set(names.RETRIEVAL_QUERY, text_of(_only(told), hand.content_max))

    def gave(self, value: Any) -> None:
        """Tell what came out."""
        if not self._capture:
            return
        if self._kind not in ("agent", "model"):
            self._set(names.GEN_AI_TOOL_RESULT, text_of(value, hand.content_max))
        elif value is not None:
            self._set(names.OUTPUT_MESSAGES, _messages("assistant", value))

    def failed(self, exc: BaseException) -> None:
        """Tell what was raised: status, ``error.type`` and an exception event, as the conventions have it."""
        if not self.span.is_recording():
            return
        kind = type(exc)
        try:
            self._set(names.ERROR_TYPE, kind.__qualname__ if kind.__module__ == "builtins" else _dotted(kind))
            self.span.set_status(StatusCode.ERROR, f"{kind.__name__}: {_shown(exc)}")
            self.span.record_exception(exc)
        except Exception:  # noqa: BLE001 - str() of an exception of the application may raise
            warn_once()

    def note(self, attributes: Mapping[str, Any]) -> None:
        """Set further attributes; absent (``None``) ones are left out."""
        for name, value in attributes.items():
            if value is not None:
                self._set(name, value)

    def end(self) -> None:
        """End the span, once."""
        if not self._ended:
            self._ended = True
            end_span(self.span)

    def _set(self, name: str, value: Any) -> None:
        try:
            self.span.set_attribute(name, value)
        except Exception:  # noqa: BLE001 - not for the agent to know
            warn_once()


@dataclass(frozen=True, slots=True)
class Parameters:
    """Bind the arguments of a function to their names, without ``self`` and ``cls`` and without defaults."""

    signature: inspect.Signature | None
    skipped: str | None
    keywords: str | None  # the name after **

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Parameters:
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):
            return cls(None, None, None)
        parameters = list(signature.parameters.values())
        first = parameters[0].name if parameters else None
        keywords = next((p.name for p in parameters if p.kind is inspect.Parameter.VAR_KEYWORD), None)
        return cls(signature, first if first in ("self", "cls") else None, keywords)

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments by name; of a call that does not fit the signature, what can be told."""
        if self.signature is None:
            return {**({"args": args} if args else {}), **kwargs}
        try:
            bound = dict(self.signature.bind_partial(*args, **kwargs).arguments)
        except TypeError:
            return {"args": list(args), **kwargs}
        if self.skipped is not None:
            bound.pop(self.skipped, None)
        if self.keywords is not None:
            bound.update(bound.pop(self.keywords, {}))
        return bound


def _only(value: Any) -> Any:
    """Return the one value of a mapping that has one, else the value: who has one argument was told just that."""
    return next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else value


def _messages(role: str, value: Any) -> str:
    """Render text, or chat messages of any usual shape, as ``gen_ai.*.messages``."""
    told = value if isinstance(value, list | tuple) and value and all(map(_is_message, value)) else None
    if told is None:
        return json.dumps([_message(role, text_of(value, hand.content_max))], ensure_ascii=False)
    each = max(1, hand.content_max // len(told))
    return json.dumps(
        [_message(str(message["role"]), text_of(message["content"], each)) for message in told], ensure_ascii=False
    )


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("role"), str) and "content" in value


def _message(role: str, text: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": role, "parts": [{"type": "text", "content": text}]}
    if role == "assistant":
        message["finish_reason"] = "stop"
    return message


def _dotted(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _shown(exc: BaseException) -> str:
    try:
        return str(exc)[:_ERROR_TEXT_MAX]
    except Exception:  # noqa: BLE001
        return "no text"
