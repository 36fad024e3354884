"""Match the calls that models asked for with the actions that carried them out; derive those with no span (SPEC 4)."""

from __future__ import annotations

import re
from bisect import bisect_right, insort
from collections.abc import Callable
from functools import lru_cache

from msgspec import Struct

from reach_otel.engine.action import FOREVER_NS, Action
from reach_otel.span.step import Answer, Call, Step

HANDOFF = ""  # stands for the name of every handoff, as their spans do not always tell it
NAMES_MAX = 4_096  # remembered
NO_RESULT = "no result"  # error of a call that had neither a span nor an answer

_NOT_WORD = re.compile(r"\W")
_PREFIX = re.compile(r"^(?:mcp__.+?__|functions[._])")


@lru_cache(maxsize=NAMES_MAX)
def plain_name(tool: str) -> str:
    """Spell a tool's name as spans and messages both might: ``Ask Bob`` and ``mcp__crm__ask_bob`` are ``ask_bob``."""
    return _NOT_WORD.sub("_", _PREFIX.sub("", tool.lower()))


class Asked(Struct, gc=False, eq=False):
    """A call that a model asked for, and the action that carried it out once that is known."""

    call: Call
    name: str  # plain
    span_id: str  # of the asking step
    parent_id: str | None
    agent: str | None
    start_ns: int  # of the asking step
    end_ns: int
    index: int  # place in the message
    nth: int  # which call it is of those with the same key
    action: Action | None = None

    @property
    def key(self) -> str:
        """Name what an answer refers to: the call id, else the tool."""
        return self.call.id or f"tool:{self.name}"


class Asks:
    """Hold all calls of a run that models asked for, in the order of asking."""

    __slots__ = ("_by_asker", "_by_key", "_open", "_starts_ns", "all", "open")

    def __init__(self) -> None:
        self.all: list[Asked] = []
        self.open = 0  # how many no action has carried out yet
        self._open: dict[str, list[Asked]] = {}  # these, by plain name
        self._by_key: dict[str, list[Asked]] = {}
        self._by_asker: dict[str, list[Asked]] = {}
        self._starts_ns: dict[str | None, list[int]] = {}  # agent -> starts of its asking steps, in order

    def of(self, span_id: str) -> list[Asked]:
        """Return what one model step asked for."""
        return self._by_asker.get(span_id, [])

    def add(self, step: Step) -> None:
        """Add the calls of a model step, or of a log record that belongs to one.

        A call that two spans of one model call both report, or a span and its log record, is added once.
        """
        asker = step.parent_id if step.kind == "content" and step.parent_id else step.span_id
        if not step.calls or asker in self._by_asker:
            return
        new = self._by_asker[asker] = []
        for index, call in enumerate(step.calls):
            name = plain_name(call.tool)
            asked = Asked(call, name, asker, step.parent_id, step.agent, step.start_ns, step.end_ns, index, 0)
            same = self._by_key.setdefault(asked.key, [])
            if _is_known(asked, same):
                continue
            asked.nth = len(same)
            same.append(asked)
            new.append(asked)
            self._open.setdefault(name, []).append(asked)
        if new:
            self.all.extend(new)
            self.open += len(new)
            insort(self._starts_ns.setdefault(step.agent, []), step.start_ns)

    def open_for(self, action: Action) -> list[Asked]:
        """Return the open calls that an action with a name may have carried out."""
        fitting = [a for a in self._open.get(plain_name(action.tool), ()) if may_be(a, action)]
        for asked in self.named(action.call_id) if action.call_id else ():  # under another name, perhaps
            if asked.action is None and asked not in fitting and may_be(asked, action):
                fitting.append(asked)
        return fitting

    def has_open_by(self, at_ns: int) -> bool:
        """Say whether some open call was asked for by a time."""
        return any(asked.end_ns <= at_ns for calls in self._open.values() for asked in calls)

    def by_name_alone(self, asked: Asked, action: Action) -> bool:
        """Say whether the tool's name is enough: it is until the same agent asks for something else."""
        return action.start_ns < self._asks_again_ns(asked)

    def close(self, asked: Asked, action: Action) -> None:
        """Note which action carried a call out."""
        asked.action = action
        self._open[asked.name].remove(asked)
        self.open -= 1

    def _asks_again_ns(self, asked: Asked) -> int:
        """Return when the same agent asks for something next."""
        starts_ns = self._starts_ns[asked.agent]
        at = bisect_right(starts_ns, asked.start_ns)
        return starts_ns[at] if at < len(starts_ns) else FOREVER_NS

    def named(self, key: str) -> list[Asked]:
        """Return the calls with one key, in the order of asking."""
        return self._by_key.get(key, [])


def _is_known(asked: Asked, same: list[Asked]) -> bool:
    """Say whether another model step, which overlaps in time, reports this call too; ``same`` goes by their ends."""
    for other in reversed(same):
        if other.end_ns <= asked.start_ns:
            return False
        if (
            other.span_id != asked.span_id
            and other.start_ns < asked.end_ns
            and other.name == asked.name
            and (asked.call.id is not None or asked.call.args == other.call.args)
        ):
            return True
    return False


def answer_key(answer: Answer) -> str:
    """Name what an answer refers to: the call id, else the tool."""
    return answer.call_id or f"tool:{plain_name(answer.tool or '')}"


def derive(asked: Asked, answer: Answer | None, end_ns: int) -> Action:
    """Make the action of a call that no span reported."""
    call = asked.call
    transferred = call.kind == "handoff"  # who hands over may never hear an answer
    return Action(
        kind=call.kind,
        span_id=asked.span_id,
        start_ns=asked.end_ns,
        end_ns=end_ns,
        index=asked.index + 1,
        parent_id=asked.parent_id,
        tool=call.tool,
        agent=asked.agent,
        call_id=call.id,
        args=call.args,
        result=answer.result if answer else None,
        has_args=call.args is not None,
        has_result=answer is not None and answer.result is not None,
        ok=answer.ok if answer is not None else transferred,
        error=answer.error if answer is not None else None if transferred else NO_RESULT,
        by_text=answer is not None and answer.by_text,
        derived=True,
    )


def may_be(asked: Asked, action: Action) -> bool:
    """Say whether an action can be the one asked for: not begun before the question, and with no other id."""
    if action.start_ns < asked.start_ns:
        return False
    if asked.call.id and action.call_id:
        return asked.call.id == action.call_id
    if is_nameless(action):
        return asked.call.kind == "handoff"
    return asked.name == plain_name(action.tool)


def is_nameless(action: Action) -> bool:
    """Say whether a span told that there was a handoff, but not by which tool."""
    return action.kind == "handoff" and action.tool in ("", "handoff")


def is_put_off(step: Step) -> bool:
    """Say whether a call was interrupted to ask a person: it did not happen, and is made anew in another trace."""
    return step.kind == "other" and step.tool is not None and not step.has_result and step.output is None


def has_same_args(action: Action, call: Call) -> bool:
    """Say whether a span and a message tell the same arguments; a span may tell a sole argument without its name."""
    if not action.has_args:
        return False
    if is_bare(action, call):
        return list(call.args.values()) == [action.args]
    return bool(action.args == call.args)


def is_bare(action: Action, call: Call) -> bool:
    """Say whether the message names the arguments and the span (LangChain's, of a tool with one) does not."""
    return action.has_args and isinstance(call.args, dict) and not isinstance(action.args, dict)


def complete(action: Action, asked: Asked, answer: Answer | None) -> None:
    """Fill what the span of an action does not say from the messages."""
    if asked.call.args is not None and (not action.has_args or is_bare(action, asked.call)):
        action.args, action.has_args = asked.call.args, True
    if action.call_id is None:
        action.call_id = asked.call.id
    if is_nameless(action):
        action.tool = asked.call.tool
    if answer is not None:
        give_answer(action, answer)


def give_answer(action: Action, answer: Answer) -> None:
    """Take a result from the messages where the span of the action has none."""
    if action.has_result:
        return
    if answer.result is not None:
        action.result, action.has_result = answer.result, True
    if not answer.ok and action.ok:
        action.ok, action.error, action.by_text = False, answer.error, answer.by_text


def is_sure(asked: Asked, action: Action) -> bool:
    """Say whether a call and an action agree in more than the tool's name: in the call id, or in the arguments."""
    if asked.call.id is not None and asked.call.id == action.call_id:
        return True
    return has_same_args(action, asked.call)


def match(asks: Asks, actions: list[Action]) -> list[tuple[Asked, Action]]:
    """Pair the calls that models asked for with the actions that carried them out.

    The latest message that asks for an action owns it: ids go first, then equal arguments, then the name alone.
    """
    pairs: list[tuple[Asked, Action]] = []
    taken: set[int] = set()
    rest = sorted(actions, key=_start)
    by_name: dict[str, list[Asked]] = {}
    for asked in sorted(asks.all, key=_asked_ns):
        by_name.setdefault(asked.name if asked.call.kind != "handoff" else HANDOFF, []).append(asked)
    for fits in (_same_id_and_name, _same_id, is_sure, asks.by_name_alone):
        left = []
        for action in rest:
            pool = by_name.get(plain_name(action.tool), [])
            if action.kind == "handoff":  # perhaps under the name of a tool which turned out to be an agent
                pool = sorted([*pool, *by_name.get(HANDOFF, [])], key=_asked_ns)
            if fits in (_same_id_and_name, _same_id):
                pool = sorted(asks.named(action.call_id), key=_asked_ns) if action.call_id else []
            owner = _owner(pool, action, taken, fits)
            if owner is None:
                left.append(action)
            else:
                taken.add(id(owner))
                pairs.append((owner, action))
        rest = left
    return pairs


def _same_id_and_name(asked: Asked, action: Action) -> bool:
    return _same_id(asked, action) and asked.name == plain_name(action.tool)


def _same_id(asked: Asked, action: Action) -> bool:
    return asked.call.id is not None and asked.call.id == action.call_id


def _owner(pool: list[Asked], action: Action, taken: set[int], fits: Callable[[Asked, Action], bool]) -> Asked | None:
    """Return the first fitting call of the latest message that asks; ``pool`` goes by their starts."""
    owner: Asked | None = None
    for at in range(bisect_right(pool, action.start_ns, key=_asked_ns) - 1, -1, -1):
        asked = pool[at]
        if owner is not None and asked.start_ns < owner.start_ns:
            break
        if id(asked) not in taken and may_be(asked, action) and fits(asked, action):
            owner = asked
    return owner


def _asked_ns(asked: Asked) -> int:
    return asked.start_ns


def _start(action: Action) -> tuple[int, tuple[int, int, str, int]]:
    return (action.start_ns, action.key)
