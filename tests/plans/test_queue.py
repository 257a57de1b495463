"""What a statement of the queue reads depends neither on how many jobs wait nor on how many have ended.

Each statement is planned as the processes have it planned: once a connection, for any values. At 10⁵ waiting and 10⁶
finished jobs it must read few rows by a plan that was made without statistics, and by one that was made with them; with
fewer jobs also by a plan that was made while the tables were empty.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import psycopg
import pytest
from sqlalchemy import Connection, select, text

from tests.support.query_plans import Explained
from tests.support.servers import fresh_database
from warpfold.app import census
from warpfold.app.auth.visibility import THE_SERVICE
from warpfold.app.batches import repository as batches
from warpfold.app.batches import transitions as of_batches
from warpfold.app.census import waiting_by_owner
from warpfold.app.db import BlockingDatabase
from warpfold.app.jobs import accept, leases, losses, presets, queue, store, transitions, turns, workers
from warpfold.app.jobs.accept import Key
from warpfold.app.jobs.attempt import Lease, Success
from warpfold.app.jobs.dispatch_state import Depth
from warpfold.app.jobs.estimates import Waiter, see
from warpfold.app.jobs.losses import Running
from warpfold.app.jobs.store import Job
from warpfold.app.jobs.workers import WorkerInfo
from warpfold.app.metrics import monitoring
from warpfold.app.metrics.counters import count_ended
from warpfold.app.quotas import holds, room
from warpfold.app.quotas.quota import Limits
from warpfold.contract.states import Reason
from warpfold.worker.embedded import EmbeddedPostgres

WAITING, FINISHED, OWNERS = 100_000, 1_000_000, 100
MOST_ROWS = 3_500
"""What a statement may read: a hundred users' worth, sixteen places, and the thousand that are counted when somebody
asks, of several kinds."""

_CPU = WorkerInfo("here:cpu", "cpu", "cpu", "here", 1, "0", None)
_GPU = WorkerInfo("here:cuda:0", "cuda:0", "cuda", "here", 2, "0", None)
_FINISHED = """
    insert into jobs (id, owner_id, kind, priority, needs, timeout_s, spec, status, slot, worker, dispatched_at,
                      created_at, started_at, finished_at, result)
    select lpad(to_hex(i), 32, '0')::uuid, 1 + i %% %s, 'reduce', 1, 'any', 60, '{}', 'succeeded', 'here:cpu',
           'here:cpu', now(), now() - interval '1 hour', now() - interval '59 minutes',
           now() - i * interval '1 ms', '{}'
    from generate_series(1, %s) i
"""
_WAITING = """
    insert into jobs (id, owner_id, kind, priority, needs, timeout_s, spec, rank)
    select gen_random_uuid(), 1 + i %% %s, 'reduce', i %% 3, (array['any', 'cpu', 'cuda'])[1 + i / 3 %% 3], 60, '{}',
           i %% 3
    from generate_series(1, %s) i
"""
_ALONE = """
    insert into jobs (id, owner_id, kind, priority, needs, timeout_s, spec)
    select gen_random_uuid(), 1, 'reduce', 1, 'any', 60, '{}' from generate_series(1, %s)
"""
_NEWEST = """
    (select id from jobs where status = 'queued' order by rank desc, seq limit 1)
    union all
    (select id from jobs where status = 'queued' order by seq desc limit 50)
"""
BATCH = UUID(int=1 << 64)
_BATCH = "insert into batches (id, owner_id, count) values (%s, 1, 500)"
_OF_BATCH = """
    update jobs set batch_id = %s, batch_index = i from generate_series(1, 500) i
    where id = lpad(to_hex(10 * i), 32, '0')::uuid
"""
_USERS = "insert into users (name, role) select 'user' || i, 'user' from generate_series(1, %s) i"
# Indexes that are made after the rows cost a fifth of those that are kept up row by row.
_WITHOUT_INDEXES = """
    create table definitions as
        select indexname, indexdef from pg_indexes where tablename = 'jobs' and indexname like 'ix%';
    do $$ declare one record; begin
        for one in select indexname from definitions loop execute 'drop index ' || one.indexname; end loop;
    end $$
"""
_WITH_INDEXES = """
    do $$ declare one record; begin
        for one in select indexdef from definitions loop execute one.indexdef; end loop;
    end $$;
    drop table definitions
"""


Works = Mapping[str, Callable[[Connection], object]]


def _works(lease: Lease, waiting: Sequence[UUID]) -> Works:
    """Units of work of dispatcher, workers and api, by name."""
    running = Running(lease.job_id, lease.token, datetime.now(UTC))
    limits = Limits(queued=10**7, high_per_hour=5)
    first, last = waiting[0], waiting[-1]
    return {
        "submit": lambda connection: _submitted(connection, limits),
        "submit a small job": lambda connection: _submitted(connection, limits, small=True),
        "submit with a key": lambda connection: _submitted(connection, limits, Key("key", b"hash")),
        "take room for a batch": lambda connection: room.take(connection, 1, 500, 10**7),
        "show the first that waits": lambda connection: store.get(connection, first),
        "show the last that waits": lambda connection: store.get(connection, last),
        "poll the last that waits": lambda connection: store.stamp(connection, last, THE_SERVICE),
        "a look at the queue": see,
        "turns of many": lambda connection: _turns(connection, waiting),
        "metrics": monitoring.queue_state,
        "who has how much": monitoring.shares,
        "how many wait of each": lambda connection: connection.execute(select(waiting_by_owner())),
        "hand over": lambda connection: turns.hand_over_some(connection, Depth(2)),
        "live slots": turns.live_slots,
        "messages that were lost": queue.handed_over,
        "whether the service is idle": queue.anything,
        "jobs behind others": queue.stuck,
        "what runs": losses.running_attempts,
        "leases that expired": lambda connection: losses.take_back_silent(connection, [running], 3),
        "jobs that nobody can take": lambda connection: queue.fail_unservable(connection, ["gang"], 3600.0),
        "quotas that hold": lambda connection: holds.refresh(connection, Limits(running=1)),
        "news of presets": presets.unsettled,
        "counting ends": lambda connection: count_ended(connection, 100),
        "raising": lambda connection: transitions.raise_waiting(connection, 3600.0, 100),
        "claim": lambda connection: leases.claim(connection, lease.job_id, 1, _CPU.id, 60.0),
        "progress": lambda connection: leases.note_progress(connection, lease, 1, 2, "jobs"),
        "succeed": lambda connection: leases.succeed(connection, [(lease, Success({}))]),
        "fail": lambda connection: leases.fail(connection, lease, Reason.INTERNAL, "a sentence"),
        "claim behind a job": lambda connection: leases.claim_behind(connection, [(lease.job_id, 1)], _CPU.id, 60.0),
        "renew": lambda connection: leases.renew(connection, [lease], 60.0),
        "put back": lambda connection: leases.put_back(connection, [(lease, ())], "stopped"),
        "take back from a worker": lambda connection: losses.take_back_from(connection, _CPU.id, 3),
        "drain": lambda connection: workers.drain(connection, _CPU.id),
        "cancel": lambda connection: transitions.request_cancel(connection, lease.job_id),
        "progress of a batch": lambda connection: batches.get(connection, BATCH),
        "ids of a batch": lambda connection: batches.ids_of(connection, BATCH),
        "results of a batch": lambda connection: batches.outcomes(connection, BATCH, 10, 200),
        "cancel of a batch": lambda connection: of_batches.cancel(connection, BATCH),
        "end of batches": lambda connection: of_batches.settle(connection, 50),
        "old batches": lambda connection: of_batches.remove_old(connection, timedelta(0), 200),
    }


def _submitted(connection: Connection, limits: Limits, key: Key | None = None, *, small: bool = False) -> None:
    """Submit a job by the statement that does it at once, and see that it did. For a small job, that statement looks
    whether any waits."""
    job = _job(small=small)
    assert accept.at_once(job)
    assert accept.submit_at_once(connection, job, key, limits) is not None


def _turns(connection: Connection, job_ids: Sequence[UUID]) -> None:
    seen = see(connection)
    stamps = [store.stamp(connection, job_id, THE_SERVICE) for job_id in job_ids]
    waiters: list[Waiter] = [stamp.waiter for stamp in stamps if stamp.waiter is not None]
    if unread := seen.unread(waiters):
        seen.read(connection, unread)
    assert len(seen.estimates(waiters)) == len(job_ids)


def _job(*, small: bool = False) -> Job:
    return Job.new(
        id=uuid4(),
        owner="",
        owner_id=1,
        kind="reduce",
        priority=1,
        needs="any",
        timeout_s=60.0,
        spec="{}",
        small=small,
    )


def _waiting_jobs(url: str) -> Sequence[UUID]:
    """The first of the jobs that wait, and a page of the latest."""
    with psycopg.connect(url) as connection:
        return [row[0] for row in connection.execute(_NEWEST)]


def _count(url: str) -> None:
    """What goes on beside the statements: the census, and the count of an owner's jobs that the first submission
    makes."""
    database = BlockingDatabase(url, application="test")
    database.run(census.take, None)
    database.run(room.count, 1, 10**7)
    database.close()


def _fill(url: str, waiting: int, finished: int) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("set session_replication_role = replica")  # no look at each row's owner
        connection.execute(_FINISHED, (OWNERS, finished))
        connection.execute(_OF_BATCH, (BATCH,))
        connection.execute(_WAITING, (OWNERS, waiting))


def _lease(url: str) -> Lease:
    """A live slot that runs a job, of the first of a hundred users."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_USERS, (OWNERS,))
        connection.execute(_BATCH, (BATCH,))
    database = BlockingDatabase(url, application="test")
    job = database.run(accept.accept, _job())
    for worker in (_CPU, _GPU):
        database.run(workers.report, worker, "idle", None, 3600.0)
    lease = database.run(leases.claim, job.id, 1, _CPU.id, 3600.0)
    database.close()
    assert lease is not None
    return lease


def _too_much(explained: Explained, works: Works) -> str:
    """The statements that read more than they may, in words."""
    lines = [
        f"{name}: {read.rows:,} rows by {', '.join(read.nodes)} for {read.statement[:300]}"
        for name, work in works.items()
        for read in explained.reads(work)
        if read.rows > MOST_ROWS
    ]
    return "\n".join(lines)


@pytest.fixture(scope="module")
def full(shared_postgres: EmbeddedPostgres) -> Iterator[tuple[str, Lease]]:
    """A million finished and a hundred thousand waiting jobs, and no statistics."""
    with fresh_database(shared_postgres) as url:
        lease = _lease(url)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(_WITHOUT_INDEXES)
        _fill(url, WAITING, FINISHED)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(_WITH_INDEXES)
        _count(url)
        yield url, lease


@pytest.mark.parametrize("statistics", ["without", "with"])
def test_a_plan_reads_few_of_a_million_rows(full: tuple[str, Lease], statistics: str) -> None:
    url, lease = full
    if statistics == "with":
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("analyze")
    with closing(Explained(url)) as explained:
        assert _too_much(explained, _works(lease, _waiting_jobs(url))) == ""


@pytest.mark.parametrize("before", ["", "analyze", "vacuum analyze"])
def test_a_plan_that_was_made_while_the_tables_were_empty_reads_few_rows_later(database_url: str, before: str) -> None:
    lease = _lease(database_url)
    if before:
        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.execute(before)
    database = BlockingDatabase(database_url, application="test")
    job = database.run(accept.accept, _job())
    database.run(room.count, 1, 10**7)
    database.close()
    with closing(Explained(database_url)) as explained:
        assert _too_much(explained, _works(lease, [job.id])) == ""
        _fill(database_url, 10_000, 20_000)
        _count(database_url)
        assert _too_much(explained, _works(lease, _waiting_jobs(database_url))) == ""


@pytest.mark.parametrize("statistics", ["before", "without", "with"])
def test_of_one_user_who_waits_alone_few_jobs_are_read(database_url: str, statistics: str) -> None:
    """All jobs of the queue have one owner, one rank and one word of `needs`: each of the other indexes promises as
    much as the one that has the order. With statistics `before` there were any jobs, the plans are of that time."""
    _lease(database_url)
    with closing(Explained(database_url)) as explained, psycopg.connect(database_url, autocommit=True) as connection:
        works: Works = {
            "hand over": lambda connection: turns.hand_over_some(connection, Depth(2)),
            "a look at the queue": see,
        }
        if statistics == "before":
            assert _too_much(explained, works) == ""
        connection.execute("set session_replication_role = replica")
        connection.execute(_ALONE, (20_000,))
        _count(database_url)
        if statistics == "with":
            connection.execute("analyze")
        waiting = _waiting_jobs(database_url)
        works = {**works, "turns of many": lambda connection: _turns(connection, waiting)}
        assert _too_much(explained, works) == ""


def test_a_statement_that_reads_the_whole_queue_is_found_out(database_url: str) -> None:
    _lease(database_url)
    _fill(database_url, 4000, 10)
    whole = {"all": lambda connection: connection.execute(text("select count(*) from jobs where status = 'queued'"))}
    with closing(Explained(database_url)) as explained:
        complaint = _too_much(explained, whole)
    assert complaint.startswith("all: ")
