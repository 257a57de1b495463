"""The tables of jobs: the one truth about what was accepted, what runs and what came out.

`spec` and `result` are `json`, not `jsonb`: jsonb turns numbers into decimals and so loses −0.0, the very thing an
exact service must return (docs/decisions/0005-json-not-jsonb.md).
"""

from collections.abc import Iterable

from sqlalchemy import (
    ARRAY,
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ColumnElement,
    DateTime,
    Double,
    ForeignKey,
    FromClause,
    Identity,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    String,
    Table,
    Text,
    Uuid,
    func,
    literal_column,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from warpfold.app.tables.schema import metadata
from warpfold.contract.states import PRIORITIES, Status

_NOW = func.now()

jobs = Table(
    "jobs",
    metadata,
    Column("id", Uuid, primary_key=True),
    # Order of acceptance: pages are cut by it and equals in the queue are served by it.
    Column("seq", BigInteger, Identity(), nullable=False, unique=True),
    Column("version", Integer, nullable=False, server_default=text("1")),  # the row's ETag and event number
    Column("owner_id", ForeignKey("users.id"), nullable=False),
    Column("kind", String(32), nullable=False),
    Column("status", String(16), nullable=False, server_default="queued"),
    Column("shared", Boolean),  # whether everyone sees it (app.auth.visibility); null: it is older than sharing
    Column("priority", SmallInteger, nullable=False),  # the priority that was asked for
    # The rank in the queue, larger first: its priority, lowered for a high job beyond the owner's budget; waiting
    # raises it.
    Column("rank", SmallInteger, nullable=False, server_default=text("1")),
    Column("needs", String(16), nullable=False),  # the slots that can run it: any, cpu, cuda; none with children
    # A small job takes about a millisecond. A slot holds many of them (docs/decisions/0021-small-jobs-in-groups.md).
    Column("small", Boolean, nullable=False, server_default=text("false")),
    Column("parent_id", ForeignKey("jobs.id", ondelete="CASCADE")),  # the preset that it is part of
    Column("name", String(128)),  # the name of a child in its preset; of another job what its owner calls it
    # Of no declared length: before there are statistics, Postgres takes a row for as wide as half of what it may be.
    Column("note", Text),
    Column("batch_id", ForeignKey("batches.id")),  # the batch that brought it; of a child: null
    Column("batch_index", Integer),  # its place among the jobs of the batch, from 0
    Column("timeout_s", Double, nullable=False),
    Column("spec", JSON, nullable=False),  # not compressed (migration 0020): digits hardly shrink
    Column("spec_brief", JSON(none_as_null=True)),  # what lists show where `spec` carries many values
    Column("tags", JSONB, nullable=False, server_default=text("'{}'")),
    Column("request_id", String(64)),  # the request that brought it, for the logs
    Column("traceparent", String(64)),  # the span that accepted it (W3C Trace Context)
    Column("attempt", Integer, nullable=False, server_default=text("1")),  # names one hand-over to a worker
    Column("losses", Integer, nullable=False, server_default=text("0")),  # attempts that ended with a lost worker
    Column("child_died", Boolean, nullable=False, server_default=text("false")),  # in the attempt before this one
    Column("work", JSON(none_as_null=True)),  # a Work; null where it predicts no time
    Column("slot", String(128)),  # where the dispatcher sent it
    Column("dispatched_at", DateTime(timezone=True)),
    Column("placement", JSON(none_as_null=True)),  # why it was sent there, a Placement, where the service chose
    Column("expected_s", Double),  # how long it was predicted to run there
    Column("worker", String(128)),
    Column("lease_token", Uuid),
    Column("lease_expires_at", DateTime(timezone=True)),
    Column("cancel_requested_at", DateTime(timezone=True)),
    Column("progress_done", BigInteger, nullable=False, server_default=text("0")),
    Column("progress_total", BigInteger, nullable=False, server_default=text("0")),
    Column("progress_unit", String(32), nullable=False, server_default=""),
    Column("reason", String(32)),
    Column("error", Text),
    Column("result", JSON(none_as_null=True)),
    Column("secret", Uuid),  # the waiting request believes an outcome with this secret
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=_NOW),
    Column("started_at", DateTime(timezone=True)),
    Column("finished_at", DateTime(timezone=True)),
    CheckConstraint("status in ('queued', 'running', 'succeeded', 'failed', 'cancelled')", name="status"),
    CheckConstraint(
        "(status = 'running' and needs <> 'none') = (lease_expires_at is not null)", name="lease_while_running"
    ),
    CheckConstraint("(status in ('succeeded', 'failed', 'cancelled')) = (finished_at is not null)", name="finished"),
)
# The queue and the running jobs are few among many finished ones: partial indexes keep them at hand.
Index(
    "ix_jobs_queue",
    jobs.c.rank.desc(),
    jobs.c.seq,
    postgresql_where=text("status = 'queued' and needs <> 'none'"),
)
# Who is next (app.jobs.turns): one probe finds the next owner of a lane, or the oldest job of an owner.
Index(
    "ix_jobs_waiting",
    jobs.c.rank,
    jobs.c.needs,
    jobs.c.owner_id,
    jobs.c.seq,
    postgresql_where=text("status = 'queued' and dispatched_at is null and needs <> 'none'"),
)
Index("ix_jobs_in_hand", jobs.c.slot, postgresql_where=text("slot is not null and finished_at is null"))
Index("ix_jobs_high", jobs.c.owner_id, jobs.c.created_at, postgresql_where=text("priority = 2 and rank = 2"))
Index("ix_jobs_running", jobs.c.lease_expires_at, postgresql_where=text("status = 'running'"))
Index("ix_jobs_owner_active", jobs.c.owner_id, postgresql_where=text("status in ('queued', 'running')"))
# A batch's progress is a read of this index alone, and its jobs come in their order.
Index(
    "ix_jobs_batch_id_seq",
    jobs.c.batch_id,
    jobs.c.seq,
    postgresql_include=["status", "started_at", "finished_at"],
    postgresql_where=text("batch_id is not null"),
)
# Lists (app.jobs.listing): a probe finds the newest jobs of an owner, a status and a kind, or of a status and a kind.
Index("ix_jobs_owner_list", jobs.c.owner_id, jobs.c.status, jobs.c.kind, jobs.c.seq)
Index("ix_jobs_list", jobs.c.status, jobs.c.kind, jobs.c.seq)
# What another user may see of the jobs (app.jobs.listing): those that are shared with everyone, and old ones.
Index("ix_jobs_shared", jobs.c.seq, postgresql_where=text("shared"))
Index("ix_jobs_old", jobs.c.seq, postgresql_where=text("shared is null"))
# Where a batch is one row, the others are the jobs that came by themselves (app.batches.folding).
Index("ix_jobs_alone", jobs.c.seq, postgresql_where=text("batch_id is null"))
Index("ix_jobs_created_at", jobs.c.created_at, jobs.c.seq)
Index("ix_jobs_parent_id", jobs.c.parent_id, postgresql_where=text("parent_id is not null"))
Index("ix_jobs_families", jobs.c.id, postgresql_where=text("needs = 'none' and status in ('queued', 'running')"))
Index("ix_jobs_finished_at", jobs.c.finished_at, postgresql_where=text("finished_at is not null"))

# Which jobs have a tag, in the order of the list, and which tags have a word (app.jobs.tags). The rows of `jobs` change
# several times; these are written once, and no index of `jobs` has the tags to carry along.
job_tags = Table(
    "job_tags",
    metadata,
    Column("tag_id", BigInteger, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),  # of the job
)
tag_words = Table(
    "tag_words",
    metadata,
    Column("word", Text(collation="C"), primary_key=True),  # in lower case; or a colon and the whole name of the tag
    Column("tag_id", BigInteger, primary_key=True, autoincrement=False),
)

events = Table(
    "job_events",
    metadata,
    Column("job_id", ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
    Column("seq", Integer, primary_key=True),  # the job's version after the change
    Column("type", String(32), nullable=False),
    Column("data", JSON, nullable=False),
    Column("at", DateTime(timezone=True), nullable=False, server_default=_NOW),
)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("owner_id", ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    Column("key", String(255), primary_key=True),
    Column("body_hash", LargeBinary(32), nullable=False),
    # The job or the batch that came with the key.
    Column("job_id", ForeignKey("jobs.id", ondelete="CASCADE"), index=True),
    Column("batch_id", ForeignKey("batches.id", ondelete="CASCADE"), index=True),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=_NOW, index=True),
    CheckConstraint("num_nonnulls(job_id, batch_id) = 1", name="one_of_both"),
)

turns = Table(
    "turns",
    metadata,
    Column("backend", String(16), primary_key=True),
    Column("rank", SmallInteger, primary_key=True),
    Column("owner_id", BigInteger, nullable=False),  # who had the last turn there; the next larger one is next
    # The least time that a user who waited there had used: whoever comes there begins with it.
    Column("used_s", Double, nullable=False, server_default=text("0")),
)

# The seconds for which the jobs of users have held slots of a backend while others waited, in the order of `owners`
# (app.jobs.slot_time). One row, because a hand-over writes all of them.
slot_time = Table(
    "slot_time",
    metadata,
    Column("backend", String(16), primary_key=True),
    Column("owners", ARRAY(BigInteger), nullable=False),
    Column("used_s", ARRAY(Double), nullable=False),
    Column("counted_at", DateTime(timezone=True), nullable=False),  # what was held later is not in it
)

workers = Table(
    "workers",
    metadata,
    Column("id", String(128), primary_key=True),  # host:slot
    Column("slot", String(32), nullable=False),  # cpu, cuda:0, …
    Column("backend", String(16), nullable=False),  # which jobs it takes: cpu or cuda
    Column("host", String(128), nullable=False),
    Column("pid", Integer, nullable=False),
    Column("state", String(16), nullable=False),  # starting, idle, running, stopped
    Column("job_id", Uuid),
    Column("draining", Boolean, nullable=False, server_default=text("false")),  # an admin wants it to take no more jobs
    Column("device", JSON(none_as_null=True)),
    Column("rates", JSON(none_as_null=True)),  # how fast the slot is: a RatesView, once it is measured
    Column("reading", JSON(none_as_null=True)),  # of the device's gauges, with the heartbeat
    Column("version", String(32), nullable=False),
    Column("started_at", DateTime(timezone=True), nullable=False, server_default=_NOW),
    Column("heartbeat_at", DateTime(timezone=True), nullable=False, server_default=_NOW),
    Column("expires_at", DateTime(timezone=True), nullable=False),
    CheckConstraint("state in ('starting', 'idle', 'running', 'stopped')", name="state"),
)


def is_(status: Status, table: FromClause = jobs) -> ColumnElement[bool]:
    """Whether a row has a status, as `table.status = 'queued'` with the status a constant in the text of the
    statement.

    With a parameter in its place, a prepared plan could not use the partial indexes above.
    """
    return table.c.status == literal_column(f"'{status.value}'", String)


def lives(table: FromClause = workers) -> ColumnElement[bool]:
    """Whether the worker has reported itself in time: now is within the time of its last report, either way.

    A report from the future tells that the server's clock was set back, and is no sign of life. A worker that lives
    reports itself within seconds, so after any step of the clock the answer is soon true again.
    """
    lasts = table.c.expires_at - table.c.heartbeat_at
    return (table.c.expires_at > func.now()) & (table.c.heartbeat_at - lasts < func.now())


def in_hand(table: FromClause = jobs) -> ColumnElement[bool]:
    """Whether a job runs, or was handed to a slot and may run at any moment. A preset has no slot: its children
    count."""
    # The condition of the one index that holds these rows: a condition on the status would allow plans by other
    # indexes.
    return table.c.slot.is_not(None) & table.c.finished_at.is_(None)


def still(status: Status, table: FromClause = jobs) -> ColumnElement[bool]:
    """The condition of `is_` for a row that is found by its id or otherwise, in words that no index answers: with the
    index of waiting jobs, a plan that was made while the table was empty would read the whole queue."""
    return table.c.status.concat(literal_column("''", String)) == literal_column(f"'{status.value}'", String)


def in_groups(table: FromClause = jobs) -> ColumnElement[bool]:
    """Whether a job may run in a group: it is small, and no worker was lost with it. A job with which a worker was lost
    runs alone, so that no other job is blamed for it."""
    return table.c.small & (table.c.losses == literal_column("0", Integer))


NONE = "none"
"""The word in `needs` for a preset, which needs no slot, because its children run in its place."""


def waits(table: FromClause = jobs) -> ColumnElement[bool]:
    """Whether a job is queued and to be run: a preset only waits for its children."""
    return is_(Status.QUEUED, table) & (table.c.needs != literal_column(f"'{NONE}'", String))


def still_waits() -> ColumnElement[bool]:
    """The condition of `waits` for a job that is found by its id."""
    return still(Status.QUEUED) & (jobs.c.needs != literal_column(f"'{NONE}'", String))


def in_lanes(needs: Iterable[str], table: FromClause = jobs) -> ColumnElement[bool]:
    """Whether a job waits for a slot with one of `needs` and was not handed over, in the words of
    `ix_jobs_waiting`."""
    ranks = [literal_column(str(rank), SmallInteger) for rank in sorted(PRIORITIES.values())]
    words = [literal_column(f"'{word}'", String) for word in needs]
    return waits(table) & table.c.dispatched_at.is_(None) & table.c.rank.in_(ranks) & table.c.needs.in_(words)


_SERVES = workers.c.state.in_([literal_column("'idle'", String), literal_column("'running'", String)])
OPEN = lives() & _SERVES & ~workers.c.draining
"""Whether a worker takes jobs."""
