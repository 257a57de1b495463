"""Real Postgres and Redis for tests, with the means to kill and restart them."""

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

from warpfold import migrations
from warpfold.worker.embedded import EmbeddedPostgres, EmbeddedRedis, EmbeddedServer

TEMPLATE = "warpfold_template"

# A test's data need not survive the machine, and the machine is shared. What was committed must survive the server's
# death, though: some tests kill it. So commits are written (synchronous_commit stays on), but not flushed to the disk.
_FAST = {
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
    "max_connections": "200",
    "autovacuum": "off",
}

_DISK, _MEMORY = Path("/tmp"), Path("/dev/shm")  # noqa: S108 (what is made there is made by mkdtemp)
_ROOM = 4 << 30
"""Bytes that must be free in memory: several times what the servers of all processes of a run hold at once."""


def kill(server: EmbeddedServer) -> None:
    """As `kill -9` does: no warning, no farewell. `server.start()` brings it back."""
    pid = server.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    while server.is_running():
        time.sleep(0.005)


def restart(server: EmbeddedServer) -> None:
    """An orderly stop, which closes every connection, and a start on the same data and address."""
    server.stop()
    server.start()


@contextmanager
def folder() -> Iterator[Path]:
    """A folder of a short name that other users may traverse: Postgres does not run as root.

    It is in memory where there is room. Each test has a database of some hundred files, and a disk's file system spends
    more on making and removing them than Postgres computes.
    """
    path = Path(tempfile.mkdtemp(prefix="warpfold-tests-", dir=_MEMORY if _has_room(_MEMORY) else _DISK))
    path.chmod(0o711)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _has_room(place: Path) -> bool:
    return place.is_dir() and os.access(place, os.W_OK) and shutil.disk_usage(place).free >= _ROOM


@contextmanager
def migrated_cluster() -> Iterator[Path]:
    """The files of a stopped Postgres that holds the migrated template database. To copy them takes a fifth of the
    computing that makes them, and about forty tests have a server of their own."""
    with folder() as path:
        server = EmbeddedPostgres(path / "pg", _FAST)
        server.start()
        try:
            migrations.upgrade(create_database(server, TEMPLATE, template="template1"))
        finally:
            server.stop()
        yield path / "pg"


@contextmanager
def postgres_server(cluster: Path) -> Iterator[EmbeddedPostgres]:
    """A running Postgres on a copy of `cluster`."""
    with folder() as path:
        subprocess.run(["cp", "-a", cluster, path / "pg"], check=True)  # with the owner, who is not root
        server = EmbeddedPostgres(path / "pg", _FAST)
        server.start()
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def redis_server() -> Iterator[EmbeddedRedis]:
    """A running, empty Redis."""
    with folder() as path:
        server = EmbeddedRedis(path / "redis")
        server.start()
        try:
            yield server
        finally:
            server.stop()


def create_database(server: EmbeddedPostgres, name: str, template: str = TEMPLATE) -> str:
    """A new database on `server`; its url. The template's files are copied: to log their pages takes twice as long."""
    with _administrator(server) as connection:
        _create(connection, name, template)
    return _url(server, name)


@contextmanager
def fresh_database(server: EmbeddedPostgres) -> Iterator[str]:
    """The url of a migrated, empty database, which is dropped at the end whoever is still connected."""
    with _administrator(server) as connection, created_database(server, connection) as url:
        yield url


@contextmanager
def created_database(server: EmbeddedPostgres, connection: psycopg.Connection) -> Iterator[str]:
    """The same, by a connection to the database `postgres` of the server that commits every statement. To connect takes
    as long as to drop a database."""
    name = f"test_{secrets.token_hex(6)}"
    _create(connection, name, TEMPLATE)
    try:
        yield _url(server, name)
    finally:
        if server.is_running():
            connection.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


def _administrator(server: EmbeddedPostgres) -> psycopg.Connection:
    return psycopg.connect(server.url, autocommit=True)


def _create(connection: psycopg.Connection, name: str, template: str) -> None:
    copied = sql.SQL("create database {} template {} strategy file_copy")
    connection.execute(copied.format(sql.Identifier(name), sql.Identifier(template)))


def _url(server: EmbeddedPostgres, database: str) -> str:
    return server.url.replace("@/postgres?", f"@/{database}?")


@dataclass(frozen=True)
class Servers:
    """A Postgres and a Redis that one test has for itself and may kill."""

    postgres: EmbeddedPostgres
    redis: EmbeddedRedis
    database_url: str

    @property
    def redis_url(self) -> str:
        return self.redis.url


@contextmanager
def own_servers(cluster: Path) -> Iterator[Servers]:
    """Servers for a test that breaks them; Postgres begins with a copy of `cluster`."""
    with postgres_server(cluster) as postgres, redis_server() as redis:
        yield Servers(postgres, redis, create_database(postgres, "warpfold"))
