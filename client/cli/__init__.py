"""The `warpfold` command line."""

import sys
from contextlib import suppress
from typing import Annotated

import typer

from warpfold.client.cli.commands import Commands
from warpfold.client.cli.exits import Exit, fail
from warpfold.client.cli.server import register_server_commands
from warpfold.client.cli.session import Session

_WIDEST = 120
"""Columns beyond which no line of help is longer."""


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"warpfold {version('warpfold')}")
        raise typer.Exit


def build() -> typer.Typer:
    """The command tree."""
    app = typer.Typer(
        name="warpfold",
        cls=Commands,
        help="Exact reductions and reduction benchmarks on a shared GPU server.",
        epilog="Exit codes: 0 done; 1 the job failed; 2 usage; 3 no service answers; 4 refused; 5 waited too long; "
        "6 not installed.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        # Rich help cuts the names of options in a narrow terminal, and its imports take longer than those of a command.
        rich_markup_mode=None,
    )

    @app.callback(context_settings={"max_content_width": _WIDEST})
    def options(
        context: typer.Context,
        url: Annotated[
            str | None,
            typer.Option(help="The service's address.", show_default="WARPFOLD_URL, this folder's, or the login"),
        ] = None,
        config: Annotated[
            str | None,
            typer.Option(
                metavar="FILE",
                help="The file of settings.",
                show_default="WARPFOLD_CONFIG, warpfold.toml here, or in your folder of settings",
            ),
        ] = None,
        patience: Annotated[
            float, typer.Option(min=0, metavar="SECONDS", help="Repeat so long what fails because it is busy.")
        ] = 10.0,
        version: Annotated[
            bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
        ] = False,
    ) -> None:
        """Options of the command itself."""
        if config is not None:
            from warpfold.client.settings import use_settings_file

            use_settings_file(config)
        context.obj = Session(url, patience)

    register_server_commands(app)
    return app


def main() -> None:
    """Entry point of the `warpfold` script."""
    try:
        try:
            build()()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # the reader of the output has closed the pipe
        _drop_output()
        sys.exit(Exit.FAILED)
    except OSError as error:  # for instance a full disk, or a file that may not be read or written
        _drop_output()
        named = f"{error.filename}: " if error.filename else ""
        sys.exit(fail(f"{named}{error.strerror or error}", Exit.USAGE).exit_code)


def _drop_output() -> None:
    """Close standard output if it cannot be written: Python would try again when it ends, and complain."""
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError):
            sys.stdout.close()
