"""Say what tokens were spent on (SPEC 7): each model step's tokens go to the actions it asked for, or to the answer."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from reach_otel.engine.action import FOREVER_NS, Action
from reach_otel.engine.assemble import Assembly
from reach_otel.engine.calls import Asked
from reach_otel.engine.record import TokenRecord
from reach_otel.engine.tree import Tree
from reach_otel.span.step import Step, Tokens


def share_tokens(steps: Sequence[Step], assembly: Assembly, tree: Tree) -> TokenRecord:
    """Share the tokens of the model steps (by end) among the classes; agent steps count only where there are none.

    A model step shares equally among the actions that it asked for; without messages, among those that start before the
    next model step; a step followed by no action has answered. The remainder of a division goes to the first.
    """
    models = counted_models(steps, tree)
    spent = {"effective": 0, "retry": 0, "ineffective": 0, "answer": 0}
    if not models:
        total = sum(_sum(a.tokens) for a in tree.outer_agents() if a.tokens is not None)
        return TokenRecord(total=total)
    total = 0
    begun = sorted((a for a in assembly.actions if not a.derived), key=_start)
    for at, model in enumerate(models):
        count = _sum(model.tokens)
        total += count
        asked = _asked_for(model, assembly, tree)
        if asked:
            actions = [a.action for a in asked if a.action is not None]
        else:
            until_ns = models[at + 1].start_ns if at + 1 < len(models) else FOREVER_NS
            first, end = (bisect_left(begun, ns, key=_start) for ns in (model.end_ns, until_ns))
            actions = sorted(begun[first:end], key=_key)
        if not actions:
            spent["answer"] += count
            continue
        each, rest = divmod(count, len(actions))
        for place, action in enumerate(actions):
            spent[_class(action)] += each + (rest if place == 0 else 0)
    return TokenRecord(total=total, **spent)


def counted_models(steps: Sequence[Step], tree: Tree) -> list[Step]:
    """Leave out model steps around another one: both report the same tokens."""
    return inner_models((s for s in steps if s.tokens is not None), tree)


def inner_models(steps: Iterable[Step], tree: Tree) -> list[Step]:
    """Give the model steps that stand around no other one: a framework and an SDK may each report the same call."""
    models = [s for s in steps if s.kind == "model"]
    ids = {m.span_id for m in models}
    around = {i for m in models for i in tree.above(m.span_id) if i in ids}
    return [m for m in models if m.span_id not in around]


def _asked_for(model: Step, assembly: Assembly, tree: Tree) -> list[Asked]:
    """Return the calls that a model step asked for, or the nearest step above that asked for any."""
    if not assembly.asks.all:
        return []
    asked = assembly.asks.of(model.span_id)
    return asked or next((found for i in tree.above(model.span_id) if (found := assembly.asks.of(i))), [])


def _start(action: Action) -> int:
    return action.start_ns


def _key(action: Action) -> tuple[int, int, str, int]:
    return action.key


def _class(action: Action) -> str:
    if action.klass != "effective":
        return "ineffective"
    return "retry" if action.retry else "effective"


def _sum(tokens: Tokens | None) -> int:
    return tokens.input + tokens.output if tokens is not None else 0
