"""Count the tokens that a span says it used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reach_otel import names as n
from reach_otel.span.fields import TOKENS_CACHED, TOKENS_INPUT, TOKENS_OUTPUT, TOKENS_REASONING, Sources
from reach_otel.span.step import Tokens


def tokens_of(attributes: Mapping[str, Any], inside: Any = None) -> Tokens | None:
    """Give the token counts; ``inside`` is the usage that stands in the message itself, for want of attributes.

    Output counts include reasoning, as all providers but one instrumentation have it.
    """
    given, made = _count(attributes, TOKENS_INPUT), _count(attributes, TOKENS_OUTPUT)
    if not given and not made:
        return _inside(inside)
    cached, reasoning = _count(attributes, TOKENS_CACHED), _count(attributes, TOKENS_REASONING)
    if reasoning and made >= 2 * reasoning and _adds_reasoning(attributes):
        made -= reasoning
    return Tokens(given, made, cached, reasoning)


def _adds_reasoning(attributes: Mapping[str, Any]) -> bool:
    """ADK adds reasoning to the output count, which is right for Gemini, whose count lacks it, and for no one else.

    Models of others come through LiteLLM, which names them ``provider/model``.
    """
    if n.ADK_EVENT not in attributes and n.ADK_INVOCATION not in attributes:
        return False
    model = attributes.get(n.REQUEST_MODEL)
    return type(model) is str and "/" in model and "gemini" not in model


def _inside(usage: Any) -> Tokens | None:
    """Read usage in the form of the OpenAI client."""
    if not isinstance(usage, dict):
        return None
    given = _number(usage.get("prompt_tokens", usage.get("input_tokens")))
    made = _number(usage.get("completion_tokens", usage.get("output_tokens")))
    if not given and not made:
        return None
    prompt, completion = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
    cached = prompt.get("cached_tokens") if isinstance(prompt, dict) else 0
    reasoning = completion.get("reasoning_tokens") if isinstance(completion, dict) else 0
    return Tokens(given, made, _number(cached), _number(reasoning))


def _count(attributes: Mapping[str, Any], sources: Sources) -> int:
    for key in sources:
        value = attributes.get(key)
        if value is not None:
            return _number(value)
    return 0


def _number(value: Any) -> int:
    """Take a count as number or text; anything else, and what cannot be a count, is 0."""
    if type(value) is int:
        return max(value, 0)
    if type(value) is float and 0 < value < 1e15:
        return int(value)
    return int(value) if type(value) is str and value.isdecimal() and len(value) < 16 else 0
