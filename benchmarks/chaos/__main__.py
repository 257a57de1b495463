"""Mixed work of several users while processes of the service are killed and stopped: `python -m benchmarks.chaos`.

Users hand in single jobs, batches, group-bys, artefacts, uploads, jobs with webhooks, and jobs that they cancel.
Meanwhile the api, the dispatcher, the worker, its children, Postgres and Redis are killed or stopped at random, alone
and all at once. At the end each job must have ended exactly once with its right value, each webhook must have arrived,
and no process may be left.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psycopg

from benchmarks.chaos.blows import Record, Target, blows
from benchmarks.chaos.receiver import Received, receiver
from benchmarks.chaos.work import Asked, User, persistently, stored_values
from benchmarks.figures import Figure, environment, measured_service, report
from warpfold.app.auth.access_tokens import create_token
from warpfold.app.db import BlockingDatabase
from warpfold.client.api import Client
from warpfold.client.group_table import GroupbyResult

_WEBHOOKS_WAIT_S = 900.0
_ENDED = """
select id::text, status, case when kind = 'reduce' then (result ->> 'value')::double precision end,
    (select count(*) from job_events where job_id = jobs.id and type in ('succeeded', 'failed', 'cancelled')),
    (select count(*) from measurements where job_id = jobs.id)
from jobs
"""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a job ended: the value of a reduction to one, how many events say that it ended, and its measurements."""

    status: str
    value: float | None
    events: int
    measurements: int

    @property
    def once(self) -> bool:
        return self.events == 1 and self.measurements <= 1


def _tokens(database_url: str, users: int) -> list[str]:
    database = BlockingDatabase(database_url, application="chaos")
    try:
        return [database.run(create_token, f"user{index}") for index in range(users)]
    finally:
        database.close()


def _wrong(user: User, job: Asked, ended: Ended) -> str | None:
    """What is wrong with a job that has ended; None where it came to what it should."""
    if job.kind == "cancelled":
        return None if ended.status == "cancelled" else f"it {ended.status}, and was cancelled"
    if ended.status != "succeeded":
        return f"it {ended.status}"
    if isinstance(job.value, float):
        return None if ended.value == job.value else f"{ended.value!r} for {job.value!r}"
    now = persistently(lambda: user.client.job(job.id))
    if job.stored:
        return None if np.array_equal(persistently(lambda: user.client.array(now)), stored_values()) else "wrong values"
    result = persistently(lambda: user.client.result(now))
    assert isinstance(result, GroupbyResult), f"the result of a {job.kind}"
    groups = _groups(result)
    return None if groups == job.value else f"{groups!r} for {job.value!r}"


def _groups(result: GroupbyResult) -> dict[str, float]:
    columns = result.to_arrow().to_pydict()
    return dict(zip(columns["key"], columns["total"], strict=True))


def _await_ends(database_url: str) -> None:
    """Wait until every job has ended."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        while connection.execute("select 1 from jobs where finished_at is null limit 1").fetchone():
            time.sleep(0.5)


def _ends(database_url: str) -> Mapping[str, Ended]:
    """How all jobs ended, by their ids."""
    with psycopg.connect(database_url) as connection:
        return {row[0]: Ended(*row[1:]) for row in connection.execute(_ENDED)}


def _await_webhooks(received: Received, expected: int) -> None:
    give_up = time.monotonic() + _WEBHOOKS_WAIT_S
    while len(received.accepted) < expected and time.monotonic() < give_up:
        time.sleep(1.0)


def chaos(minutes: float, seed: int, users: int, mean_s: float) -> list[Figure]:
    """Run the drill and judge it."""
    with ExitStack() as stack:
        received = stack.enter_context(receiver(seed))
        stack.enter_context(environment(WARPFOLD_WEBHOOK_ALLOW_PRIVATE="true"))
        service, data_dir = stack.enter_context(measured_service())
        database_url = (data_dir / "database_url").read_text().strip()
        people = [
            User(stack.enter_context(Client(service.url, token)), seed + index, received.url)
            for index, token in enumerate(_tokens(database_url, users))
        ]
        target = Target(data_dir)
        with blows(target, seed, mean_s) as record, ThreadPoolExecutor(users) as pool:
            until = time.monotonic() + 60 * minutes
            list(pool.map(lambda user: user.work(until), people))
        _await_ends(database_url)
        ends = _ends(database_url)
        jobs = [job for user in people for job in user.asked]
        _await_webhooks(received, sum(job.webhook for job in jobs))
        wrong = [
            f"{job.kind} {job.id}: {fault}"
            for user in people
            for job in user.asked
            if (fault := _wrong(user, job, ends[job.id]))
        ]
        twice = [f"{job.kind} {job.id}: {ends[job.id]}" for job in jobs if not ends[job.id].once]
    left = [process for processes in target.processes().values() for process in processes]
    for line in [*wrong, *twice, *map(str, left)]:
        print(line, file=sys.stderr)
    return _figures(jobs, record, received, (len(wrong), len(twice), len(left)))


def _figures(jobs: Sequence[Asked], record: Record, received: Received, bad: tuple[int, int, int]) -> list[Figure]:
    wrong, twice, left = bad
    webhooks, arrived = sum(job.webhook for job in jobs), len(received.accepted)
    again = sum(received.accepted.values()) - arrived
    kinds = ", ".join(f"{count:,} × {kind}" for kind, count in Counter(job.kind for job in jobs).most_common())
    happened = ", ".join(f"{times} × {blow}" for blow, times in sorted(record.times.items()))
    return [
        Figure("jobs", f"{len(jobs):,} ({kinds})", "", True),
        Figure("blows", f"{record.total} ({happened})", "", True),
        Figure("jobs with another end than the right one", str(wrong), "0", wrong == 0),
        Figure("jobs that did not end exactly once", str(twice), "0", twice == 0),
        Figure(
            "webhooks that arrived, of those asked for",
            f"{arrived:,} of {webhooks:,} ({again} more than once)",
            "all",
            arrived == webhooks and received.forged == 0,
        ),
        Figure("processes left behind", str(left), "0", left == 0),
    ]


def main() -> int:
    """Run, print, and return 0 if nothing was lost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0, help="how long users hand in jobs")
    parser.add_argument("--users", type=int, default=3, help="how many users there are")
    parser.add_argument("--pause", type=float, default=30.0, help="seconds between two blows, on average")
    parser.add_argument("--seed", type=int, default=1, help="the seed of work and blows")
    parser.add_argument("--out", type=Path, help="write the figures with their provenance as JSON")
    options = parser.parse_args()
    figures = chaos(options.minutes, options.seed, options.users, options.pause)
    return report("Chaos", figures, options.out)


if __name__ == "__main__":
    sys.exit(main())
