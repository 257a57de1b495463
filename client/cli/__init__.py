"""The `warpfold` command line."""

from importlib.metadata import version
from typing import Annotated

import typer

from client.cli.server import register_server_commands


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"warpfold {version('warpfold')}")
        raise typer.Exit


def build() -> typer.Typer:
    """The command tree."""
    app = typer.Typer(
        name="warpfold",
        help="Exact reductions and reduction benchmarks on a shared GPU server.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
    )

    @app.callback()
    def options(
        version: Annotated[
            bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
        ] = False,
    ) -> None:
        """Options of the command itself."""

    register_server_commands(app)
    return app


def main() -> None:
    """Entry point of the `warpfold` script."""
    build()()
