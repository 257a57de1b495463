"""How many jobs a second the queue passes, by its depth and its history: `python -m benchmarks.depth`.

The benchmark starts Postgres and Redis in a temporary folder, as `warpfold serve` does, and runs the loop of the
dispatcher and the statements of the workers in one process: hand-over, message, claim, end. The jobs are small, so they
pass in groups; with `--long` they pass one by one. They compute nothing: the figures are those of the queue alone, and
`benchmarks.drain` has the figures of whole jobs.
"""

import argparse
import json
import logging
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import UUID

import psutil
import psycopg
import structlog
from redis import Redis
from rich.console import Console
from rich.table import Table
from rq.job import Job
from rq.utils import as_text

from benchmarks.figures import provenance
from warpfold import migrations
from warpfold.app.config import Settings
from warpfold.app.db import BlockingDatabase
from warpfold.app.jobs import groups, leases, workers
from warpfold.app.jobs.groups import Succeeded
from warpfold.app.jobs.workers import WorkerInfo
from warpfold.worker.dispatcher import Dispatcher
from warpfold.worker.embedded import EmbeddedPostgres, EmbeddedRedis
from warpfold.worker.housekeeping import Housekeeping
from warpfold.worker.queue import AttemptQueues, attempt_of, connect, queue_of
from warpfold.worker.stop import Stop

_OWNERS = 100
_SLOT = WorkerInfo("bench:cpu", "cpu", "cpu", "bench", 1, "0", None)
_LEASE_S = 600.0
_ROUNDS = 5
_GOAL = 0.9
_AT_ONCE = 64

_COUNT = "select count(*) filter (where finished_at is not null), count(*) filter (where status = 'queued') from jobs"
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
class Cell:
    """The figures of one depth and one history. `jobs_per_second` is the median of `rounds`; `busy_ms` is the CPU time
    of Postgres for a job, over all rounds."""

    depth: int
    history: int
    jobs: int
    jobs_per_second: float
    rounds: tuple[float, ...]
    busy_ms: float


@dataclass(frozen=True, slots=True)
class Bench:
    """A database, and the dispatcher and the slot that drain it."""

    url: str
    postgres: psutil.Process
    dispatcher: Dispatcher
    database: BlockingDatabase
    redis: Redis
    settings: Settings
    small: bool

    def fill(self, depth: int, history: int) -> None:
        """Bring the table to `history` finished and `depth` waiting rows."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            row = connection.execute(_COUNT).fetchone()
            assert row is not None
            finished, waiting = row
            connection.execute(_FINISHED, (_OWNERS, max(0, history - finished)))
            if waiting > depth:
                connection.execute(_LESS, (waiting - depth,))
            connection.execute(_WAITING, (_OWNERS, self.small, max(0, depth - waiting)))

    def settle_down(self) -> None:
        """Bring statistics up to date and write out what is pending, as a table has it that was filled slowly."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("vacuum analyze jobs")
            connection.execute("checkpoint")

    def measure(self, depth: int, history: int, jobs: int, budget_s: float) -> Cell:
        """Drain `jobs` jobs a round, but at most half of the queue and no more than `budget_s` seconds allow. The queue
        is filled up again before each round."""
        self.fill(depth, history)
        self.settle_down()
        rounds, done, busy_s = [], 0, 0.0
        for _ in range(_ROUNDS):
            self.drain(10, budget_s)  # opens connections and prepares statements
            self.fill(depth, history)
            before = _cpu_s(self.postgres)
            started = time.perf_counter()
            ended = self.drain(min(jobs, depth // 2), budget_s / _ROUNDS)
            rounds.append(ended / (time.perf_counter() - started))
            busy_s += _cpu_s(self.postgres) - before
            done += ended
        return Cell(depth, history, done, statistics.median(rounds), tuple(rounds), busy_s / done * 1e3)

    def drain(self, jobs: int, budget_s: float) -> int:
        """Hand over, claim and end up to `jobs` jobs as the processes of a service do, small ones in groups; returns
        how many ended."""
        queue = queue_of(_SLOT.id, self.redis)
        give_up = time.perf_counter() + budget_s
        next_round = next_report = 0.0
        at_once = _AT_ONCE if self.small else 1
        ended = 0
        while ended < jobs and (now := time.perf_counter()) < give_up:
            if now >= next_report:
                self.database.step(workers.report, _SLOT, "idle", None, _LEASE_S)
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
                pipeline.delete(*(Job.key_for(name) for name in names))
                pipeline.execute()
        return ended

    def _end(self, attempts: Sequence[tuple[UUID, int]]) -> int:
        """Claim and end these attempts; returns how many they were."""
        if not self.small:
            for job_id, attempt in attempts:
                lease = self.database.step(leases.claim, job_id, attempt, _SLOT.id, _LEASE_S)
                assert lease is not None, f"{job_id} could not be claimed"
                assert self.database.run(leases.succeed, lease, {}, ())
            return len(attempts)
        claimed = self.database.step(groups.claim, attempts, _SLOT.id, _LEASE_S)
        assert len(claimed.leases) == len(attempts), "some could not be claimed"
        ends = [Succeeded(lease, {}) for lease in claimed.leases]
        assert len(self.database.run(groups.end, ends, [])) == len(attempts)
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
def bench(*, small: bool) -> Iterator[Bench]:
    """Start servers in a temporary folder, with tables, users and a slot."""
    with tempfile.TemporaryDirectory(prefix="warpfold-depth-", dir="/tmp") as name:
        root = Path(name)
        root.chmod(0o711)
        postgres, redis_server = EmbeddedPostgres(root / "postgres"), EmbeddedRedis(root / "redis")
        postgres.start()
        redis_server.start()
        try:
            migrations.upgrade(postgres.url)
            with psycopg.connect(postgres.url, autocommit=True) as connection:
                connection.execute(_USERS, (_OWNERS,))
            settings = Settings(database_url=postgres.url, redis_url=redis_server.url, data_dir=root / "warpfold")
            database = BlockingDatabase(postgres.url, application="warpfold-dispatcher", durable=False)
            redis = connect(redis_server.url, answer_within_s=5.0)
            stop = Stop()
            dispatcher = Dispatcher(settings, database, AttemptQueues(redis), stop)
            own = BlockingDatabase(postgres.url, application="warpfold-housekeeping", pool_size=1, durable=False)
            housekeeping = Housekeeping(settings, own)
            housekeeping.start()
            assert postgres.pid is not None
            yield Bench(postgres.url, psutil.Process(postgres.pid), dispatcher, database, redis, settings, small)
            housekeeping.stop()
            own.close()
            database.close()
            redis.close()
            stop.close()
        finally:
            redis_server.stop()
            postgres.stop()


def table(cells: Sequence[Cell]) -> Table:
    """Jobs a second, a row for each history and a column for each depth."""
    depths = list(dict.fromkeys(cell.depth for cell in cells))
    histories = list(dict.fromkeys(cell.history for cell in cells))
    shown = Table(title="Jobs a second (CPU time of Postgres for a job)")
    shown.add_column("finished rows", justify="right")
    for depth in depths:
        shown.add_column(f"{depth:,} waiting", justify="right")
    by_place = {(cell.depth, cell.history): cell for cell in cells}
    for history in histories:
        row = [by_place.get((depth, history)) for depth in depths]
        shown.add_row(
            f"{history:,}",
            *("–" if cell is None else f"{cell.jobs_per_second:.1f} ({cell.busy_ms:.1f} ms)" for cell in row),
        )
    return shown


def main() -> int:
    """Measure and print; returns 0 if the deepest cell reaches 0.9 of the shallowest."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--depths", type=int, nargs="+", default=[10**2, 10**3, 10**4, 10**5], metavar="N")
    parser.add_argument("--histories", type=int, nargs="+", default=[10**3, 10**4, 10**5, 10**6], metavar="N")
    parser.add_argument("--jobs", type=int, default=300, help="most jobs in each of the five rounds of a cell")
    parser.add_argument("--budget", type=float, default=30.0, metavar="S", help="seconds for a cell, at most")
    parser.add_argument("--long", action="store_true", help="hand over, claim and end jobs one by one")
    parser.add_argument("--out", type=Path, help="write the cells with their provenance as JSON")
    arguments = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    cells = []
    with bench(small=not arguments.long) as service:
        for history in sorted(arguments.histories):
            for depth in sorted(arguments.depths):
                cell = service.measure(depth, history, arguments.jobs, arguments.budget)
                print(f"{cell.depth:,} waiting, {cell.history:,} finished: {cell.jobs_per_second:.1f}/s", flush=True)
                cells.append(cell)
    facts = provenance()
    shown = table(cells)
    ratio = cells[-1].jobs_per_second / cells[0].jobs_per_second
    shown.caption = ", ".join(f"{key} {value}" for key, value in facts.items())
    Console().print(shown)
    print(f"deepest over shallowest: {ratio:.2f} (goal: at least {_GOAL})")
    if arguments.out is not None:
        written = {"provenance": facts, "ratio": ratio, "cells": [asdict(cell) for cell in cells]}
        arguments.out.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0 if ratio >= _GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
