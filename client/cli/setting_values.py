"""The command that shows settings: settings."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import typer

from warpfold.__main__ import server_installed
from warpfold.client.cli import output
from warpfold.client.cli.exits import Exit, fail
from warpfold.client.cli.output import Json
from warpfold.client.cli.session import Session
from warpfold.client.errors import NotConfigured
from warpfold.client.settings import find_target
from warpfold.kernels.machine.extras import install


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command(
        rich_help_panel="Server", epilog="Example: warpfold settings --json | jq 'select(.origin != \"default\")'"
    )(settings)


def settings(context: typer.Context, as_json: Json = False) -> None:
    """Show every setting, its value, and where the value comes from: a variable, a file, or its default.

    Secrets are masked.
    """
    session: Session = context.obj
    lines = [*_of_clients(session.url), *(_of_the_server() if server_installed() else ())]
    if as_json:
        output.lines(lines)
    elif lines:
        rows = [(line["setting"], _shown(line["value"]), line["origin"]) for line in lines]
        output.table(("setting", "value", "from"), rows, fold="value")
    if not server_installed():
        output.say(f"the settings of the server need its packages: {install('embedded')}")


def _of_clients(url: str | None) -> Iterator[Mapping[str, Any]]:
    """The address of the service and the token, as a command of this moment would take them."""
    try:
        target = find_target(url)
    except NotConfigured as error:
        output.say(f"warpfold: {error}")
        return
    yield {"setting": "url", "value": target.url, "origin": target.origin}
    yield {"setting": "token", "value": "***", "origin": target.origin}


def _of_the_server() -> Iterator[Mapping[str, Any]]:
    """The settings of the server, which a process with its packages reads: this one has none of them."""
    command = [sys.executable, "-P", "-m", "warpfold.app.shown_settings"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    for sentence in done.stderr.splitlines():
        output.say(sentence)
    if done.returncode:
        raise fail("no setting is shown while one is wrong", Exit.USAGE)
    yield from map(json.loads, done.stdout.splitlines())


def _shown(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value))
    return "" if value is None else str(value)
