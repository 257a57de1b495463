import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, inspect
from sqlalchemy.pool import NullPool

from tests.support.servers import create_database
from warpfold import migrations
from warpfold.app.db import database_url as sqlalchemy_url
from warpfold.app.tables import metadata
from warpfold.worker.embedded import EmbeddedPostgres


def test_the_migrated_database_is_what_the_tables_say(database_url: str) -> None:
    engine = create_engine(sqlalchemy_url(database_url), poolclass=NullPool)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_server_default": True, "compare_type": True})
        assert compare_metadata(context, metadata) == []


def test_specs_are_stored_without_compression(database_url: str) -> None:
    """Compressing the digits of 1,000 values takes three times as long as writing them."""
    with psycopg.connect(database_url) as connection:
        storage = "select attstorage from pg_attribute where attrelid = 'jobs'::regclass and attname = 'spec'"
        assert connection.execute(storage).fetchone() == ("e",)


def test_upgrading_twice_changes_nothing(database_url: str) -> None:
    migrations.upgrade(database_url)


def test_processes_that_upgrade_together_take_turns(shared_postgres: EmbeddedPostgres) -> None:
    url = create_database(shared_postgres, "test_turns", template="template1")
    # Alembic keeps its context in module state, so one process is one upgrade: subprocesses, as in real life.
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(_upgrade_in_a_process, [url] * 3))
    engine = create_engine(sqlalchemy_url(url), poolclass=NullPool)
    with engine.connect() as connection:
        assert {"jobs", "measurements", "alembic_version"} <= set(inspect(connection).get_table_names())


def test_there_is_a_way_back(shared_postgres: EmbeddedPostgres) -> None:
    url = create_database(shared_postgres, "test_way_back")
    config = Config()
    config.set_main_option("script_location", "migrations")
    config.attributes["database_url"] = url
    command.downgrade(config, "base")
    engine = create_engine(sqlalchemy_url(url), poolclass=NullPool)
    with engine.connect() as connection:
        assert inspect(connection).get_table_names() == ["alembic_version"]
    migrations.upgrade(url)


def test_no_database_is_an_error() -> None:
    with pytest.raises(ValueError, match="database"):
        migrations.upgrade("")


def _upgrade_in_a_process(url: str) -> None:
    subprocess.run([sys.executable, "-c", "import sys, migrations; migrations.upgrade(sys.argv[1])", url], check=True)


def test_the_command_migrates_the_configured_database(shared_postgres: EmbeddedPostgres) -> None:
    url = create_database(shared_postgres, "test_command", template="template1")
    for address, code, printed in ((url, 0, "up to date"), (url, 0, "up to date"), ("", 1, "WARPFOLD_DATABASE_URL")):
        run = subprocess.run(
            [sys.executable, "-m", "warpfold.migrations"],
            env={**os.environ, "WARPFOLD_DATABASE_URL": address},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (run.returncode, printed in run.stdout + run.stderr) == (code, True)


def test_a_database_that_is_not_there_is_said_in_a_line() -> None:
    nowhere = {**os.environ, "WARPFOLD_DATABASE_URL": "postgresql://127.0.0.1:9/none"}
    words = [sys.executable, "-m", "warpfold.migrations"]
    done = subprocess.run(words, env=nowhere, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("warpfold migrate: the database cannot be used: connection failed: ")
    assert len(done.stderr.splitlines()) == 1


def test_a_schema_that_no_migration_knows_is_said(shared_postgres: EmbeddedPostgres) -> None:
    url = create_database(shared_postgres, "test_older")
    with psycopg.connect(url) as connection:
        connection.execute("update alembic_version set version_num = '0016'")
    with pytest.raises(migrations.UnknownSchema, match=r"before 2026-11-23.*upgrade\.md.*'0016'"):
        migrations.upgrade(url)


def test_datasets_of_waiting_jobs_are_found_after_the_upgrade(shared_postgres: EmbeddedPostgres) -> None:
    url = create_database(shared_postgres, "test_uses_before")
    config = Config()
    config.set_main_option("script_location", "migrations")
    config.attributes["database_url"] = url
    command.downgrade(config, "0043")
    spec = json.dumps({"source": {"type": "dataset", "id": "ab" * 32}, "values": [-0.0]})
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("insert into users (name, role) values ('ann', 'user')")
        job = connection.execute(
            "insert into jobs (id, owner_id, kind, priority, needs, timeout_s, spec) values "
            "(gen_random_uuid(), 1, 'reduce', 1, 'any', 60, %s) returning id",
            [spec],
        ).fetchone()
    migrations.upgrade(url)
    with psycopg.connect(url) as connection:
        uses = connection.execute("select dataset_id, job_id from dataset_uses").fetchall()
    assert job is not None
    assert uses == [("ab" * 32, job[0])]
