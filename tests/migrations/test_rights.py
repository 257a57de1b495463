"""The database roles, made by the SQL that administrators run, can do what their processes do and nothing else."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.errors import InsufficientPrivilege

from tests.support.database_roles import make_roles
from tests.support.servers import create_database, postgres_server
from warpfold import migrations
from warpfold.app.auth.access_tokens import Principal, Role
from warpfold.app.batches import accept as batches
from warpfold.app.batches import preparing
from warpfold.app.batches import transitions as of_batches
from warpfold.app.batches.accept import NewBatch
from warpfold.app.batches.preparing import Origin, Portion
from warpfold.app.config import Settings
from warpfold.app.db import BlockingDatabase
from warpfold.app.jobs.accept import Key
from warpfold.app.jobs.transitions import remove_old
from warpfold.app.quotas.quota import Limits
from warpfold.app.tables import metadata
from warpfold.contract.batches import BatchOptions
from warpfold.migrations.rights import FIXED, OWNER, RIGHTS, ROLES, SEEN, Rights
from warpfold.worker.embedded import EmbeddedPostgres

API, DISPATCHER, WORKER = ROLES


@dataclass(frozen=True)
class Roles:
    """A migrated database in which the roles are apart."""

    url: str

    def url_of(self, role: str) -> str:
        """The address as `role` has it: the server of tests asks for no password."""
        return self.url.replace("postgres@", f"{role}@", 1)

    def refused(self, role: str, statement: str) -> bool:
        """Whether Postgres refuses `statement` to `role` for want of a right; it is undone in any case."""
        with psycopg.connect(self.url_of(role)) as connection:
            try:
                connection.execute(sql.SQL(statement))
            except InsufficientPrivilege:
                return True
            finally:
                connection.rollback()
        return False


@pytest.fixture(scope="module")
def roles(cluster: Path) -> Iterator[Roles]:
    """On a server of its own, for roles belong to a server and not to a database."""
    with postgres_server(cluster) as server:
        url = create_database(server, "apart")
        make_roles(url)
        migrations.upgrade(url.replace("postgres@", f"{OWNER}@", 1))
        yield Roles(url)


def test_every_table_has_a_row_of_rights() -> None:
    """A new table is named in migrations/rights.py, with what each process does with it."""
    assert set(RIGHTS) == {*metadata.tables, "alembic_version"}
    for table, columns in FIXED.items():
        assert columns < set(metadata.tables[table].columns.keys())


@pytest.mark.parametrize("role", ROLES)
def test_no_role_at_work_changes_the_schema(roles: Roles, role: str) -> None:
    for statement in (
        "drop table jobs cascade",
        "truncate jobs cascade",
        "alter table jobs add column more int",
        "alter table tokens disable trigger all",
        "create table mine (id int)",
        "create temporary table mine (id int)",
        "create schema mine",
        "create role friend superuser",
        "copy jobs to program 'cat'",
        "update alembic_version set version_num = '0000'",
    ):
        assert roles.refused(role, statement), statement


@pytest.mark.parametrize("table", ["users", "tokens", "sessions", "webhook_secrets", "quotas", "datasets"])
def test_a_worker_sees_nothing_of_who_may_do_what(roles: Roles, table: str) -> None:
    assert roles.refused(WORKER, f"select * from {table}")  # noqa: S608
    assert roles.refused(WORKER, f"delete from {table}")  # noqa: S608


def test_only_the_api_reads_tokens(roles: Roles) -> None:
    assert not roles.refused(API, "select hash from tokens")
    assert roles.refused(DISPATCHER, "select hash from tokens")
    assert roles.refused(DISPATCHER, "select hash from sessions")


@pytest.mark.parametrize("role", ROLES)
def test_no_entry_of_the_audit_log_is_changed(roles: Roles, role: str) -> None:
    assert roles.refused(role, "update audit_log set actor = 'x'")
    assert roles.refused(role, "delete from audit_log") == (role != DISPATCHER)


@pytest.mark.parametrize("role", ROLES)
def test_nobody_changes_what_a_job_was_asked_to_do(roles: Roles, role: str) -> None:
    for column in ("spec = '{}'", "owner_id = 1", "kind = 'other'"):
        assert roles.refused(role, f"update jobs set {column}")  # noqa: S608
    assert not roles.refused(role, "update jobs set version = version + 1")


def test_workers_delete_no_jobs(roles: Roles) -> None:
    assert [roles.refused(role, "delete from jobs") for role in ROLES] == [False, False, True]
    assert roles.refused(WORKER, "insert into jobs (id, owner_id, kind) values (gen_random_uuid(), 1, 'reduce')")


@pytest.mark.parametrize("role", ROLES)
def test_the_rights_in_postgres_are_those_of_the_table_and_no_others(roles: Roles, role: str) -> None:
    with psycopg.connect(roles.url) as connection:
        for table, rights in RIGHTS.items():
            wanted = set(filter(None, rights.of(role).split(", ")))
            every = ("select", "insert", "update", "delete", "truncate", "references", "trigger")
            some_column = ({"update"} if table in FIXED else set()) | ({"select"} if (table, role) in SEEN else set())
            granted = {
                right
                for right in every
                if connection.execute(
                    "select has_any_column_privilege(%(role)s, %(table)s, %(right)s)"
                    if right in some_column
                    else "select has_table_privilege(%(role)s, %(table)s, %(right)s)",
                    {"role": role, "table": table, "right": right},
                ).fetchone()
                == (True,)
            }
            assert granted == wanted, table


def test_a_right_that_was_taken_back_goes_with_the_next_migration(roles: Roles) -> None:
    with psycopg.connect(roles.url) as connection:
        connection.execute(f"grant all on tokens to {WORKER}")
    assert not roles.refused(WORKER, "select * from tokens")
    migrations.upgrade(roles.url_of(OWNER))
    assert roles.refused(WORKER, "select * from tokens")


def test_a_new_column_of_jobs_may_be_updated_once_the_schema_is_migrated(roles: Roles) -> None:
    with psycopg.connect(roles.url_of(OWNER)) as connection:
        connection.execute("alter table jobs add column more int")
    try:
        assert roles.refused(WORKER, "update jobs set more = 1")
        migrations.upgrade(roles.url_of(OWNER))
        assert not roles.refused(WORKER, "update jobs set more = 1")
    finally:
        with psycopg.connect(roles.url_of(OWNER)) as connection:
            connection.execute("alter table jobs drop column more")


def test_without_roles_one_owner_does_it_all(shared_postgres: EmbeddedPostgres) -> None:
    """A server whose roles nobody made is migrated as ever."""
    migrations.upgrade(create_database(shared_postgres, "one_owner", template="template1"))


def test_rights_are_asked_for_by_the_names_in_postgres() -> None:
    rights = Rights(api="select", dispatcher="insert", worker="")
    assert [rights.of(role) for role in ROLES] == ["select", "insert", ""]
    text = (Path(__file__).parents[2] / "deploy" / "postgres" / "roles.sql").read_text()
    assert all(f"alter role {role} login" in text for role in (*ROLES, OWNER))


def _portion() -> Portion:
    """One checked spec, as the process for large bodies makes a row of it."""
    request = preparing.opened(
        b'{"specs": [{"kind": "reduce", "source": {"type": "values", "values": [1]}}]}', Settings()
    )
    origin = Origin(Principal(1, "ada", Role.USER), None, None)
    return preparing.prepared(request.pieces[0], request.options, origin, Settings())


def test_api_and_dispatcher_can_do_their_parts_with_batches(roles: Roles) -> None:
    with psycopg.connect(roles.url) as connection:
        user = "insert into users (name, role) values ('ada', 'user') returning id"
        [owner_id] = connection.execute(user).fetchone() or (0,)
    options = BatchOptions(name="rights")
    new = NewBatch(uuid4(), Origin(Principal(owner_id, "ada", Role.USER), None, None), options, 1, [_portion()])
    api, dispatcher = (BlockingDatabase(roles.url_of(role), application="test") for role in (API, DISPATCHER))
    key = Key("key", b"0" * 32)
    limits = Limits(queued=10, high_per_hour=1)
    assert api.run(batches.submit, new, key, limits).new
    assert not api.run(batches.submit, new, key, limits).new
    api.run(of_batches.cancel, new.id)
    assert dispatcher.run(of_batches.settle, 10) == 1
    assert dispatcher.run(remove_old, timedelta(seconds=-1)) == 1
    assert dispatcher.run(of_batches.remove_old, timedelta(seconds=-1), 10) == 1
    for database in (api, dispatcher):
        database.close()
