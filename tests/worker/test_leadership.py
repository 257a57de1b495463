import time
from collections.abc import Iterator

import psycopg
import pytest
from sqlalchemy import Connection, text, update

from tests.support.clock import HandClock
from tests.support.ledger import Ledger
from tests.support.waiting import until
from warpfold.app.config import Settings
from warpfold.app.db import BlockingDatabase, conninfo
from warpfold.app.tables.service import lead
from warpfold.worker.leadership import Leadership, LeadLost
from warpfold.worker.stop import Stop


@pytest.fixture
def leader(settings: Settings) -> Iterator[Leadership]:
    with Leadership(settings.database_url, "first dispatcher", 10.0) as session:
        assert session.won()
        yield session


def until_won(session: Leadership) -> None:
    until(session.won)


def test_there_is_one_leader_and_the_next_takes_over(settings: Settings, leader: Leadership) -> None:
    with Leadership(settings.database_url, "second dispatcher", 10.0) as other:
        assert not other.won()
        leader.close()
        assert other.won(), "it was given back"


def test_the_next_takes_over_at_once_when_the_leaders_session_ends(
    settings: Settings, leader: Leadership, database: BlockingDatabase
) -> None:
    with Leadership(settings.database_url, "second dispatcher", 3600.0) as other:
        assert not other.won()
        database.run(_end_sessions, "first dispatcher")
        until_won(other)


def test_a_leader_that_renews_its_lead_keeps_it_and_a_silent_one_is_replaced(
    settings: Settings, database: BlockingDatabase, clock: HandClock
) -> None:
    url = settings.database_url
    with (
        Leadership(url, "first dispatcher", 10.0, clock) as silent,
        Leadership(url, "second dispatcher", 10.0, clock) as other,
        psycopg.connect(conninfo(url), application_name="first dispatcher", autocommit=True) as working,
    ):
        assert silent.won()

        def stand_by() -> None:
            assert not other.won()

        def lead_on() -> None:
            silent.renew()
            stand_by()

        clock.pass_slowly(60, lead_on)
        clock.pass_over(3600)  # all are stopped, or the server stalls
        clock.pass_slowly(6, stand_by)
        lead_on()
        clock.pass_slowly(9.5, stand_by)
        clock.pass_over(1)
        working.execute("select 1")
        until_won(other)
        with pytest.raises(psycopg.OperationalError):
            working.execute("select 1")
        with pytest.raises(psycopg.OperationalError):
            silent.renew()


def test_a_leader_that_lost_its_lead_hears_so_before_its_next_piece_of_work(
    settings: Settings, leader: Leadership, database: BlockingDatabase, clock: HandClock
) -> None:
    with Leadership(settings.database_url, "one dispatcher", 10.0, clock) as before:
        leader.close()
        assert before.won()
        database.run(_pass_on)
        before.renew()  # too early to ask
        clock.pass_over(2)
        with pytest.raises(LeadLost):
            before.renew()


def _pass_on(connection: Connection) -> None:
    connection.execute(update(lead).values(epoch=lead.c.epoch + 1))


def test_a_submitted_job_wakes_the_leader(leader: Leadership, ledger: Ledger, stop: Stop) -> None:
    leader.wait(0.0, stop)
    ledger.submit()
    started = time.monotonic()
    assert leader.wait(60.0, stop)
    assert time.monotonic() - started < 30.0


def test_a_stop_wakes_the_leader(leader: Leadership, stop: Stop) -> None:
    stop.request()
    started = time.monotonic()
    assert not leader.wait(60.0, stop)
    assert time.monotonic() - started < 30.0


def _end_sessions(connection: Connection, holder: str) -> None:
    end = text("select pg_terminate_backend(pid) from pg_stat_activity where application_name = :holder")
    connection.execute(end, {"holder": holder})


def test_a_leader_hears_that_its_session_ended(leader: Leadership, database: BlockingDatabase, stop: Stop) -> None:
    database.run(_end_sessions, "first dispatcher")
    with pytest.raises(psycopg.OperationalError):
        _keep_waiting(leader, stop)


def _keep_waiting(leader: Leadership, stop: Stop) -> None:
    """A minute of looks: the server's farewell and the end of the connection may arrive one after the other."""
    for _ in range(600):
        leader.wait(0.1, stop)
