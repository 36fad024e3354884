"""Play the model: emit the ``chat`` spans that an instrumented model client would, with messages and token counts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from opentelemetry import trace

from reach_otel import names

MODEL = "gpt-4o-mini"
SYSTEM = "You are a support agent. Handle the ticket with the tools, then say what was done."
CHARACTERS_PER_TOKEN = 4
TOOL_DEFINITION_TOKENS = 350


class Model:
    """Hold one conversation; it decides nothing, since a behaviour tells it what to answer."""

    def __init__(self, rng: Random, pause: Callable[[float], None]) -> None:
        self._rng = rng
        self._pause = pause
        self._tracer = trace.get_tracer("reach-otel-demo-model")
        self._messages: list[dict[str, Any]] = [{"role": "system", "parts": [{"type": "text", "content": SYSTEM}]}]

    def hear(self, text: str) -> None:
        """Take what the user says."""
        self._messages.append({"role": "user", "parts": [{"type": "text", "content": text}]})

    def take(self, call_id: str, response: Any) -> None:
        """Take the result of a tool call."""
        part = {"type": "tool_call_response", "id": call_id, "response": response}
        self._messages.append({"role": "tool", "parts": [part]})

    def ask_for(self, tool: str, args: Mapping[str, Any]) -> str:
        """Ask for a tool; return the id of the call."""
        call_id = f"call_{self._rng.getrandbits(40):010x}"
        self._answer({"type": "tool_call", "id": call_id, "name": tool, "arguments": dict(args)}, "tool_calls")
        return call_id

    def say(self, text: str) -> None:
        """Give the final answer."""
        self._answer({"type": "text", "content": text}, "stop")

    def _answer(self, part: dict[str, Any], finish_reason: str) -> None:
        message = {"role": "assistant", "parts": [part], "finish_reason": finish_reason}
        given, answer = json.dumps(self._messages), json.dumps([message])
        with self._tracer.start_as_current_span(f"chat {MODEL}", kind=trace.SpanKind.CLIENT) as span:
            self._pause(self._rng.uniform(0.15, 0.5))
            span.set_attributes(
                {
                    names.OPERATION: "chat",
                    names.PROVIDER: "openai",
                    names.REQUEST_MODEL: MODEL,
                    names.FINISH_REASONS: (finish_reason,),
                    names.INPUT_MESSAGES: given,
                    names.OUTPUT_MESSAGES: answer,
                    names.USAGE_INPUT: TOOL_DEFINITION_TOKENS + len(given) // CHARACTERS_PER_TOKEN,
                    names.USAGE_OUTPUT: len(answer) // CHARACTERS_PER_TOKEN,
                }
            )
        self._messages.append(message)
