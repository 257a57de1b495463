"""How many jobs a second the queue passes, by its depth and its history: `python -m benchmarks.depth`.

The benchmark starts Postgres and Redis in a temporary folder, as `warpfold serve` does, and runs the loop of the
dispatcher and the statements of the workers in one process: hand-over, message, claim, end. The jobs are small, so they
pass in groups; with `--long` they pass one by one. They compute nothing: the figures are those of the queue alone, and
`benchmarks.drain` has the figures of whole jobs. Beside them stands how many jobs a second are accepted by the
statement of a plain submission, over one connection.

Every depth has a database of its own, and the rounds visit all of them in turn, so that what else the machine does
falls on all alike. A figure is the median of its rounds; a ratio is the median of the ratios within each round.
"""

import argparse
import json
import logging
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import UUID, uuid4

import psutil
import psycopg
import structlog
from redis import Redis
from rich.console import Console
from rich.table import Table
from rq.job import Job as Message
from rq.utils import as_text

from benchmarks.figures import provenance
from warpfold import migrations
from warpfold.app.config import Settings
from warpfold.app.db import BlockingDatabase, conninfo, database_url
from warpfold.app.jobs import accept, leases, workers
from warpfold.app.jobs.attempt import Success
from warpfold.app.jobs.store import Job
from warpfold.app.jobs.workers import WorkerInfo
from warpfold.app.quotas.quota import Limits
from warpfold.worker.dispatcher import Dispatcher
from warpfold.worker.embedded import EmbeddedPostgres, EmbeddedRedis
from warpfold.worker.housekeeping import Housekeeping
from warpfold.worker.queue import AttemptQueues, attempt_of, connect, queue_of
from warpfold.worker.stop import Stop

_OWNERS = 100
_LEASE_S = 600.0
_ROUNDS = 5
_GOAL = 0.9
_SUBMISSIONS = 200
_LIMITS = Limits(queued=10**9, high_per_hour=5)
_AT_ONCE = 64

_COUNT = "select count(*) from jobs where status = 'queued'"
_LESS = """
    delete from jobs where id in (
        select id from jobs where status = 'queued' and dispatched_at is null order by seq desc limit %s)
"""
_USERS = "insert into users (name, role) select 'user' || i, 'user' from generate_series(1, %s) i"
_WAITING = """
    insert into jobs (id, owner_id, kind, priority, needs, timeout_s, spec, small)
    select gen_random_uuid(), (select min(id) from users) + i %% %s, 'reduce', 1, 'any', 60, '{}'::json, %s
    from generate_series(1, %s) i
"""
_FINISHED = """
    insert into jobs (id, owner_id, kind, priority, needs, timeout_s, spec, status, slot, worker, created_at,
                      dispatched_at, started_at, finished_at, result, version)
    select gen_random_uuid(), (select min(id) from users) + i %% %s, 'reduce', 1, 'any', 60, '{}'::json, 'succeeded',
           'bench:cpu', 'bench:cpu', now() - i * interval '1 second', now() - i * interval '1 second',
           now() - i * interval '1 second', now() - i * interval '1 second' + interval '10 ms', '{}'::json, 3
    from generate_series(1, %s) i
"""


@dataclass(frozen=True, slots=True)
class Round:
    """One visit to a cell: jobs drained and jobs accepted a second, and the CPU time that Postgres took for each job in
    milliseconds."""

    jobs: int
    jobs_per_second: float
    submissions_per_second: float
    busy_ms: float
    submission_busy_ms: float


@dataclass(frozen=True, slots=True)
class Cell:
    """What was measured at one depth and one history: the medians of `rounds`."""

    depth: int
    history: int
    jobs_per_second: float
    submissions_per_second: float
    busy_ms: float
    submission_busy_ms: float
    rounds: tuple[Round, ...]

    @classmethod
    def of(cls, depth: int, history: int, rounds: Sequence[Round]) -> "Cell":
        """The medians of some rounds."""
        return cls(
            depth,
            history,
            statistics.median(each.jobs_per_second for each in rounds),
            statistics.median(each.submissions_per_second for each in rounds),
            statistics.median(each.busy_ms for each in rounds),
            statistics.median(each.submission_busy_ms for each in rounds),
            tuple(rounds),
        )


@dataclass(frozen=True, slots=True)
class Bench:
    """A database with so many waiting jobs, and the dispatcher and the slot that drain it."""

    url: str
    depth: int
    history: int
    postgres: psutil.Process
    dispatcher: Dispatcher
    housekeeping: Housekeeping
    database: BlockingDatabase
    redis: Redis
    settings: Settings
    slot: WorkerInfo
    small: bool

    def fill(self) -> None:
        """Bring the table to `depth` waiting rows."""
        with psycopg.connect(conninfo(self.url), autocommit=True) as connection:
            row = connection.execute(_COUNT).fetchone()
            assert row is not None
            [waiting] = row
            if waiting > self.depth:
                connection.execute(_LESS, (waiting - self.depth,))
            connection.execute(_WAITING, (_OWNERS, self.small, max(0, self.depth - waiting)))

    def settle_down(self) -> None:
        """Bring statistics up to date and write out what is pending, as a table has it that was filled slowly; and do
        what a dispatcher does beside its loop, the census included."""
        with psycopg.connect(conninfo(self.url), autocommit=True) as connection:
            connection.execute("vacuum analyze jobs")
        self.housekeeping.look()

    def visit(self, jobs: int, budget_s: float) -> Round:
        """Drain `jobs` jobs, or as many as `budget_s` seconds allow, and accept some. The queue is filled up before,
        and whenever half of it is drained."""
        self.fill()
        self.submit(10)  # opens connections and prepares statements
        self.drain(10, budget_s)
        self.settle_down()
        ended, drained_s, busy_s = 0, 0.0, 0.0
        while ended < jobs and drained_s < budget_s:
            self.fill()
            most = min(jobs - ended, self.depth // 2)
            done, seconds, busy = self._timed(lambda: self.drain(most, budget_s))  # noqa: B023 - called at once
            ended, drained_s, busy_s = ended + done, drained_s + seconds, busy_s + busy
        self.fill()
        _, submitted_s, submission_busy_s = self._timed(lambda: self.submit(_SUBMISSIONS))
        return Round(
            ended,
            ended / drained_s,
            _SUBMISSIONS / submitted_s,
            busy_s / ended * 1e3,
            submission_busy_s / _SUBMISSIONS * 1e3,
        )

    def _timed(self, work: Callable[[], int]) -> tuple[int, float, float]:
        """What `work` returns, its seconds, and the CPU seconds that Postgres took meanwhile."""
        before, started = _cpu_s(self.postgres), time.perf_counter()
        done = work()
        return done, time.perf_counter() - started, _cpu_s(self.postgres) - before

    def submit(self, jobs: int) -> int:
        """Accept so many jobs of one user, each by the statement of a plain submission; returns how many."""
        for _ in range(jobs):
            new = Job.new(
                id=uuid4(),
                owner="user1",
                owner_id=1,
                kind="reduce",
                priority=1,
                needs="any",
                timeout_s=60.0,
                spec="{}",
                small=self.small,
            )
            if self.database.step(accept.submit_at_once, new, None, _LIMITS) is None:
                self.database.run(accept.submit, new, None, _LIMITS)  # the first counts the room
        return jobs

    def drain(self, jobs: int, budget_s: float) -> int:
        """Hand over, claim and end up to `jobs` jobs as the processes of a service do, small ones in groups; returns
        how many ended."""
        queue = queue_of(self.slot.id, self.redis)
        give_up = time.perf_counter() + budget_s
        next_round = next_report = 0.0
        at_once = _AT_ONCE if self.small else 1
        ended = 0
        while ended < jobs and (now := time.perf_counter()) < give_up:
            if now >= next_report:
                self.database.step(workers.report, self.slot, "idle", None, _LEASE_S)
                next_report = now + 5.0
            if now >= next_round:
                self.dispatcher.look_around()
                next_round = now + self.settings.dispatch_interval_s
            self.dispatcher.deliver()
            self.dispatcher.settle()
            names = [as_text(name) for name in self.redis.lrange(queue.key, 0, min(at_once, jobs - ended) - 1)]
            assert names, "nothing was handed over"
            ended += self._end([attempt_of(name) for name in names])
            with self.redis.pipeline() as pipeline:
                for name in names:
                    pipeline.lrem(queue.key, 1, name)
                pipeline.delete(*(Message.key_for(name) for name in names))
                pipeline.execute()
        return ended

    def _end(self, attempts: Sequence[tuple[UUID, int]]) -> int:
        """Claim and end these attempts; returns how many they were."""
        if not self.small:
            for job_id, attempt in attempts:
                lease = self.database.step(leases.claim, job_id, attempt, self.slot.id, _LEASE_S)
                assert lease is not None, f"{job_id} could not be claimed"
                assert self.database.run(leases.succeed, [(lease, Success({}))])
            return len(attempts)
        claimed = self.database.step(leases.claim_behind, attempts, self.slot.id, _LEASE_S)
        assert len(claimed.leases) == len(attempts), "some could not be claimed"
        ends = [(lease, Success({})) for lease in claimed.leases]
        assert len(self.database.run(leases.succeed, ends)) == len(attempts)
        return len(attempts)


def _cpu_s(postmaster: psutil.Process) -> float:
    """The CPU seconds of those processes of the server that run."""
    total = 0.0
    for process in postmaster.children(recursive=True):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total


@contextmanager
def benches(depths: Sequence[int], histories: Sequence[int], *, small: bool) -> Iterator[Sequence[Bench]]:
    """Servers in a temporary folder, with a database for each history and depth."""
    with tempfile.TemporaryDirectory(prefix="warpfold-depth-", dir="/tmp") as name, ExitStack() as stack:
        root = Path(name)
        root.chmod(0o711)
        postgres, redis_server = EmbeddedPostgres(root / "postgres"), EmbeddedRedis(root / "redis")
        for server in (postgres, redis_server):
            server.start()
            stack.callback(server.stop)
        assert postgres.pid is not None
        process = psutil.Process(postgres.pid)
        made = []
        for history in sorted(histories):
            template = _filled(postgres.url, history)
            for depth in sorted(depths):
                url = _database(postgres.url, f"d{depth}_of_{history}", template)
                settings = Settings(database_url=url, redis_url=redis_server.url, data_dir=root / "warpfold")
                made.append(_bench(stack, settings, depth, history, process, small=small))
                made[-1].fill()
                print(f"{depth:,} waiting over {history:,} finished: ready", flush=True)
        yield made


def _bench(
    stack: ExitStack, settings: Settings, depth: int, history: int, process: psutil.Process, *, small: bool
) -> Bench:
    database = BlockingDatabase(settings.database_url, application="warpfold-dispatcher", pool_size=1, durable=False)
    kept = BlockingDatabase(settings.database_url, application="warpfold-housekeeping", pool_size=1, durable=False)
    redis = connect(settings.redis_url, answer_within_s=5.0)
    stop = Stop()
    for resource in (database, kept, redis, stop):
        stack.callback(resource.close)
    dispatcher = Dispatcher(settings, database, AttemptQueues(redis), stop)
    housekeeping = Housekeeping(settings, kept)
    host = f"d{depth}-{history}"  # a slot of its own, and so a queue of its own in Redis
    slot = WorkerInfo(f"{host}:cpu", "cpu", "cpu", host, 1, "0", None)
    return Bench(
        settings.database_url,
        depth,
        history,
        process,
        dispatcher,
        housekeeping,
        database,
        redis,
        settings,
        slot,
        small,
    )


def _filled(server: str, history: int) -> str:
    """The name of a database with users and so many finished jobs."""
    name = f"history_{history}"
    url = _database(server, name, "template1")
    migrations.upgrade(url)
    with psycopg.connect(conninfo(url), autocommit=True) as connection:
        connection.execute(_USERS, (_OWNERS,))
        connection.execute(_FINISHED, (_OWNERS, history))
        connection.execute("vacuum analyze")
    return name


def _database(server: str, name: str, template: str) -> str:
    """Make a database like `template`; its url."""
    with psycopg.connect(conninfo(server), autocommit=True) as connection:
        connection.execute(f'create database "{name}" template "{template}" strategy file_copy'.encode())
    return database_url(server).set(database=name, drivername="postgresql").render_as_string()


def _shown(cell: Cell) -> str:
    drained = f"{cell.jobs_per_second:.0f} ({cell.busy_ms:.1f} ms)"
    return f"{drained} / {cell.submissions_per_second:.0f} ({cell.submission_busy_ms:.1f} ms)"


def table(cells: Sequence[Cell]) -> Table:
    """Jobs a second, a row for each history and a column for each depth."""
    depths = list(dict.fromkeys(cell.depth for cell in cells))
    histories = list(dict.fromkeys(cell.history for cell in cells))
    shown = Table(title="Jobs drained / accepted a second (CPU time of Postgres for a job)")
    shown.add_column("finished rows", justify="right")
    for depth in depths:
        shown.add_column(f"{depth:,} waiting", justify="right")
    by_place = {(cell.depth, cell.history): cell for cell in cells}
    for history in histories:
        row = [by_place.get((depth, history)) for depth in depths]
        shown.add_row(
            f"{history:,}",
            *("–" if cell is None else _shown(cell) for cell in row),
        )
    return shown


def main() -> int:
    """Measure and print; returns 0 if the deepest cell reaches 0.9 of the shallowest."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--depths", type=int, nargs="+", default=[10**2, 10**4, 10**5], metavar="N")
    parser.add_argument("--histories", type=int, nargs="+", default=[10**3, 10**6], metavar="N")
    parser.add_argument("--jobs", type=int, default=300, help="most jobs to drain in a visit")
    parser.add_argument("--rounds", type=int, default=_ROUNDS, metavar="N", help="visits to each database")
    parser.add_argument("--budget", type=float, default=30.0, metavar="S", help="seconds for a cell, at most")
    parser.add_argument("--long", action="store_true", help="hand over, claim and end jobs one by one")
    parser.add_argument("--out", type=Path, help="write the cells with their provenance as JSON")
    arguments = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    rounds: dict[tuple[int, int], list[Round]] = defaultdict(list)
    with benches(arguments.depths, arguments.histories, small=not arguments.long) as made:
        for number in range(arguments.rounds):
            for each in made if number % 2 == 0 else reversed(made):
                rounds[each.depth, each.history].append(each.visit(arguments.jobs, arguments.budget))
            print(f"round {number + 1} of {arguments.rounds}", flush=True)
        cells = [Cell.of(each.depth, each.history, rounds[each.depth, each.history]) for each in made]
    facts = provenance()
    shown = table(cells)
    first, last = cells[0].rounds, cells[-1].rounds
    both = list(zip(first, last, strict=True))
    ratio = statistics.median(deep.jobs_per_second / shallow.jobs_per_second for shallow, deep in both)
    of_submissions = statistics.median(
        deep.submissions_per_second / shallow.submissions_per_second for shallow, deep in both
    )
    shown.caption = ", ".join(f"{key} {value}" for key, value in facts.items())
    Console().print(shown)
    print(f"deepest over shallowest: {ratio:.2f} drained, {of_submissions:.2f} accepted (goal: at least {_GOAL})")
    if arguments.out is not None:
        written = {
            "provenance": facts,
            "ratio": ratio,
            "submissions": of_submissions,
            "cells": [asdict(cell) for cell in cells],
        }
        arguments.out.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0 if min(ratio, of_submissions) >= _GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
