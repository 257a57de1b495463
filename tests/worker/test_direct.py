"""The connection by which a worker hears of jobs that were handed to it directly."""

from collections.abc import Iterator
from uuid import UUID, uuid4

import psycopg
import pytest

from tests.support.clock import HandClock
from tests.support.waiting import until
from warpfold.app.db import conninfo
from warpfold.worker.direct import DirectMessage, DirectMessages

WORKER = "here:cpu"


@pytest.fixture
def other(database_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(conninfo(database_url), autocommit=True) as connection:
        yield connection


@pytest.fixture
def messages(database_url: str, clock: HandClock) -> Iterator[DirectMessages]:
    messages = DirectMessages(database_url, WORKER, clock)
    yield messages
    messages.close()


def send(connection: psycopg.Connection, job_id: UUID, attempt: int) -> None:
    connection.execute("select pg_notify('warpfold_slot_' || md5(%s), %s)", (WORKER, f"{job_id} {attempt}"))


def taken(messages: DirectMessages, count: int) -> list[DirectMessage]:
    came: list[DirectMessage] = []

    def look() -> bool:
        if (message := messages.take()) is not None:
            came.append(message)
        return len(came) == count

    until(look)
    return came


def test_messages_come_in_their_order(messages: DirectMessages, other: psycopg.Connection) -> None:
    messages.listen()
    sent = [(uuid4(), attempt) for attempt in (1, 2, 1)]
    for job_id, attempt in sent:
        send(other, job_id, attempt)
    assert taken(messages, 3) == [DirectMessage(*attempt) for attempt in sent]
    assert messages.take() is None


def test_nothing_comes_before_the_worker_listens(messages: DirectMessages) -> None:
    assert messages.fileno() is None
    assert messages.take() is None


def test_a_lost_connection_is_made_again(messages: DirectMessages, other: psycopg.Connection, clock: HandClock) -> None:
    messages.listen()
    other.execute("select pg_terminate_backend(pid) from pg_stat_activity where application_name like '%notifications'")

    def lost() -> bool:
        assert messages.take() is None
        return messages.fileno() is None

    until(lost)
    messages.listen()
    assert messages.fileno() is None, "it does not try again at once"
    clock.pass_over(60.0)
    messages.listen()
    job_id = uuid4()
    send(other, job_id, 1)
    assert taken(messages, 1) == [DirectMessage(job_id, 1)]


def test_an_unreachable_postgres_is_no_error(clock: HandClock) -> None:
    messages = DirectMessages("postgresql://127.0.0.1:1/nowhere", WORKER, clock)
    messages.listen()
    assert messages.fileno() is None
    assert messages.take() is None


def test_messages_that_nobody_of_ours_sent_are_passed_over(messages: DirectMessages, other: psycopg.Connection) -> None:
    messages.listen()
    for payload in ("", "nonsense", f"{uuid4()} first", "1 2 3 4"):
        other.execute("select pg_notify('warpfold_slot_' || md5(%s), %s)", (WORKER, payload))
    job_id = uuid4()
    send(other, job_id, 1)
    assert taken(messages, 1) == [DirectMessage(job_id, 1)]
