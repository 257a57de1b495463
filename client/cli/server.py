"""Names the commands that run a part of the server. Their code is in the server's own packages. `warpfold.__main__`
runs them where nothing stands before the command."""

from collections.abc import Callable

import typer

from warpfold.__main__ import ALSO_FROM_AFAR, COMMANDS, become, server_installed
from warpfold.client.cli.exits import Exit
from warpfold.kernels.machine.extras import install

_PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}


def register_server_commands(app: typer.Typer) -> None:
    """Add `serve`, `migrate`, … to `app`; everything after the name goes to the module, `--help` included."""
    for name, (_, summary) in COMMANDS.items():
        if name in ALSO_FROM_AFAR:
            continue
        app.command(name, help=summary, rich_help_panel="Server", context_settings=_PASS_ON, add_help_option=False)(
            _runner(name)
        )


def _runner(name: str) -> Callable[[typer.Context], None]:
    def run(context: typer.Context) -> None:
        if not server_installed():
            typer.echo(f"`warpfold {name}` needs the server: {install('embedded')}", err=True)
            raise typer.Exit(Exit.NOT_INSTALLED)
        become(name, context.args)

    return run
