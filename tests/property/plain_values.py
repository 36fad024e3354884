"""Compare the values that run through a run, and remember who said what when, slowly and plainly."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from reach_otel.engine.action import Action
    from tests.property.plain_actions import Tree


def leaves(value: Any, key: str | None = None) -> Iterator[tuple[str | None, Any]]:
    """List the scalar values with their key; the items of a list take the key of the list."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from leaves(item, name)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from leaves(item, key)
    elif value is not None:
        yield key, value


def number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    return float(value) if isinstance(value, str) and re.fullmatch(r"\s*-?\d+(\.\d+)?\s*", value) else None


def held_in(value: Any, text: Any) -> bool:
    """Say whether a value is what a scalar says, or stands in a text as a whole token."""
    if isinstance(value, bool) or isinstance(text, bool):
        return value is text
    if number(value) is not None:
        return any(
            number(token) == number(value) for token in re.findall(r"(?<![\w.-])-?\d+(?:\.\d+)?(?!\w)", str(text))
        )
    return re.search(rf"(?<!\w){re.escape(str(value).strip())}(?!\w)", str(text)) is not None


def trivial(value: Any) -> bool:
    if isinstance(value, bool):
        return True
    if isinstance(value, int | float):
        return sum(c.isdigit() for c in str(value)) < 3
    return len(str(value).strip()) < 3


def same_scalar(a: Any, b: Any) -> bool:
    return a == b and isinstance(a, bool) == isinstance(b, bool)


def tokens(text: str) -> list[str]:
    """List the parts of a free text that may stand for something: those with a digit."""
    parts = re.findall(r"[\w-]+", text)
    return [part for part in parts if any(c.isdigit() for c in part)] if len(parts) > 1 else []


def without(text: Any, value: Any) -> Any:
    """Cut a value out of what was said."""
    if not held_in(value, text):
        return text
    return re.sub(rf"(?<!\w){re.escape(str(value).strip())}(?!\w)", " ", str(text))


def earlier_turns(tree: Tree, actions: list[Action]) -> list[tuple[int, Any]]:
    """List what a model was told, as results, of calls that are not of this run; each as of its first telling."""
    asked_for: set[str] = set()
    told: dict[str | None, tuple[int, Any]] = {}
    for model in tree.models:
        for answer in model.answers:
            key = answer.call_id or answer.tool
            made = any(a.call_id == answer.call_id is not None and a.end_ns <= model.start_ns for a in actions)
            if key not in asked_for and not made:
                told.setdefault(key, (model.start_ns, answer.result))
        asked_for |= {call.id or call.tool for call in model.calls}
    return [(time, value) for time, result in told.values() for _, value in leaves(result)]


class Sources:
    """Everything that was said in a run, with the time from which on it was known."""

    def __init__(self, tree: Tree, actions: list[Action], constants: Sequence[Any]) -> None:
        told = [s for s in tree.steps if s.kind in ("agent", "model") and not tree.in_action(s)]
        self.constants = constants
        self.texts = [(s.start_ns, text.text) for s in told for text in s.texts]
        self.results = {a.n: (a.end_ns, [value for _, value in leaves(a.result)]) for a in actions if a.has_result}
        self.past = earlier_turns(tree, actions)
        self.errors = {a.n: (a.end_ns, [a.error]) for a in actions if not a.ok and a.error}
        self.accepted: list[tuple[int, int, Any]] = []  # values that could not be judged, with their action's number

    def heard(self, at_ns: int) -> bool:
        """Say whether anything at all had been said, so that one can judge what is new."""
        return any(time <= at_ns for time, _ in [*self.texts, *self.past, *self.results.values()])

    def know(self, value: Any, action: Action) -> bool:
        """Say whether a value was known when an action started, by the user's word or by the actions before it."""
        said = [*self.texts, *self.past, *((time, text) for n, time, text in self.accepted if n < action.n)]
        for from_actions in (self.results, self.errors):
            said += [(time, text) for time, texts in from_actions.values() for text in texts]
        known = [text for time, text in said if time <= action.start_ns]
        return any(held_in(value, text) for text in [*known, *self.constants])

    def ungrounded(self, action: Action, grounded: Callable[[str], bool]) -> list[Any]:
        """List the values under such argument names that came from nowhere."""
        if not self.heard(action.start_ns):
            return []
        return [value for value in asked(action, grounded) if not self.know(value, action)]

    def take(self, action: Action, grounded: Callable[[str], bool]) -> None:
        """Trust what could not be judged; and let the echo of a made-up value in its own result prove nothing."""
        if not self.heard(action.start_ns):
            self.accepted += [(action.n, action.start_ns, value) for value in asked(action, grounded)]
        for value in self.ungrounded(action, grounded):
            for said in (self.results, self.errors):
                if action.n in said:
                    time, texts = said[action.n]
                    said[action.n] = (time, [without(text, value) for text in texts])


def asked(action: Action, grounded: Callable[[str], bool]) -> list[Any]:
    """List the values of an action's arguments that must come from somewhere."""
    named = [(name, value) for name, value in leaves(action.args) if name is not None and grounded(name)]
    return [value for _, value in named if value != "" and not isinstance(value, bool)]
