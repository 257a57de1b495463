"""What crashes and time leave in the folder of uploaded arrays, and what must not be touched."""

import json
import os
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import Connection, select, text
from sqlalchemy.exc import OperationalError

from warpfold.app.auth.access_tokens import create_token
from warpfold.app.datasets import repository, uses
from warpfold.app.datasets.repository import Contents
from warpfold.app.datasets.store import Store
from warpfold.app.datasets.sweep import sweep, tidy
from warpfold.app.db import BlockingDatabase
from warpfold.app.jobs.accept import accept
from warpfold.app.jobs.store import Job
from warpfold.app.jobs.transitions import request_cancel
from warpfold.app.tables.users import users

ID = "ab" * 32
LONG_AGO_S = 7200
EVER = timedelta(days=365)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "datasets")


@pytest.fixture
def ann(database: BlockingDatabase) -> int:
    database.run(create_token, "ann")
    return database.run(lambda connection: int(connection.execute(select(users.c.id)).scalar_one()))


def age(path: Path, seconds: float = LONG_AGO_S) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def put(store: Store, dataset_id: str = ID) -> Path:
    with store.incoming(1) as file:
        file.write(b"elements")
        file.flush()
        store.place(Path(file.name), dataset_id)
    age(store.path(dataset_id))
    return store.path(dataset_id)


def hold(connection: Connection, owner_id: int) -> None:
    repository.hold(connection, Contents(ID, "float32", (2,), 8), owner_id, "")


def let_three_days_pass(connection: Connection) -> None:
    connection.execute(text("update datasets set last_used_at = now() - interval '3 days'"))


def test_a_file_without_a_holder_is_removed(database: BlockingDatabase, store: Store) -> None:
    path = put(store)
    assert tidy(database, store, EVER) == 1
    assert not path.exists()


def test_a_file_that_somebody_holds_stays(database: BlockingDatabase, store: Store, ann: int) -> None:
    path = put(store)
    database.run(hold, ann)
    assert tidy(database, store, EVER) == 0
    assert path.exists()
    assert not database.run(sweep, store, ID)


def test_a_new_file_is_not_looked_at(database: BlockingDatabase, store: Store) -> None:
    age(put(store), 5)
    assert tidy(database, store, EVER) == 0


def test_what_no_job_needed_for_long_is_let_go(database: BlockingDatabase, store: Store, ann: int) -> None:
    path = put(store)
    database.run(hold, ann)
    database.run(let_three_days_pass)
    assert tidy(database, store, timedelta(days=4)) == 0
    assert tidy(database, store, timedelta(days=2)) == 1
    assert not path.exists()


def test_what_a_waiting_job_needs_is_never_let_go(database: BlockingDatabase, store: Store, ann: int) -> None:
    database.run(hold, ann)
    put(store)
    other = {"type": "values", "values": [1.0, 2.0], "dtype": "float64"}
    spec = {"kind": "reduce", "op": "dot", "source": other, "other": {"type": "dataset", "id": ID}}
    job_id = uuid4()
    new = Job.new(
        id=job_id,
        owner="ann",
        owner_id=ann,
        kind="reduce",
        priority=1,
        needs="any",
        timeout_s=9.0,
        spec=json.dumps(spec),
    )
    database.run(accept, new)
    database.run(uses.note, [ID], job=job_id)
    database.run(let_three_days_pass)
    assert tidy(database, store, timedelta(days=2)) == 0
    database.run(request_cancel, job_id)
    assert tidy(database, store, timedelta(days=2)) == 1


def test_a_job_that_needs_it_makes_it_young_again(database: BlockingDatabase, store: Store, ann: int) -> None:
    put(store)
    database.run(hold, ann)
    database.run(let_three_days_pass)
    assert database.run(repository.use, [ID, "cd" * 32]) == {"cd" * 32}
    assert tidy(database, store, timedelta(days=2)) == 0


def test_what_is_coming_in_stays_unless_nothing_came_for_long(database: BlockingDatabase, store: Store) -> None:
    with store.incoming(1) as file:
        half = Path(file.name)
        tidy(database, store, EVER)
        assert half.exists()
        age(half)
        tidy(database, store, EVER)
        assert not half.exists()


def test_what_a_killed_process_left_half_written_is_removed_at_once(store: Store, tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from warpfold.app.datasets.store import Store\n"
        "with Store(Path(sys.argv[1])).incoming(1) as file: print(file.name, flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "datasets")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        half = Path(writer.stdout.readline().strip())
        assert store.remove_abandoned(LONG_AGO_S) == 0, "it may still be coming in"
        writer.kill()
        writer.wait()
    assert half.exists()
    assert store.remove_abandoned(LONG_AGO_S) == 1
    assert not half.exists()


def test_an_upload_that_is_being_committed_is_waited_for(database: BlockingDatabase, store: Store, ann: int) -> None:
    path = put(store)

    def impatient_sweep(connection: Connection) -> None:
        connection.execute(text("set local lock_timeout = '100ms'"))
        sweep(connection, store, ID)

    def upload(connection: Connection) -> None:
        repository.lock(connection, ID)
        hold(connection, ann)
        # Another process tidies up meanwhile: it must not see the file without its row.
        with pytest.raises(OperationalError, match="lock timeout"):
            database.run(impatient_sweep)

    database.run(upload)
    assert path.exists()


def test_a_folder_that_is_not_there_is_empty(database: BlockingDatabase, store: Store) -> None:
    assert tidy(database, store, EVER) == 0
