"""Hold what an agent has in hand during one run: a ticket, the model that decides, tools that may be in trouble."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Mapping
from random import Random
from typing import NamedTuple

import reach_otel
from reach_otel.demo.desk import TOOLS, Desk, Goods, Result, ToolError
from reach_otel.demo.model import Model

TOOL_SECONDS = (0.02, 0.06)


class Trouble(NamedTuple):
    """Make the first calls of a tool fail with an error, or take so many seconds longer."""

    error: str | None = None
    seconds: float = 0.0
    times: int = 1


class Work:
    """One run of an agent: each call is asked for by the model and done by a real tool, both seen as spans."""

    def __init__(
        self,
        desk: Desk,
        troubles: Mapping[str, Trouble],
        rng: Random,
        pause: Callable[[float], None],
        *,
        goods: Goods = "stocked",
    ) -> None:
        self.rng = rng
        self.ticket_id = desk.open_ticket(rng, goods)
        self._troubles = troubles
        self._pause = pause
        self._calls: Counter[str] = Counter()
        self._model = Model(rng, pause)
        self._tools = {name: reach_otel.tool(name)(self._with_trouble(name, getattr(desk, name))) for name in TOOLS}

    def hear(self, request: str) -> None:
        """Take what the user asks for."""
        self._model.hear(request)

    def call(self, tool: str, **args: str) -> Result:
        """Let the model ask for a tool, and run it; raises :class:`ToolError` when it fails."""
        call_id = self._model.ask_for(tool, args)
        try:
            result = self._tools[tool](**args)
        except ToolError as error:
            self._model.take(call_id, str(error))
            raise
        self._model.take(call_id, result)
        return result

    def attempt(self, tool: str, **args: str) -> Result | None:
        """Do the same, but return ``None`` when the tool fails."""
        try:
            return self.call(tool, **args)
        except ToolError:
            return None

    def say(self, text: str) -> str:
        """Let the model give its final answer; return it."""
        self._model.say(text)
        return text

    def _with_trouble(self, name: str, tool: Callable[..., Result]) -> Callable[..., Result]:
        trouble = self._troubles.get(name, Trouble(times=0))

        @functools.wraps(tool)
        def troubled(**args: str) -> Result:
            self._calls[name] += 1
            in_trouble = self._calls[name] <= trouble.times
            self._pause(self.rng.uniform(*TOOL_SECONDS) + (trouble.seconds if in_trouble else 0.0))
            if in_trouble and trouble.error:
                raise ToolError(trouble.error)
            return tool(**args)

        return troubled
