"""Prepares the start of the processes: the data folder, the servers, the schema and the first token."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

import structlog
from sqlalchemy.exc import OperationalError
from structlog.typing import FilteringBoundLogger

from warpfold.app.auth.access_tokens import Role, any_admin, create_token
from warpfold.app.config import DATABASE_NOTE, Settings
from warpfold.app.db import BlockingDatabase, first_line
from warpfold.worker.embedded.postgres import EmbeddedPostgres
from warpfold.worker.embedded.redis import EmbeddedRedis

log: FilteringBoundLogger = structlog.get_logger()

LOCK_FILE = "serve.lock"
TOKEN_FILE = "token"  # noqa: S105 (a file name)
_THROUGH = stat.S_IXGRP | stat.S_IXOTH
URL_FILE = "url"
"""The file in which the command line finds the address of the service that runs in its folder."""


@dataclass(frozen=True, slots=True)
class Servers:
    """The addresses of Postgres and Redis, and which of the two are embedded."""

    database_url: str
    redis_url: str
    postgres: EmbeddedPostgres | None
    redis: EmbeddedRedis | None

    def revive(self) -> list[str]:
        """Start again each embedded server that died, and return the names of those servers."""
        revived = []
        for name, server in (("postgres", self.postgres), ("redis", self.redis)):
            if server is not None and not server.is_running():
                server.start()
                revived.append(name)
        return revived

    def logs(self) -> list[Path]:
        """The logs of the embedded servers."""
        return [server.log for server in (self.postgres, self.redis) if server is not None]

    def stop(self) -> None:
        """Stop Redis first, then Postgres, which holds the truth."""
        for server in (self.redis, self.postgres):
            if server is not None:
                server.stop()


def prepare_data_dir(settings: Settings) -> Path:
    """Make the folders of `settings.data_dir`, which only their owner can read. A folder that exists already is closed
    to all others."""
    root = settings.data_dir.expanduser().resolve()
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    _close_to_others(root, but_for_passing=os.getuid() == 0 and not settings.database_url)
    for name in ("logs", "locks", "cache"):
        folder = root / name
        folder.mkdir(mode=0o700, exist_ok=True)
        _close_to_others(folder)
    for log in (root / "logs").iterdir():
        _close_to_others(log)
    return root


def _close_to_others(path: Path, *, but_for_passing: bool = False) -> None:
    """Take all rights from everybody but the owner. An embedded Postgres that root starts runs as another user, who
    must be able to pass through to a folder of its own."""
    status = path.stat()
    mode = stat.S_IMODE(status.st_mode)
    through = mode & _THROUGH if but_for_passing else 0
    if status.st_uid == os.getuid() and mode != (mode & stat.S_IRWXU) | through:
        path.chmod((mode & stat.S_IRWXU) | through)


def start_servers(settings: Settings, root: Path) -> Servers:
    """The configured servers, or embedded servers under `root`. Servers that a killed `warpfold serve` left running
    there are taken over, and stopped at the end."""
    postgres = None if settings.database_url else EmbeddedPostgres(root / "postgres")
    postgres_pid = None if postgres is None else postgres.pid
    database_url = settings.database_url if postgres is None else postgres.start()
    redis = None if settings.redis_url else EmbeddedRedis(root / "redis")
    for name, left in (("postgres", postgres_pid), ("redis", None if redis is None else redis.pid)):
        if left is not None:
            log.warning("adopted: an earlier serve was killed and left it running", process=name, pid=left)
    redis_url = settings.redis_url if redis is None else redis.start()
    return Servers(database_url, redis_url, postgres, redis)


def write_secret(path: Path, secret: str) -> None:
    """Write `secret` to the new file `path`, which only its owner can read from the first byte on."""
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_text(secret + "\n")


def prepare_database(database_url: str, root: Path) -> str | None:
    """Bring the schema up to date, and write the note of the database and the first token into the folder `root`.
    Returns why the database cannot be used, None if it can be."""
    from warpfold import migrations  # nothing else of `serve` needs Alembic

    try:
        migrations.upgrade(database_url)
        write_secret(root / DATABASE_NOTE, database_url)
        token = _first_token(database_url, exists=(root / TOKEN_FILE).exists())
    except OperationalError as error:
        return f"warpfold serve: the database cannot be used: {first_line(error)}"
    except migrations.UnknownSchema as error:
        return f"warpfold serve: {error}"
    if token is not None:
        write_secret(root / TOKEN_FILE, token)
    return None


def _first_token(database_url: str, *, exists: bool) -> str | None:
    """Make a token for the user "admin", if no admin has a token or the file of the first token is gone."""
    database = BlockingDatabase(database_url, application="warpfold-serve")
    try:
        if exists and database.run(any_admin):
            return None
        return database.run(create_token, "admin", Role.ADMIN, "warpfold serve")
    finally:
        database.close()
