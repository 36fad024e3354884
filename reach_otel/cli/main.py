"""Collect the commands of ``reach-otel`` and turn errors into one clear message."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperGroup

from reach_otel.cli import console
from reach_otel.errors import ReachError

if TYPE_CHECKING:
    from types import ModuleType

COMMANDS: Final = ("demo", "serve", "watch", "check", "graph", "replay")
"""Modules beside this one with a ``register(app)``; in the order in which ``--help`` lists them."""

EXIT_INPUT: Final = 2
"""Exit code for wrong input: a task file, a setting, an option, a file that cannot be read."""

_HELP = "Show how far LLM agents really get, where they stop, and why: live reach scores from OpenTelemetry spans."


class Commands(TyperGroup):
    """Turn an error of this package into one message on standard error and exit code 2."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except ReachError as error:
            console.fail(str(error))
            raise typer.Exit(EXIT_INPUT) from None


def _show_version(wanted: bool) -> None:
    if wanted:
        from reach_otel.version import UNKNOWN, version  # noqa: PLC0415 - only when asked for

        found = version()
        typer.echo(f"reach-otel {'(run from a checkout, not installed)' if found == UNKNOWN else found}")
        raise typer.Exit


def build() -> typer.Typer:
    """Make the command-line application with all commands registered."""
    app = typer.Typer(
        name="reach-otel",
        cls=Commands,
        help=_HELP,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def reach_otel(
        version: Annotated[
            bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_show_version)
        ] = False,
    ) -> None:
        pass

    for name in COMMANDS:
        module: ModuleType = import_module(f"reach_otel.cli.{name}")
        module.register(app)
    return app


app = build()


def main() -> None:
    """Run the command line; the entry point ``reach-otel``."""
    app(prog_name="reach-otel")


if __name__ == "__main__":
    main()
