"""The `warpfold` command line."""

import inspect
import shutil
import sys
from contextlib import suppress
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from warpfold.client.cli import (
    access,
    batches,
    catalogue,
    datasets,
    doctor,
    inspecting,
    jobs,
    merging,
    reducing,
    results,
    submitting,
)
from warpfold.client.cli.exits import Exit
from warpfold.client.cli.server import register_server_commands
from warpfold.client.cli.session import Session, fail

_COLUMNS = 80
"""A terminal of at least this width shows help in columns."""


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"warpfold {version('warpfold')}")
        raise typer.Exit


def build() -> typer.Typer:
    """The command tree."""
    app = typer.Typer(
        name="warpfold",
        cls=_Group,
        help="Exact reductions and reduction benchmarks on a shared GPU server.",
        epilog="Exit codes: 0 done; 1 the job failed; 2 usage; 3 no service answers; 4 refused; 5 waited too long; "
        "6 not installed.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        # The columns of rich help cut the names of options in a narrow terminal; plain text does not.
        rich_markup_mode="rich" if shutil.get_terminal_size().columns >= _COLUMNS else None,
    )

    @app.callback()
    def options(
        context: typer.Context,
        url: Annotated[
            str | None,
            typer.Option(help="The service's address.", show_default="WARPFOLD_URL, this folder's, or the login"),
        ] = None,
        patience: Annotated[
            float, typer.Option(min=0, metavar="SECONDS", help="Repeat so long what fails because it is busy.")
        ] = 10.0,
        version: Annotated[
            bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
        ] = False,
    ) -> None:
        """Options of the command itself."""
        context.obj = Session(url, patience)

    for group in (
        reducing,
        merging,
        inspecting,
        submitting,
        jobs,
        batches,
        results,
        datasets,
        catalogue,
        access,
    ):
        group.register(app)
    doctor.register(app)
    register_server_commands(app)
    _let_help_flow(app)
    return app


class _Plain:
    """Shows no type beside a flag, because a flag takes no value."""

    def get_params(self, context: Any) -> list[Any]:
        params: list[Any] = super().get_params(context)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False) and param.metavar is None:
                param.metavar = ""
        return params


class _Command(_Plain, TyperCommand):
    pass


class _Group(_Plain, TyperGroup):
    pass


def _let_help_flow(app: typer.Typer) -> None:
    """Give each command the help of its docstring with the lines of a paragraph joined: Rich would break the lines of
    a terminal where those of the source end, too."""
    for group in app.registered_groups:
        assert group.typer_instance is not None, "a group is added with its commands"
        group.cls = _Group
        _let_help_flow(group.typer_instance)
    for command in app.registered_commands:
        command.cls = _Command
        text = inspect.cleandoc(command.help or inspect.getdoc(command.callback) or "")
        command.help = "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


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
