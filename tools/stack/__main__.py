"""Run the whole stack for a developer, without Docker: ``python -m tools.stack``, or ``make stack``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from reach_otel.demo.stop import asked_to_stop
from tools.stack import ports, programs
from tools.stack.process import StackError, Stopped
from tools.stack.show import Shown
from tools.stack.stack import NEEDS, Stack

LOOK_SECONDS: Final = 0.2
FOLDER: Final = programs.ROOT / ".stack"


def main(
    agents: Annotated[
        int, typer.Option(min=0, max=64, help="How many demo agents work at the same time; 0: none.")
    ] = 4,
    degrade_after: Annotated[
        float | None, typer.Option(min=0, help="Let agents get worse after so many seconds.")
    ] = None,
    recover_after: Annotated[float | None, typer.Option(min=0, help="Let them get better again after so many.")] = None,
    duration: Annotated[
        float | None, typer.Option(min=0, help="End after so many seconds, not only at Ctrl-C.")
    ] = None,
    folder: Annotated[Path, typer.Option(help="Where databases, logs and traces go; emptied at the start.")] = FOLDER,
    keep: Annotated[bool, typer.Option("--keep", help="Keep what the last stack left in the folder.")] = False,
    time_scale: Annotated[
        float, typer.Option(min=1, max=60, help="Divide the durations of rules, scrapes and alerts: see a page sooner.")
    ] = 1.0,
    scorers: Annotated[int, typer.Option(min=1, max=ports.SCORERS_MAX, help="How many scorers share the runs.")] = 2,
) -> None:
    """Start demo agents, a Collector, scorers, Prometheus and Alertmanager on loopback; end them all together.

    Ctrl-C, SIGTERM, or the end of any part ends everything. Alerts are printed as they reach the webhook.
    """
    shown = Shown(Console(highlight=False))
    try:
        with asked_to_stop() as asked:
            preferred = ports.wanted(scorers)
            chosen = ports.choose(preferred)
            stack = Stack(
                folder,
                scorers=scorers,
                time_scale=time_scale,
                webhook=shown.notice,
                chosen=chosen,
                keep=keep,
                on_ready=shown.ready,
                asked=asked,
            )
            programs.find_all(*NEEDS)
            shown.moved(preferred, chosen)
            with stack:
                if agents:
                    stack.start_agents(*_options(agents, degrade_after, recover_after))
                shown.where(stack)
                began = time.monotonic()
                while not asked() and (duration is None or time.monotonic() - began < duration):
                    stack.check()
                    time.sleep(LOOK_SECONDS)
                shown.line("ending everything")
            shown.line("everything has ended")
    except Stopped:
        shown.line("everything has ended")
    except (StackError, programs.MissingProgram) as error:  # what had started has ended by now
        shown.line(str(error), "red")
        raise typer.Exit(1) from None


def _options(agents: int, degrade_after: float | None, recover_after: float | None) -> list[str]:
    options = ["--agents", str(agents)]
    for name, value in (("--degrade-after", degrade_after), ("--recover-after", recover_after)):
        if value is not None:
            options += [name, str(value)]
    return options


if __name__ == "__main__":
    typer.run(main)
