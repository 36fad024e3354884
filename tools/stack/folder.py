"""Keep the folder of one stack: empty at the start, used by one stack at a time, and nothing else ever deleted."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path
from types import TracebackType
from typing import Final

from tools.stack.process import StackError

MARK: Final = ".reach-stack"
"""The file that says that a folder is ours to empty. It is locked while the stack, or a part of it, runs."""


class Folder:
    """Own a folder while the ``with`` block lasts.

    The lock is inherited by the stack's processes. So a stack that was killed and left some behind is noticed, and its
    database is not taken from under them.
    """

    def __init__(self, path: Path, *, keep: bool = False) -> None:
        self.path = path.absolute()
        self._keep = keep
        self._lock = -1

    def __enter__(self) -> Folder:
        if self.path.exists() and not (self.path / MARK).exists() and any(self.path.iterdir()):
            raise StackError(f"{self.path} holds files that are not the stack's; give another --folder")
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(self.path / MARK, os.O_RDWR | os.O_CREAT, 0o600)
        os.set_inheritable(self._lock, True)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            left = os.pread(self._lock, 1000, 0).decode(errors="replace").strip() or "unknown"
            os.close(self._lock)
            raise StackError(
                f"a stack runs in {self.path}, or parts of one that was killed (process ids: {left}); "
                "end it first, or give another --folder"
            ) from None
        if not self._keep:
            self._empty()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.close(self._lock)

    @property
    def lock(self) -> int:
        """Return the descriptor that the stack's processes are to inherit."""
        return self._lock

    def note(self, pids: list[int]) -> None:
        """Write down which processes belong to the stack."""
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"{' '.join(map(str, pids))}\n".encode(), 0)

    def _empty(self) -> None:
        for entry in self.path.iterdir():
            if entry.name == MARK:
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()
