"""Commands that run a part of the server. Their code is in the server's own packages; this module only gives them their
names."""

import os
import sys
from collections.abc import Callable

import typer

from warpfold.client.cli.exits import Exit
from warpfold.client.packages import installed
from warpfold.kernels.extras import install

COMMANDS = {
    "serve": (
        "warpfold.worker.serve",
        "Start the whole service on this machine: servers, api, dispatcher, one worker per slot.",
    ),
    "migrate": ("warpfold.migrations", "Bring the database schema up to date."),
    "token": ("warpfold.app.auth", "Create, list and revoke access tokens."),
    "api": ("warpfold.app", "Run one api process."),
    "worker": ("warpfold.worker", "Run the worker of one slot."),
    "dispatcher": ("warpfold.worker.dispatcher", "Run the dispatcher."),
    "alive": (
        "warpfold.worker.alive",
        "Health check: does the api here answer, a dispatcher lead, a worker of this host beat?",
    ),
}
_PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}


def register_server_commands(app: typer.Typer) -> None:
    """Add `serve`, `migrate`, … to `app`; everything after the name goes to the module, `--help` included."""
    for name, (module, summary) in COMMANDS.items():
        app.command(name, help=summary, rich_help_panel="Server", context_settings=_PASS_ON, add_help_option=False)(
            _runner(name, module)
        )


def _runner(name: str, module: str) -> Callable[[typer.Context], None]:
    def run(context: typer.Context) -> None:
        if not server_installed():
            typer.echo(f"`warpfold {name}` needs the server: {install('embedded')}", err=True)
            raise typer.Exit(Exit.NOT_INSTALLED)
        # The server replaces this process: signals reach it directly, and its exit code is ours.
        os.execv(sys.executable, [sys.executable, "-P", "-m", module, *context.args])  # noqa: S606

    return run


def server_installed() -> bool:
    """Whether the packages of the server are installed, too."""
    return installed("fastapi")
