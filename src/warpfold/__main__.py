"""`warpfold`, and `python -m warpfold`: the command line.

A command of the server takes the place of this process before the client is imported, which takes a second.
"""

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from warpfold.kernels.machine.extras import installed

COMMANDS = {
    "serve": (
        "warpfold.worker.serve",
        "Start the whole service on this machine: servers, api, dispatcher, one worker per slot.",
    ),
    "backup": (
        "warpfold.worker.serve.backup",
        "Save the database and the files of a service with embedded servers, while it runs.",
    ),
    "restore": (
        "warpfold.worker.serve.restore",
        "Bring a backup back into the embedded servers of a folder.",
    ),
    "migrate": ("warpfold.migrations", "Bring the database schema up to date."),
    "token": ("warpfold.app.auth", "Create, list, rotate and remove access tokens, in the database of this machine."),
    "api": ("warpfold.app", "Run one api process."),
    "worker": ("warpfold.worker", "Run the worker of one slot."),
    "dispatcher": ("warpfold.worker.dispatcher", "Run the dispatcher."),
    "alive": (
        "warpfold.worker.alive",
        "Health check: does the api here answer, a dispatcher lead, a worker of this host beat?",
    ),
}
"""The commands of the server: the modules that run them, and what they do."""

ALSO_FROM_AFAR = frozenset({"token"})
"""Those that the client has, too, for a service elsewhere: the server's run where a service has its database here."""


def server_installed() -> bool:
    """Whether the packages of the server are installed, too."""
    return installed("fastapi")


def become(command: str, arguments: Sequence[str]) -> NoReturn:
    """Go on as a command of the server: signals reach it directly, and its exit code is that of this process."""
    module, _ = COMMANDS[command]
    os.execv(sys.executable, [sys.executable, "-P", "-m", module, *arguments])  # noqa: S606


def _database_is_here() -> bool:
    from warpfold.client.settings import Surroundings

    return Surroundings.of_process().names_database


def main() -> None:
    """Entry point of the `warpfold` script."""
    words = sys.argv[1:]
    if (
        words
        and words[0] in COMMANDS
        and server_installed()
        and (words[0] not in ALSO_FROM_AFAR or _database_is_here())
    ):
        become(words[0], words[1:])
    # Pydantic looks for plugins in every package that is installed, which takes 12 ms. Those of a service may matter.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from warpfold.client.cli import main as run

    run()


if __name__ == "__main__":
    main()
