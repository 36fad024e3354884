"""Tell repeated calls from new ones: exact repeats, and loops in which nothing new is reached (SPEC 6.2, 7.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from reach_otel.engine.action import Action

LOOP_REPEATS = 3

_encoder = msgspec.json.Encoder(enc_hook=repr, order="sorted")


class Repeats:
    """Remember the calls of a run and their answers, as hashes.

    Free text (arguments for which ``is_free_text`` is true) is left out for loops only: the same in other words
    is a loop, yet no exact repeat. A cycle of several calls is found by the count of its members.
    """

    __slots__ = ("_answers", "_is_free_text", "_looped", "_seen", "_signature")

    def __init__(self, is_free_text: Callable[[str], bool] | None) -> None:
        self._is_free_text = is_free_text
        self._answers: dict[int, int] = {}  # call -> its latest answer
        self._seen: dict[tuple[int, int], int] = {}  # since something new was reached
        self._signature: tuple[int, int] | None = None  # of the latest action
        self._looped = False

    def repeats(self, action: Action) -> bool:
        """Take in an action; says whether it is the latest like call over again, with the same answer.

        What was not captured cannot be compared: such a call is like no other.
        """
        self._signature = None
        if not action.has_args or (action.ok and not action.has_result):
            return False
        call = hash((action.tool, encode(action.args)))
        answer = hash(encode(action.result if action.has_result else action.error))
        loose = self._without_free_text(action.args)
        self._signature = (call if loose is action.args else hash((action.tool, encode(loose))), answer)
        repeated = self._answers.get(call) == answer
        self._answers[call] = answer
        return repeated

    def start_stretch(self) -> None:
        """Note that something new was reached: what was repeated before is no loop."""
        self._seen.clear()
        self._looped = False

    def loops(self) -> bool:
        """Say whether the latest action closes a loop: the third of its like in this stretch, told once a stretch."""
        if self._signature is None:
            return False
        times = self._seen[self._signature] = self._seen.get(self._signature, 0) + 1
        if times < LOOP_REPEATS or self._looped:
            return False
        self._looped = True
        return True

    def _without_free_text(self, args: Any) -> Any:
        """Leave out free text; the very value if there is none."""
        if self._is_free_text is None or not isinstance(args, dict):
            return args
        kept = {k: self._without_free_text(v) for k, v in args.items() if not self._is_free_text(k)}
        return args if kept == args else kept


def encode(value: Any) -> bytes:
    """Spell a value so that equal values are equal bytes, also one that is no JSON (a lone surrogate, mixed keys)."""
    try:
        return _encoder.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return repr(value).encode("utf-8", "replace")
