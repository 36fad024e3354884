"""Offer the decorators and context managers by which an agent without a library tells what it does."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from opentelemetry import context as otel_context

from reach_otel import names
from reach_otel.api.context import RUN_KEY, hand
from reach_otel.api.drive import wrap
from reach_otel.api.render import json_of
from reach_otel.api.spans import Kind, Open

if TYPE_CHECKING:
    from contextvars import Token
    from types import TracebackType

    from opentelemetry.context import Context

F = TypeVar("F", bound=Callable[..., Any])


@overload
def agent(function: F, /) -> F: ...
@overload
def agent(name: str | None = None, /, *, capture_content: bool | None = None) -> Callable[[F], F]: ...
def agent(target: Any = None, /, *, capture_content: bool | None = None) -> Any:
    """Make each call of a function one run of an agent (``invoke_agent``): ``@agent``, ``@agent("ticket-agent")``.

    Its one argument (or all, as JSON; or a list of ``{"role": …, "content": …}``) is the input, what it returns or
    yields the output. Without a name the agent is called like the function, with ``-`` for ``_``.
    """
    return _decorate("agent", target, capture_content)


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(name: str | None = None, /, *, capture_content: bool | None = None) -> Callable[[F], F]: ...
def tool(target: Any = None, /, *, capture_content: bool | None = None) -> Any:
    """Make each call of a function one tool call (``execute_tool``): ``@tool``, ``@tool("read_ticket")``.

    Arguments are named as in the signature, without defaults; an exception is the tool's error, and goes on.
    """
    return _decorate("tool", target, capture_content)


def run(task: str | None = None, *, variant: str | None = None, conversation_id: str | None = None) -> Run:
    """Start an explicit run: ``with reach_otel.run(task="ticket-handling"):``; all spans inside belong to it.

    The run has a span of its own (``invoke_workflow``), which ends last. A run inside a run is another run.
    """
    return Run(task, variant, conversation_id)


def step(name: str, *, kind: Kind = "other", given: Any = None, capture_content: bool | None = None) -> StepSpan:
    """Make the ``with`` block one step, given something and giving something back with ``gave()``.

    ``kind`` is ``agent``, ``model``, ``tool``, ``retrieval`` or (the default) ``other``: a span for people, no action.
    """
    return StepSpan(name, kind, given, capture_content)


def plan(steps: Sequence[Any], *, capture_content: bool | None = None) -> None:
    """Declare what the agent is going to do: tool names, or ``{"tool": …, "inputs": […], "depends_on": […]}`` each."""
    capture = hand.capture_content if capture_content is None else capture_content
    span = Open("other", "plan", more={names.OPERATION: "plan"})
    if capture and span.span.is_recording():
        told = [{"tool": each} if isinstance(each, str) else each for each in steps]
        span.note({names.REACH_PLAN: json_of(told, hand.content_max)})
    span.end()


def handoff(to: str, *, capture_content: bool | None = None, **given: Any) -> None:
    """Tell that the agent hands over to the agent ``to``, with what it gives along as keyword arguments."""
    span = Open("tool", f"transfer_to_{to}", capture=capture_content)
    span.given(lambda: given)
    span.end()


class Run:
    """Be one explicit run while the ``with`` block lasts; use it once."""

    __slots__ = ("_attributes", "_span", "_token", "id", "task")

    def __init__(self, task: str | None, variant: str | None, conversation_id: str | None) -> None:
        self.id = f"{names.RUN_ID_PREFIX}{uuid.uuid4().hex}"
        self.task = task
        told = {
            names.REACH_RUN_ID: self.id,
            names.REACH_TASK: task,
            names.REACH_VARIANT: variant,
            names.CONVERSATION_ID: conversation_id,
        }
        self._attributes = {name: value for name, value in told.items() if value is not None}
        self._span: Open | None = None
        self._token: Token[Context] | None = None

    def __enter__(self) -> Run:
        hand.runs_used = True
        self._token = otel_context.attach(otel_context.set_value(RUN_KEY, self._attributes))
        title = f"invoke_workflow {self.task}" if self.task else "invoke_workflow"
        more = {names.OPERATION: "invoke_workflow"}
        if self.task:
            more[names.GEN_AI_WORKFLOW_NAME] = self.task
        self._span = Open("other", title, more=more).__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, at: TracebackType | None) -> None:
        if self._span is not None:
            self._span.__exit__(kind, exc, at)
        if self._token is not None:
            otel_context.detach(self._token)


class StepSpan:
    """Be one step while the ``with`` block lasts; use it once."""

    __slots__ = ("_args", "_span")

    def __init__(self, name: str, kind: Kind, given: Any, capture: bool | None) -> None:
        self._args = (name, kind, given, capture)
        self._span: Open | None = None

    def __enter__(self) -> StepSpan:
        name, kind, given, capture = self._args
        self._span = Open(kind, name, capture=capture)
        if given is not None:
            self._span.given(lambda: given)
        self._span.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, at: TracebackType | None) -> None:
        if self._span is not None:
            self._span.__exit__(kind, exc, at)

    def gave(self, value: Any) -> None:
        """Tell the result or the text that came out."""
        if self._span is not None:
            self._span.gave(value)

    def used(
        self,
        *,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        cached_tokens: int | None = None,
        reasoning_tokens: int | None = None,
    ) -> None:
        """Tell what a model call used."""
        if self._span is not None:
            self._span.note(
                {
                    names.USAGE_INPUT: input_tokens,
                    names.USAGE_OUTPUT: output_tokens,
                    names.USAGE_CACHED: cached_tokens,
                    names.USAGE_REASONING: reasoning_tokens,
                }
            )


def _decorate(kind: Kind, target: Any, capture: bool | None) -> Any:
    def decorator(function: Any) -> Any:
        if isinstance(function, staticmethod | classmethod):
            return type(function)(decorator(function.__func__))
        if not callable(function):
            raise TypeError(f"@{kind} decorates functions, not {type(function).__name__}")
        given = getattr(function, "__name__", type(function).__name__)
        name = target if isinstance(target, str) else given.replace("_", "-") if kind == "agent" else given
        return wrap(function, kind, name, capture)

    if target is None or isinstance(target, str):
        return decorator
    return decorator(target)
