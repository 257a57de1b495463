"""Jobs as a test submits them and looks at them afterwards, straight in Postgres."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Connection, Text, cast, func, insert, select, update

from tests.support.waiting import until
from warpfold.app.auth.visibility import THE_SERVICE
from warpfold.app.db import BlockingDatabase
from warpfold.app.jobs import accept, losses, store, transitions, workers
from warpfold.app.jobs.estimates import see
from warpfold.app.jobs.events import events_after
from warpfold.app.jobs.store import Job
from warpfold.app.jobs.workers import WorkerInfo
from warpfold.app.quotas.quota import Limits
from warpfold.app.tables.jobs import events, jobs, slot_time
from warpfold.app.tables.measurements import measurements
from warpfold.app.tables.users import users
from warpfold.contract.placement import RatesView, Work
from warpfold.contract.states import PRIORITIES, TERMINAL


@dataclass
class Ledger:
    database: BlockingDatabase
    _owners: dict[str, int] = field(default_factory=dict)

    def submit(
        self,
        do: str = "say hello",
        *,
        spec: Mapping[str, Any] | None = None,
        owner: str = "ada",
        priority: str = "normal",
        needs: str = "any",
        timeout_s: float = 60.0,
        small: bool = False,
        work: Work | None = None,
        secret: UUID | None = None,
    ) -> UUID:
        """Accept a job, for the dispatcher to hand over; without `spec` one that the children of tests understand."""
        new = self._new(
            spec=spec or {"do": do}, owner=owner, priority=priority, needs=needs, timeout_s=timeout_s, small=small
        )
        self.database.run(accept.accept, replace(new, work=None if work is None else work.model_dump(), secret=secret))
        return new.id

    def submit_small(self, do: str = "say hello", *, owner: str = "ada") -> UUID:
        """Accept a small job as the api does: it goes to an idle slot with its acceptance, if it may."""
        new = self._new(spec={"do": do}, owner=owner, priority="normal", needs="any", timeout_s=60.0, small=True)
        self.database.run(accept.submit, new, None, Limits(queued=1000, high_per_hour=0))
        return new.id

    def _new(
        self, *, spec: Mapping[str, Any], owner: str, priority: str, needs: str, timeout_s: float, small: bool
    ) -> Job:
        return Job.new(
            id=uuid4(),
            owner=owner,
            owner_id=self.owner(owner),
            kind="reduce",
            priority=PRIORITIES[priority],
            needs=needs,
            timeout_s=timeout_s,
            small=small,
            spec=json.dumps(spec),
        )

    def owner(self, name: str) -> int:
        if name not in self._owners:
            self._owners[name] = self.database.run(_add_user, name)
        return self._owners[name]

    def job(self, job_id: UUID) -> Job:
        job = self.database.run(store.get, job_id)
        assert job is not None
        return job

    def start(self, job_id: UUID) -> datetime | None:
        """When a waiting job is to start, by a look at the queue now; None where that is unknown."""
        stamp = self.database.run(store.stamp, job_id, THE_SERVICE)
        assert stamp.waiter is not None
        seen = self.database.run(see)
        if unread := seen.unread([stamp.waiter]):
            self.database.run(seen.read, unread)
        return seen.estimates([stamp.waiter])[job_id].start_at

    def history(self, job_id: UUID) -> list[str]:
        """The types of a job's events, in order."""
        return [event.type.value for event in self.database.run(events_after, job_id, 0)]

    def events(self, job_id: UUID) -> list[tuple[int, str, Mapping[str, Any]]]:
        """A job's events, in order: number, type and data."""
        return [(event.seq, event.type.value, event.data) for event in self.database.run(events_after, job_id, 0)]

    def column(self, job_id: UUID, name: str) -> Any:
        return self.database.run_patiently(30.0, _column, job_id, name)

    def columns(self, job_ids: Sequence[UUID], name: str) -> list[Any]:
        """The same of many jobs, in the order of `job_ids`, by one statement."""
        return self.database.run_patiently(30.0, _columns, job_ids, name)

    def result_text(self, job_id: UUID) -> str:
        """The stored result, as its JSON text."""
        return str(self.database.run(_result_text, job_id))

    def result(self, job_id: UUID) -> dict[str, Any]:
        stored: dict[str, Any] = json.loads(self.result_text(job_id))
        return stored

    def count(self) -> int:
        """How many jobs there are."""
        return self.database.run(_count_jobs)

    def cancel(self, job_id: UUID) -> None:
        self.database.run(transitions.request_cancel, job_id)

    @contextmanager
    def locked(self, job_id: UUID) -> Iterator[None]:
        """Keep everybody from changing a job within the block."""
        with self.database._engine.begin() as connection:
            connection.execute(select(jobs.c.id).where(jobs.c.id == job_id).with_for_update())
            yield

    def lose(self, job_id: UUID, max_losses: int = 3) -> None:
        """Do to a running job what the dispatcher does when the job's worker has fallen silent."""
        running = self.database.run(losses.running_attempts)
        silent = [lease for lease in running if lease.job_id == job_id]
        assert self.database.run(losses.take_back_silent, silent, max_losses) == [job_id]

    def take_back(self, job_id: UUID) -> None:
        """As `lose`, while the worker lives, and may renew the lease in between."""
        while True:
            running = [each for each in self.database.run(losses.running_attempts) if each.job_id == job_id]
            if self.database.run(losses.take_back_silent, running, 3):
                return

    def age(self, job_id: UUID, seconds: float) -> None:
        """As if the job had been accepted, and handed over if it was, so much earlier."""
        interval = func.make_interval(0, 0, 0, 0, 0, 0, seconds)
        self.set(job_id, created_at=jobs.c.created_at - interval, dispatched_at=jobs.c.dispatched_at - interval)

    def pass_time(self, seconds: float) -> None:
        """Let so much time have passed since all that has happened to jobs."""
        self.database.run(_pass_time, seconds)

    def set(self, job_id: UUID, **values: object) -> None:
        self.database.run(_set, job_id, values)

    def worker(
        self,
        slot: str,
        host: str = "here",
        state: str = "idle",
        lease_s: float = 60.0,
        *,
        rates: RatesView | None = None,
    ) -> str:
        """A live worker that reported itself; its id. One that tells its `rates` has opened its device."""
        info = WorkerInfo(f"{host}:{slot}", slot, slot.partition(":")[0], host, 1, "0", None)
        if rates is not None:
            info = replace(info, device={}, rates=rates.model_dump())
        self.database.run(workers.report, info, state, None, lease_s)
        return info.id

    def drain(self, worker: str) -> None:
        assert self.database.run(workers.drain, worker)

    def resume(self, worker: str) -> None:
        assert self.database.run(workers.resume, worker)

    def measured(self, job_id: UUID) -> list[Mapping[str, Any]]:
        """The points of a job, without what tells their rows apart."""
        return self.database.run(_measured, job_id)

    def points(self, job_id: UUID) -> int:
        return self.database.run(_points, job_id)

    def until(self, job_id: UUID, column: str, value: object, within_s: float = 120.0) -> None:
        """Wait until the job's row has this value in the column."""
        until(
            lambda: self.column(job_id, column) == value,
            within_s,
            describe=lambda: f"{column} is {self.column(job_id, column)}, not {value}",
        )

    def wait(self, job_ids: Sequence[UUID], within_s: float) -> None:
        """Wait until all of the jobs have ended. Postgres may have been restarted before."""

        def still_open() -> int:
            return self.database.run_patiently(30.0, _count_open, job_ids)

        until(
            lambda: still_open() == 0,
            within_s,
            every_s=0.02,
            describe=lambda: f"{still_open()} of {len(job_ids)} jobs have not ended",
        )


def _add_user(connection: Connection, name: str) -> int:
    user_id: int = connection.execute(insert(users).values(name=name, role="user").returning(users.c.id)).scalar_one()
    return user_id


def _column(connection: Connection, job_id: UUID, name: str) -> Any:
    return connection.execute(select(jobs.c[name]).where(jobs.c.id == job_id)).scalar_one()


def _columns(connection: Connection, job_ids: Sequence[UUID], name: str) -> list[Any]:
    rows = connection.execute(select(jobs.c.id, jobs.c[name]).where(jobs.c.id.in_(job_ids)))
    by_id: dict[UUID, Any] = {row[0]: row[1] for row in rows}
    return [by_id[job_id] for job_id in job_ids]


def _result_text(connection: Connection, job_id: UUID) -> str:
    return connection.execute(select(cast(jobs.c.result, Text)).where(jobs.c.id == job_id)).scalar_one()


def _set(connection: Connection, job_id: UUID, values: Mapping[str, object]) -> None:
    connection.execute(update(jobs).where(jobs.c.id == job_id).values(**values))


def _pass_time(connection: Connection, seconds: float) -> None:
    span = timedelta(seconds=seconds)
    moments = ("created_at", "dispatched_at", "started_at", "finished_at")
    connection.execute(update(jobs).values({name: jobs.c[name] - span for name in moments}))
    connection.execute(update(slot_time).values(counted_at=slot_time.c.counted_at - span))


def _measured(connection: Connection, job_id: UUID) -> list[Mapping[str, Any]]:
    rows = connection.execute(select(measurements).where(measurements.c.job_id == job_id)).mappings()
    return [{name: row[name] for name in row if name not in ("id", "job_id", "created_at")} for row in rows]


def _points(connection: Connection, job_id: UUID) -> int:
    return connection.execute(select(func.count()).where(measurements.c.job_id == job_id)).scalar_one()


def _count_jobs(connection: Connection) -> int:
    return connection.execute(select(func.count()).select_from(jobs)).scalar_one()


def _count_open(connection: Connection, job_ids: Sequence[UUID]) -> int:
    still = select(func.count()).where(jobs.c.id.in_(job_ids), jobs.c.status.not_in(TERMINAL))
    return connection.execute(still).scalar_one()


def points_of(connection: Connection, job_ids: Sequence[UUID]) -> dict[UUID, int]:
    """How many measured points each of the jobs has."""
    counted = (
        select(measurements.c.job_id, func.count().label("points"))
        .where(measurements.c.job_id.in_(job_ids))
        .group_by(measurements.c.job_id)
    )
    return {row.job_id: row.points for row in connection.execute(counted)}


def succeeded_events(connection: Connection, job_ids: Sequence[UUID]) -> dict[UUID, int]:
    """How many `succeeded` events each of the jobs has."""
    counted = (
        select(events.c.job_id, func.count().label("succeeded"))
        .where(events.c.job_id.in_(job_ids), events.c.type == "succeeded")
        .group_by(events.c.job_id)
    )
    return {row.job_id: row.succeeded for row in connection.execute(counted)}
