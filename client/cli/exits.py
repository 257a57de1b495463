"""How a command of `warpfold` ends; docs/cli.md tells the exit codes to users."""

from enum import IntEnum

import typer


class Exit(IntEnum):
    """The exit code of a command."""

    OK = 0
    FAILED = 1  # the job failed or was cancelled; the doctor found something broken
    USAGE = 2  # the command was not understood, or a file cannot be read or written
    UNREACHABLE = 3  # no service is known, its address is not valid, it does not answer, or it is out of order
    REFUSED = 4  # the service said no: a wrong token, a field that is wrong, a job that is not there
    TIMED_OUT = 5  # waiting was given up; the job goes on
    NOT_INSTALLED = 6  # the command needs packages that are not installed
    INTERRUPTED = 130  # by Ctrl-C


def fail(message: str, code: Exit) -> typer.Exit:
    """Print the error to standard error, and return the exception that the caller is to raise."""
    typer.echo(f"warpfold: {message}", err=True)
    return typer.Exit(code)
