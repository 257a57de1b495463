"""Postgres and Redis as docker-compose.yml starts them, by the programs of the embedded servers.

Their images cannot be had without a registry, so the entry point of Postgres' image is walked by hand: initdb with the
superuser's password, the database, then roles.sql.
"""

import os
import pwd
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.database_roles import PG_BIN, run_roles_sql
from tests.support.images.container import substituted
from tests.support.waiting import until
from warpfold.worker.embedded.redis import redis_program

_USER = pwd.getpwnam("nobody").pw_uid  # initdb wants one with a name


def secrets_of(service: Mapping[str, Any], secrets: Path, folder: Path) -> Path:
    """A folder with the secrets of one service, readable by its user, as Compose mounts them."""
    own = folder / "secrets"
    own.mkdir(parents=True)
    for name in service["secrets"]:
        shutil.copy(secrets / name, own / name)
        (own / name).chmod(0o644)
    return own


@contextmanager
def postgres(service: Mapping[str, Any], secrets: Path, folder: Path) -> Iterator[Path]:
    """A running Postgres at 127.0.0.1:5432; the folder of its secrets."""
    own = secrets_of(service, secrets, folder)
    data = folder / "data"
    data.mkdir()
    os.chown(data, _USER, _USER)
    initial = service["environment"]
    words = shlex.split(initial["POSTGRES_INITDB_ARGS"])
    _as_user(
        *(str(PG_BIN / "initdb"), "--pgdata", str(data), "--username", initial["POSTGRES_USER"]),
        *("--pwfile", str(own / "postgres_password"), "--auth-local=trust", *words),
    )
    command = [substituted(str(word)) for word in service["command"]]
    where = ["-D", str(data), "-h", "127.0.0.1", "-k", str(data)]
    process = _start(folder / "log", str(PG_BIN / command[0]), *command[1:], *where)
    try:
        local = f"postgresql://{initial['POSTGRES_USER']}@/{{}}?host={data}"
        until(lambda: _healthy(service, own))
        subprocess.run(
            [
                PG_BIN / "psql",
                "--quiet",
                "--command",
                f"create database {initial['POSTGRES_DB']}",
                local.format("postgres"),
            ],
            check=True,
        )
        done = run_roles_sql(local.format(initial["POSTGRES_DB"]), own)
        assert done.returncode == 0, done.stderr
        yield own
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def redis(service: Mapping[str, Any], secrets: Path, folder: Path) -> Iterator[Path]:
    """A running Redis at 127.0.0.1:6379; the folder of its secrets."""
    own = secrets_of(service, secrets, folder)
    command = [substituted(str(word)).replace("/run/secrets", str(own)) for word in service["command"]]
    data = folder / "data"
    data.mkdir()
    os.chown(data, _USER, _USER)
    process = _start(folder / "log", str(redis_program()), *command[1:], "--dir", str(data), "--bind", "127.0.0.1")
    try:
        until(lambda: _healthy(service, own))
        yield own
    finally:
        process.terminate()
        process.wait(30)


def _healthy(service: Mapping[str, Any], secrets: Path) -> bool:
    """The service's own health check. Its programs are those beside the servers."""
    kind, *words = service["healthcheck"]["test"]
    words = [substituted(word).replace("/run/secrets", str(secrets)) for word in words]
    path = os.pathsep.join((str(PG_BIN), str(redis_program().parent), os.environ["PATH"]))
    command = ["sh", "-c", *words] if kind == "CMD-SHELL" else words
    environment = {"PATH": path, "PGHOST": "127.0.0.1"}
    return subprocess.run(command, env=environment, capture_output=True, check=False).returncode == 0


def _start(log: Path, *words: str) -> "subprocess.Popen[bytes]":
    with log.open("ab") as output:
        return subprocess.Popen(
            words,
            stdout=output,
            stderr=output,
            user=_USER,
            group=_USER,
            extra_groups=[],
            cwd="/",
            env={"LANG": "C.UTF-8"},
        )


def _as_user(*words: str) -> None:
    subprocess.run(
        words,
        check=True,
        stdout=subprocess.DEVNULL,
        user=_USER,
        group=_USER,
        extra_groups=[],
        cwd="/",
        env={"LANG": "C.UTF-8"},
    )
