"""The message to clients that wait for the end of a job agrees with the row."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from sqlalchemy import Connection

from tests.support.api import THREE_VALUES, Api
from tests.support.ledger import Ledger
from warpfold.app.db import ENDED, OUTCOME, BlockingDatabase, conninfo
from warpfold.app.jobs import leases, outcome, store
from warpfold.app.jobs.attempt import Lease, Success
from warpfold.app.jobs.store import Job
from warpfold.contract.states import Reason

WORKER = "here:cpu"
SECRET = uuid4()
RESULT: Mapping[str, Any] = {"value": 1.5, "hex": "0x1.8p+0", "text": 'a "quote", ä line\nand \\ another'}

Heard = Callable[[], list[tuple[str, str]]]


@pytest.fixture
def heard(database_url: str) -> Iterator[Heard]:
    """The notifications of outcomes and ends since the last call: channel and message."""
    with psycopg.connect(conninfo(database_url), autocommit=True) as connection:
        for channel in (OUTCOME, ENDED):
            connection.execute(f"listen {channel}")

        def heard() -> list[tuple[str, str]]:
            connection.execute("select pg_notify(%s, 'last')", (ENDED,))  # after all that was committed before
            messages: list[tuple[str, str]] = []
            for each in connection.notifies(timeout=60):
                if each.payload == "last":
                    break
                messages.append((each.channel, each.payload))
            return messages

        yield heard


@contextmanager
def running(ledger: Ledger, database: BlockingDatabase) -> Iterator[tuple[Job, Lease]]:
    """A job as it was accepted, and the lease on it."""
    job_id = ledger.submit(small=True, secret=SECRET)
    accepted = ledger.job(job_id)
    lease = database.run(leases.claim, job_id, 1, WORKER, 60.0)
    assert lease is not None
    yield accepted, lease


@pytest.mark.parametrize(
    "end",
    [
        lambda database, lease: database.run(leases.succeed, [(lease, Success(RESULT))]),
        lambda database, lease: database.run(leases.fail, lease, Reason.INVALID_INPUT, 'it is "no" file\nof ä'),
        lambda database, lease: database.run(leases.cancelled, lease),
        lambda database, lease: database.quickly(leases.succeed, [(lease, Success(RESULT))]),
    ],
    ids=["succeeded", "failed", "cancelled", "succeeded on the driver alone"],
)
def test_the_outcome_that_is_told_is_what_a_reader_of_the_row_finds(
    ledger: Ledger, database: BlockingDatabase, heard: Heard, end: Callable[[BlockingDatabase, Lease], object]
) -> None:
    with running(ledger, database) as (accepted, lease):
        end(database, lease)
        (first, message), *rest = heard()
        assert (first, [channel for channel, _ in rest]) == (OUTCOME, [ENDED])
        job_id, secret, text = message.split(" ", 2)
        assert (job_id, secret) == (str(accepted.id), str(SECRET))
        assert store.with_outcome(accepted, outcome.values_of(text)) == database.run(store.ended, accepted)


def test_of_a_job_that_no_request_waits_for_the_end_alone_is_told(
    ledger: Ledger, database: BlockingDatabase, heard: Heard
) -> None:
    lease = database.run(leases.claim, ledger.submit(small=True), 1, WORKER, 60.0)
    assert lease is not None
    database.run(leases.succeed, [(lease, Success(RESULT))])
    assert [channel for channel, _ in heard()] == [ENDED]


def test_an_end_that_is_undone_is_not_told(ledger: Ledger, database: BlockingDatabase, heard: Heard) -> None:
    def undone(connection: Connection, lease: Lease) -> None:
        leases.succeed(connection, [(lease, Success(RESULT))])
        raise RuntimeError

    with running(ledger, database) as (_, lease), pytest.raises(RuntimeError):
        database.run(undone, lease)
    assert heard() == []


def test_of_several_jobs_that_end_together_and_of_a_long_result_the_end_alone_is_told(
    ledger: Ledger, database: BlockingDatabase, heard: Heard
) -> None:
    with running(ledger, database) as (_, first), running(ledger, database) as (_, second):
        database.quickly(leases.succeed, [(first, Success(RESULT)), (second, Success(RESULT))])
    assert [channel for channel, _ in heard()] == [ENDED]
    for length in (7_000, 8_000, 100_000):
        with running(ledger, database) as (_, lease):
            database.quickly(leases.succeed, [(lease, Success({"long": "a" * length}))])
        assert [channel for channel, _ in heard()] == ([OUTCOME, ENDED] if length == 7_000 else [ENDED])


@pytest.mark.usefixtures("without_timer")
def test_a_forged_outcome_is_not_believed(api: Api, database_url: str) -> None:
    http = api.client("ann")
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(lambda: http.post("/v1/jobs", json=THREE_VALUES, headers={"Prefer": "wait=40"}))
        while not (jobs := api.client("bob").get("/v1/jobs").json()["items"]):
            pass
        job_id = jobs[0]["id"]
        api.until_watched(job_id)
        with psycopg.connect(conninfo(database_url), autocommit=True) as forger:
            for secret in ("", str(uuid4()), "ä"):
                forged = f'{job_id} {secret} {{"status": "succeeded"}}\n{{"value": 666}}'
                forger.execute("select pg_notify(%s, %s)", (OUTCOME, forged))
            forger.execute("select pg_notify(%s, %s)", (OUTCOME, job_id))
            forger.execute("select pg_notify(%s, %s)", (ENDED, job_id))
        api.finish(api.claim(job_id), {"value": 6})
        assert held.result().json()["result"] == {"value": 6}


@pytest.mark.usefixtures("without_timer")
@pytest.mark.parametrize("letters", [1, 10_000])
def test_whoever_waits_for_a_job_is_answered_by_what_is_told_and_reads_the_row_only_of_a_long_result(
    api: Api, monkeypatch: pytest.MonkeyPatch, letters: int
) -> None:
    reads: list[UUID] = []
    read = store.ended

    def counted(connection: Connection, job: Job) -> Job | None:
        reads.append(job.id)
        return read(connection, job)

    monkeypatch.setattr(store, "ended", counted)
    http = api.client("ann")
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(lambda: http.post("/v1/jobs", json=THREE_VALUES, headers={"Prefer": "wait=40"}))
        while not (jobs := api.client("bob").get("/v1/jobs").json()["items"]):
            pass
        api.until_watched(jobs[0]["id"])
        lease = api.claim(jobs[0]["id"])
        api.finish(lease, {"letters": "a" * letters})
        answer = held.result().json()
    assert (answer["status"], answer["result"]) == ("succeeded", {"letters": "a" * letters})
    assert answer == http.get(f"/v1/jobs/{answer['id']}").json()
    assert len(reads) == (letters > 1)
