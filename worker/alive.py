"""`python -m warpfold.worker.alive api|dispatcher|worker` says whether that part of the service is alive. Health checks
of containers run it. It exits with 0 if the part is alive, and else with 1 and a line that says why.
"""

import socket
import sys
from enum import StrEnum
from typing import Annotated

import httpx
import typer
from sqlalchemy import Connection, select

from warpfold.app.config import Settings, load_settings
from warpfold.app.db import DATABASE_LOST, BlockingDatabase
from warpfold.app.metrics.monitoring import somebody_leads
from warpfold.app.tables.jobs import lives, workers

_WITHIN_S = 3.0


cli = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


class Part(StrEnum):
    """The parts whose health can be asked for."""

    API = "api"
    DISPATCHER = "dispatcher"
    WORKER = "worker"


@cli.command()
def alive(
    part: Annotated[Part, typer.Argument(help="Which part of the service.")],
    url: Annotated[str, typer.Option(help="Where the api listens.")] = "http://127.0.0.1:8080",
) -> None:
    """Exit with 0 if the api here answers, some dispatcher leads (a hung one does not), or a worker of this host beats;
    with 1 if not."""
    trouble = _trouble_of_api(url) if part is Part.API else _trouble_in_database(load_settings(), part)
    if trouble:
        typer.echo(f"warpfold alive: {trouble}", err=True)
        sys.exit(1)


def _trouble_of_api(url: str) -> str | None:
    try:
        status = httpx.get(f"{url}/healthz", timeout=_WITHIN_S, trust_env=False).status_code
    except httpx.TransportError as error:
        return f"no answer from {url}: {error}"
    return None if status == 200 else f"{url} answers with {status}"


def _trouble_in_database(settings: Settings, part: Part) -> str | None:
    """A part that cannot reach Postgres is not at fault, and a restart would not mend it."""
    if not settings.database_url:
        return "set WARPFOLD_DATABASE_URL to the service's database"
    database = BlockingDatabase(settings.database_url, application="warpfold-alive")
    try:
        if part is Part.DISPATCHER:
            return None if database.step(somebody_leads) else "no dispatcher leads"
        host = socket.gethostname()[:64]
        return None if database.step(_beats, host) else f"no worker of {host} has reported in time"
    except DATABASE_LOST:
        return None
    finally:
        database.close()


def _beats(connection: Connection, host: str) -> bool:
    alive = select(workers.c.id).where(workers.c.host == host, lives())
    return bool(connection.execute(select(alive.exists())).scalar_one())


if __name__ == "__main__":
    cli(prog_name="warpfold alive")
