"""Presets: jobs that never go to a slot, because their children do.

A preset's row only says how its children stand. The dispatcher brings it up to date from the children's rows, by
guarded statements that are safe to repeat: if any process dies on the way, the next pass does the rest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import (
    JSON,
    ColumnElement,
    Connection,
    Row,
    Text,
    and_,
    bindparam,
    case,
    cast,
    false,
    func,
    literal_column,
    or_,
    select,
    update,
)

from warpfold.app.db import JOB
from warpfold.app.jobs.transitions import Change, durably, wake_dispatcher
from warpfold.app.tables.jobs import NONE, is_, jobs
from warpfold.contract.kinds.preset import ChildOutcome, PresetResult, SkippedChild
from warpfold.contract.states import EventType, Reason, Status

UNIT = "jobs"


@dataclass(frozen=True, slots=True)
class Child:
    """A part of a preset, in brief."""

    id: UUID
    name: str
    kind: str
    status: Status
    version: int
    needs: str
    handed_over: bool
    reason: str | None
    error: str | None

    @property
    def skipped(self) -> bool:
        """Whether it was not run because nothing here can run it."""
        return self.status is Status.FAILED and self.reason == Reason.UNAVAILABLE


@dataclass(frozen=True, slots=True)
class Family:
    """A job with children that has not ended, and how its children stand. `done` is how many have ended by its row.
    `skipped` counts the failed children that nothing here can run: a preset does without them, a benchmark on named
    devices does not."""

    id: UUID
    kind: str
    status: Status
    done: int
    cancel_requested: bool
    total: int
    started: int
    succeeded: int
    failed: int
    cancelled: int
    skipped: int

    @property
    def ended(self) -> int:
        return self.succeeded + self.failed + self.cancelled

    @property
    def is_behind(self) -> bool:
        """Whether the preset's row lags behind its children."""
        return self.ended > self.done or (self.started > 0 and self.status is Status.QUEUED)

    @property
    def outcome(self) -> Status | None:
        """How the preset ends; None while a child has not ended. A preset that was to be cancelled is cancelled,
        unless that came too late for all of its children; otherwise it ends like the worst of them."""
        if self.ended < self.total:
            return None
        missing = self.skipped if self.kind == "preset" else 0
        if self.succeeded and self.succeeded + missing == self.total:
            return Status.SUCCEEDED
        return Status.FAILED if self.failed and not self.cancel_requested else Status.CANCELLED


_parent = jobs.c.needs == literal_column(f"'{NONE}'")
_active = and_(_parent, or_(is_(Status.QUEUED), is_(Status.RUNNING)))
_this = jobs.c.id == bindparam("the_preset")
_child = jobs.alias("child")


def _count(status: Status) -> ColumnElement[int]:
    return func.count().filter(is_(status, _child)).label(status.value)


_FAMILIES = (
    select(
        jobs.c.id,
        jobs.c.kind,
        jobs.c.status,
        jobs.c.progress_done,
        jobs.c.cancel_requested_at.is_not(None).label("cancel_requested"),
        func.count().label("total"),
        func.count().filter(or_(_child.c.started_at.is_not(None), _child.c.finished_at.is_not(None))).label("begun"),
        *(_count(status) for status in (Status.SUCCEEDED, Status.FAILED, Status.CANCELLED)),
        func.count()
        .filter(is_(Status.FAILED, _child), _child.c.reason == literal_column(f"'{Reason.UNAVAILABLE.value}'"))
        .label("skipped"),
    )
    .join(_child, _child.c.parent_id == jobs.c.id)
    .where(_active)
    .group_by(jobs.c.id)
)
_CHILDREN = (
    select(
        jobs.c.id,
        jobs.c.name,
        jobs.c.kind,
        jobs.c.status,
        jobs.c.version,
        jobs.c.needs,
        jobs.c.dispatched_at.is_not(None).label("handed_over"),
        jobs.c.reason,
        jobs.c.error,
    )
    .where(jobs.c.parent_id == bindparam("the_preset"))
    .order_by(jobs.c.seq)
)
_MS = (
    (func.extract("epoch", jobs.c.started_at - jobs.c.created_at) * 1000),
    (func.extract("epoch", func.now() - jobs.c.started_at) * 1000),
)
_TIMES = select(*_MS).where(_this)
_START = Change(
    update(jobs)
    .where(_this, _parent, is_(Status.QUEUED))
    .values(
        status=Status.RUNNING,
        started_at=func.coalesce(
            select(func.min(_child.c.started_at)).where(_child.c.parent_id == jobs.c.id).scalar_subquery(), func.now()
        ),
        progress_total=bindparam("total"),
        progress_unit=UNIT,
    ),
    EventType.STARTED,
)
_PROGRESS = (
    update(jobs)
    .where(_this, _active, jobs.c.progress_done < bindparam("done"))
    .values(progress_done=bindparam("done"), version=jobs.c.version + 1)
    .returning(func.pg_notify(JOB, cast(jobs.c.id, Text)))
)
_EVENT = {
    Status.SUCCEEDED: EventType.SUCCEEDED,
    Status.FAILED: EventType.FAILED,
    Status.CANCELLED: EventType.CANCELLED,
}
_END = {
    status: Change(
        update(jobs)
        .where(_this, _active)
        .values(
            status=status,
            finished_at=func.now(),
            reason=bindparam("why"),
            error=bindparam("sentence"),
            result=bindparam("outcome", type_=JSON(none_as_null=True)),
        ),
        event,
    )
    for status, event in _EVENT.items()
}
_LOCK_CHILDREN = (
    select(jobs.c.id)
    .where(jobs.c.parent_id == bindparam("the_preset"))
    .order_by(jobs.c.id)
    .with_for_update(key_share=True)
)
_CANCEL_QUEUED = Change(
    update(jobs)
    .where(jobs.c.parent_id == bindparam("the_preset"), is_(Status.QUEUED))
    .values(status=Status.CANCELLED, cancel_requested_at=func.now(), finished_at=func.now()),
    EventType.CANCELLED,
)
_CANCEL_RUNNING = Change(
    update(jobs)
    .where(jobs.c.parent_id == bindparam("the_preset"), is_(Status.RUNNING), jobs.c.cancel_requested_at.is_(None))
    .values(cancel_requested_at=func.now()),
    EventType.CANCEL_REQUESTED,
)
_CANCEL = Change(
    update(jobs).where(_this, _active, jobs.c.cancel_requested_at.is_(None)).values(cancel_requested_at=func.now()),
    EventType.CANCEL_REQUESTED,
)

versions = case(
    (
        _parent,
        select(func.coalesce(func.sum(_child.c.version), 0))
        .where(_child.c.parent_id == jobs.c.id)
        .correlate(jobs)
        .scalar_subquery(),
    ),
    else_=0,
)
"""The versions of a preset's children, added up: the sum changes with each of them. It is 0 for any other job."""

waiting = case(
    (
        and_(_parent, is_(Status.RUNNING)),
        select(_child.c.id).where(_child.c.parent_id == jobs.c.id, is_(Status.QUEUED, _child)).exists(),
    ),
    else_=false(),
).label("children_wait")
"""Whether a child of a running preset is queued."""


def children(connection: Connection, preset: UUID) -> tuple[Child, ...]:
    """The jobs of a preset, in their order."""
    rows = connection.execute(_CHILDREN, {"the_preset": preset})
    return tuple(Child(**{**row, "status": Status(row["status"])}) for row in rows.mappings())


def unsettled(connection: Connection) -> list[Family]:
    """The presets whose rows do not say yet how their children stand."""
    families = (_family(row) for row in connection.execute(_FAMILIES))
    return [family for family in families if family.is_behind]


def settle(connection: Connection, families: Sequence[Family]) -> None:
    """Write into the presets' rows how their children stand. It is safe to repeat, and for several callers at a
    time."""
    durably(connection)
    for family in families:
        this = {"the_preset": family.id}
        _START.run(connection, {**this, "total": family.total})
        connection.execute(_PROGRESS, {**this, "done": family.ended})
        if family.outcome is not None:
            _end(connection, family, family.outcome)


def cancel(connection: Connection, preset: UUID) -> None:
    """Cancel the children that wait, leave the running ones a note, and end the preset if that was all."""
    this = {"the_preset": preset}
    _CANCEL.run(connection, this)
    connection.execute(_LOCK_CHILDREN, this)  # so that no child goes back to the queue in between, and runs
    _CANCEL_QUEUED.run(connection, this)
    _CANCEL_RUNNING.run(connection, this)
    settle(connection, [_family(row) for row in connection.execute(_FAMILIES.where(jobs.c.id == preset))])
    wake_dispatcher(connection)


def _end(connection: Connection, family: Family, outcome: Status) -> None:
    ending: dict[str, object] = {"the_preset": family.id, "why": None, "sentence": None, "outcome": None}
    data: dict[str, object] = {}
    if outcome is Status.SUCCEEDED:
        ending["outcome"] = _result(connection, family.id).model_dump(mode="json")
    if outcome is Status.FAILED:
        failed = [child for child in children(connection, family.id) if child.status is Status.FAILED]
        none_could = family.skipped == family.total
        ending["why"] = data["reason"] = (Reason.UNAVAILABLE if none_could else Reason.CHILDREN_FAILED).value
        ending["sentence"] = _sentence(failed, family.total)
    _END[outcome].run(connection, ending, data)


def _sentence(failed: Sequence[Child], total: int) -> str:
    """How many jobs failed, and for each cause which jobs they were."""
    causes: dict[str, list[str]] = {}
    for child in failed:
        causes.setdefault(f"{child.reason}: {child.error}", []).append(child.name)
    by_cause = "; ".join(f"{', '.join(names)} ({cause.rstrip('.')})" for cause, names in causes.items())
    return f"{len(failed)} of {total} jobs failed: {by_cause}."


def _result(connection: Connection, preset: UUID) -> PresetResult:
    queued_ms, total_ms = connection.execute(_TIMES, {"the_preset": preset}).one()
    jobs_of_preset = children(connection, preset)
    return PresetResult(
        jobs=tuple(
            ChildOutcome(job_id=child.id, name=child.name, kind=child.kind)
            for child in jobs_of_preset
            if not child.skipped
        ),
        skipped=tuple(
            SkippedChild(job_id=child.id, name=child.name, kind=child.kind, why=child.error or "")
            for child in jobs_of_preset
            if child.skipped
        ),
        queued_ms=max(0.0, float(queued_ms)),
        total_ms=float(total_ms),
    )


def _family(row: Row[Any]) -> Family:
    return Family(
        id=row.id,
        kind=row.kind,
        status=Status(row.status),
        done=row.progress_done,
        cancel_requested=row.cancel_requested,
        total=row.total,
        started=row.begun,
        succeeded=row.succeeded,
        failed=row.failed,
        cancelled=row.cancelled,
        skipped=row.skipped,
    )
