"""The secrets and the roles of an installation, made by its scripts, on a real Postgres and a real Redis."""

import hashlib
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
import redis
import yaml

from tests.support.database_roles import make_roles, make_secrets, run_roles_sql
from tests.support.servers import Servers, create_database, folder, own_servers
from warpfold import migrations
from warpfold.app.config import Settings
from warpfold.app.jobs.queue import HandOver
from warpfold.migrations.rights import OWNER, ROLES
from warpfold.worker.doctor.servers import look_at_servers
from warpfold.worker.embedded.redis import redis_program
from warpfold.worker.queue import AttemptQueues, connect

ROOT = Path(__file__).parents[2]


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    made = tmp_path / "secrets"
    make_secrets(made)
    return made


def test_every_role_gets_a_password_of_its_own(secrets: Path) -> None:
    passwords = [(secrets / "postgres_password").read_text(), (secrets / "redis_password").read_text()]
    for role in (*ROLES, OWNER):
        name = role.removeprefix("warpfold_")
        url = (secrets / f"{name}_database_url").read_text()
        match = re.fullmatch(rf"postgresql://{role}:([0-9a-f]{{48}})@postgres:5432/warpfold", url)
        assert match is not None, url
        passwords.append(match[1])
    assert len(set(passwords)) == 6
    assert (secrets / "redis_url").read_text() == f"redis://:{passwords[1]}@redis:6379/0"
    assert hashlib.sha256(passwords[1].encode()).hexdigest() in (secrets / "redis.acl").read_text()
    assert secrets.stat().st_mode & 0o777 == 0o700
    declared = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["secrets"]
    assert {path.name for path in secrets.iterdir()} == set(declared)


def test_a_secret_that_is_there_stays_and_one_that_is_missing_is_made(secrets: Path) -> None:
    before = {path.name: path.read_text() for path in secrets.iterdir()}
    assert make_secrets(secrets) == ""
    (secrets / "worker_database_url").unlink()
    assert make_secrets(secrets, POSTGRES="db:6432") == f"made {secrets}/worker_database_url\n"
    after = {path.name: path.read_text() for path in secrets.iterdir()}
    assert after.pop("worker_database_url").endswith("@db:6432/warpfold")
    before.pop("worker_database_url")
    assert after == before


@pytest.fixture(scope="module")
def servers(cluster: Path) -> Iterator[Servers]:
    with own_servers(cluster) as own:
        yield own


def test_roles_have_hashed_passwords_and_none_of_the_rights_of_a_superuser(servers: Servers) -> None:
    make_roles(create_database(servers.postgres, "passwords"))
    with psycopg.connect(servers.postgres.url) as connection:
        rows = connection.execute(
            "select rolname, rolpassword like 'SCRAM-SHA-256$%',"
            " rolsuper or rolcreatedb or rolcreaterole or rolreplication or rolbypassrls"
            " from pg_authid where rolname like 'warpfold%' order by 1"
        ).fetchall()
    assert rows == [(role, True, False) for role in sorted((*ROLES, OWNER))]


def test_an_installation_from_before_changes_over_and_can_be_changed_over_again(servers: Servers) -> None:
    """One superuser owned its tables. Their rows, and what depends on them, stay."""
    url = create_database(servers.postgres, "before", template="template1")
    migrations.upgrade(url)
    with psycopg.connect(url) as connection:
        connection.execute("insert into users (name, role) values ('ada', 'admin')")
    for _ in range(2):
        make_roles(url)
    owner = url.replace("postgres@", f"{OWNER}@", 1)
    migrations.upgrade(owner)
    with psycopg.connect(owner) as connection:
        owners = connection.execute("select distinct tableowner from pg_tables where schemaname = 'public'").fetchall()
        assert owners == [(OWNER,)]
        connection.execute("alter table users add column more int")
    with psycopg.connect(url.replace("postgres@", "warpfold_api@", 1)) as connection:
        assert connection.execute("select name from users").fetchall() == [("ada",)]
        connection.execute("insert into users (name, role) values ('bob', 'user')")


def test_without_the_secrets_of_all_roles_nothing_is_made(servers: Servers, secrets: Path) -> None:
    url = create_database(servers.postgres, "unsecret", template="template1")
    (secrets / "worker_database_url").unlink()
    done = run_roles_sql(url, secrets)
    assert done.returncode != 0
    assert "lacks an address of a role" in done.stderr


@pytest.fixture
def guarded(secrets: Path) -> Iterator[str]:
    """The address of a Redis that was started by the compose file's command, with its password."""
    command = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["redis"]["command"]
    words = [str(word).replace("/run/secrets", str(secrets)) for word in command[1:]]
    with folder() as data:
        place = data / "redis.sock"
        more = ("--port", "0", "--unixsocket", str(place), "--dir", str(data), "--logfile", str(data / "log"))
        process = subprocess.Popen([str(redis_program()), *words, *more])
        try:
            _until_listening(place)
            yield f"unix://:{(secrets / 'redis_password').read_text()}@{place}?db=0"
        finally:
            process.terminate()
            process.wait(30)


def _until_listening(place: Path) -> None:
    give_up = time.monotonic() + 60
    while True:
        with closing(socket.socket(socket.AF_UNIX)) as probe:
            if probe.connect_ex(str(place)) == 0:
                return
        assert time.monotonic() < give_up
        time.sleep(0.01)


def test_redis_serves_nobody_without_the_password(guarded: str) -> None:
    stranger = redis.Redis.from_url(re.sub(r":[0-9a-f]{48}@", "", guarded))
    with stranger as client, pytest.raises(redis.AuthenticationError):
        client.ping()


def test_redis_can_neither_be_wiped_nor_managed_with_it(guarded: str) -> None:
    with redis.Redis.from_url(guarded) as client:
        for words in (("FLUSHALL",), ("SHUTDOWN",), ("CONFIG", "SET", "dir", "/"), ("KEYS", "*"), ("ACL", "LIST")):
            with pytest.raises(redis.exceptions.NoPermissionError):
                client.execute_command(*words)


def test_queues_work_with_it_and_the_doctor_finds_it_well(guarded: str, secrets: Path) -> None:
    with connect(guarded, answer_within_s=60.0) as client:
        mail = AttemptQueues(client)
        message = HandOver(uuid4(), 1, "here:cpu")
        mail.send([message])
        assert len(mail.waiting("here:cpu")) == 1
        mail.discard([message])
        assert len(mail.waiting("here:cpu")) == 0
    findings = list(look_at_servers(Settings(redis_url=guarded)))
    assert [finding.verdict for finding in findings if finding.part == "redis"] == ["ok"]
