"""Compile name globs (``*``, ``?``, ``[abc]``; case matters), and tell whether two can match one name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from fnmatch import translate
from functools import lru_cache

_SPECIAL = re.compile(r"[*?\[]")
_TOKEN = re.compile(r"\*+|\?|\[(!?)(\]?[^\]]*)\]|.", re.DOTALL)


def is_glob(pattern: str) -> bool:
    """Tell a glob from a plain name."""
    return _SPECIAL.search(pattern) is not None


def check_glob(pattern: str) -> str:
    """Give ``pattern`` back; raise ``ValueError`` for one that cannot mean what it says."""
    if not pattern:
        raise ValueError("a name or glob is empty; write a tool name, or * for any")
    for token in _TOKEN.finditer(pattern):
        if token[0] == "[":
            raise ValueError(f"bad glob {pattern!r}: [ is never closed; write [[] for the character itself")
        if token[2] is not None and not any(matcher([token[0]])(chr(code)) for code in range(0x250)):
            raise ValueError(f"bad glob {pattern!r}: {token[0]} matches no character")
    return pattern


def matcher(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Compile names and globs into one test, which tells whether any of them matches the whole of a name."""
    patterns = tuple(patterns)
    names = frozenset(p for p in patterns if not is_glob(p))
    globs = [translate(p) for p in patterns if is_glob(p)]
    if not globs:
        return names.__contains__
    match = re.compile("|".join(globs)).match
    return lambda name: name in names or match(name) is not None


@lru_cache(maxsize=4096)
def overlap(one: str, other: str) -> bool:
    """Tell whether some name is matched by both; character sets count as any character, so never wrongly ``False``."""
    left, right = _tokens(one), _tokens(other)
    seen: set[tuple[int, int]] = set()
    todo = [(0, 0)]
    while todo:
        i, j = todo.pop()
        if (i, j) in seen:
            continue
        seen.add((i, j))
        if i == len(left) and j == len(right):
            return True
        if i < len(left) and left[i] == "*":
            todo.append((i + 1, j))
            if j < len(right):
                todo.append((i, j + 1))
        if j < len(right) and right[j] == "*":
            todo.append((i, j + 1))
            if i < len(left):
                todo.append((i + 1, j))
        if i < len(left) and j < len(right) and _may_be_one(left[i], right[j]):
            todo.append((i + 1, j + 1))
    return False


def _may_be_one(one: str, other: str) -> bool:
    """Tell whether two tokens of one character each can be the same character."""
    return "*" not in (one, other) and ("?" in (one, other) or one == other)


def _tokens(pattern: str) -> list[str]:
    """Split into ``*``, ``?`` (any one character, sets too) and characters that stand for themselves, marked ``=``."""
    tokens = []
    for token in _TOKEN.finditer(pattern):
        text = token[0]
        if text.startswith("*"):
            tokens.append("*")
        elif text == "?" or token[2] is not None:
            tokens.append("?")
        else:
            tokens.append("=" + text)
    return tokens
