"""Offer the ``demo`` command: a fleet of ticket agents, scored live."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from reach_otel.cli import console
from reach_otel.errors import SettingsError

if TYPE_CHECKING:
    from reach_otel.settings import PortRange


def register(app: typer.Typer) -> None:
    """Add ``demo`` to the command line."""
    app.command()(demo)


def demo(
    agents: Annotated[int, typer.Option(min=1, max=64, help="How many agents work at the same time.")] = 4,
    duration: Annotated[
        float | None, typer.Option(min=0, help="End after so many seconds, not only at Ctrl-C.")
    ] = None,
    degrade_after: Annotated[
        float | None, typer.Option(min=0, help="Let agents get worse after so many seconds.")
    ] = None,
    recover_after: Annotated[float | None, typer.Option(min=0, help="Let them get better again after so many.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed makes the agents do the same things.")] = 0,
    metrics_port: Annotated[
        str, typer.Option(help="Serve /metrics on this port, or the first free one of a range; none: do not.")
    ] = "9464-9479",
    page_port: Annotated[
        str, typer.Option(help="Serve the live page on this port, or the first free one of a range; none: do not.")
    ] = "8321-8336",
    plain: Annotated[bool, typer.Option("--plain", help="Print lines instead of the live view.")] = False,
    endpoint: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Send the spans to this Collector or service (OTLP/HTTP); score nothing here."
        ),
    ] = None,
    pace: Annotated[
        float, typer.Option(min=0.01, help="How long tools and models take, times the usual; 0.5: twice as fast.")
    ] = 1.0,
) -> None:
    """Watch a small fleet of ticket agents, good ones and bad ones, being scored live.

    The agents follow rules and call tools on a real SQLite database; no model and no network is needed. They are
    instrumented by one call, like any agent of yours. The same runs are on a live page, whose address is printed.
    Without a terminal, lines are printed.

    With --endpoint the agents only work and send their spans: lines say what they do, and the scores are where the
    spans go to. Spans that do not arrive are told of at the end, with exit code 1.
    """
    # Imported here and not above: the other commands must not pay for OpenTelemetry's SDK and SQLite.
    from reach_otel.demo.fleet import Plan  # noqa: PLC0415
    from reach_otel.demo.show import show  # noqa: PLC0415

    plan = Plan(
        agents=agents, seed=seed, degrade_after_seconds=degrade_after, recover_after_seconds=recover_after, pace=pace
    )
    terminal = console.out()
    if endpoint is not None:
        from reach_otel.demo.send import send  # noqa: PLC0415

        if not send(plan, terminal, endpoint=endpoint, duration_seconds=duration):
            raise typer.Exit(1)
        return
    show(
        plan,
        terminal,
        duration_seconds=duration,
        metrics_port=metrics_port,
        plain=plain or not terminal.is_terminal,
        page_ports=_ports(page_port),
    )


def _ports(text: str) -> PortRange | None:
    from reach_otel.settings.parse import ports  # noqa: PLC0415

    try:
        return ports(text)
    except ValueError as error:
        raise SettingsError(f"--page-port: found {text!r}, want {error}") from None
