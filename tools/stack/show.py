"""Say in the terminal what the stack does: parts as they get ready, where everything is, alerts as they come."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

from tools.stack import ports
from tools.stack.stack import TASK, Stack
from tools.stack.webhook import Notice

SHOWN_EXPRESSION: Final = "task:reach_high_layer:ratio"
QUIET_LABELS: Final = frozenset({"alertname", "job"})


class Shown:
    """Print for one terminal; safe to use from many threads, one line at a time."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def line(self, text: str | Text, style: str = "") -> None:
        """Print a line with the time."""
        shown = text if isinstance(text, Text) else Text(text, style)
        self._console.print(Text.assemble((time.strftime("%H:%M:%S  "), "dim"), shown), soft_wrap=True)

    def ready(self, name: str, seconds: float) -> None:
        """Say that a part is ready."""
        self.line(Text.assemble(f"{name:<13}", ("ready", "green"), f" after {seconds:.1f} s"))

    def moved(self, preferred: Mapping[str, int], chosen: Mapping[str, int]) -> None:
        """Say which ports are not those of the documentation."""
        for name, port in chosen.items():
            if port != preferred[name]:
                self.line(f"{name}: port {preferred[name]} is taken, {port} is used", "yellow")

    def notice(self, notice: Notice) -> None:
        """Print an alert that came to the webhook."""
        labels = " ".join(
            f"{name}={value}" for name, value in sorted(notice.labels.items()) if name not in QUIET_LABELS
        )
        word, style = ("FIRING", "bold red") if notice.fires else ("RESOLVED", "bold green")
        self.line(Text.assemble((f"{word:<9}", style), (notice.name, "bold"), f"  {labels}"))
        for name in ("summary", "runbook_url", "dashboard_url") if notice.fires else ():
            if text := notice.annotations.get(name):
                self._console.print(Text(f"{'':19}{text}"), soft_wrap=True)

    def where(self, stack: Stack) -> None:
        """Print what is where."""
        self._console.print()
        for name, address, what in rows(stack):
            line = Text.assemble((f"{name:<13} ", "bold"), (f"{address:<34} ", "cyan"), what)
            self._console.print(line, soft_wrap=True)
        if stack.time_scale != 1:
            self._console.print(f"\nRules, scrapes and alerts run {stack.time_scale:g} times as fast as in production.")
        self._console.print("\nAlerts are printed below as they come. Ctrl-C ends everything.\n")


def rows(stack: Stack) -> Iterable[tuple[str, str, str]]:
    """Yield what is where, and why one would look at it."""
    task = _relative(TASK)
    for scorer in stack.scorers:
        yield scorer.name, f"{scorer.url}/", "the live page of its share of the runs; /metrics, /api, /runbook"
    yield "prometheus", f"{stack.prometheus}/alerts", "which alerts are pending or fire"
    yield "", f"{stack.prometheus}/graph", f"ask for {SHOWN_EXPRESSION}: below 0.5 comes the page"
    yield "alertmanager", f"{stack.alertmanager}/#/alerts", "what was sent, what is inhibited or silenced"
    yield "collector", stack.collector_http, f"send your own agents' spans here: REACH_ENDPOINT={stack.collector_http}"
    yield "", stack.collector_grpc, "the same over gRPC"
    yield "", f"http://{ports.HOST}:{stack.ports['collector metrics']}/metrics", "its own metrics: queues, refusals"
    yield "traces", _relative(stack.traces), f"reach-otel replay {_relative(stack.traces)} --task {task}"
    yield "logs", f"{_relative(stack.logs)}/", "one file a part; agents.log says what the agents really did"


def _relative(path: Path) -> str:
    """Return a path as one would type it here."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
