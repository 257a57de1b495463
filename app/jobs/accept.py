"""A job is accepted: its spec is checked against this server, and stored with its idempotency key and first event.

One transaction stores the job, its children, its webhook and its use of uploaded arrays; from its commit on, nothing
loses the job. Statements are built once, with bound parameters: SQLAlchemy then finds their compiled form at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Integer,
    Select,
    SmallInteger,
    String,
    Text,
    and_,
    bindparam,
    case,
    cast,
    func,
    insert,
    literal,
    literal_column,
    select,
)
from sqlalchemy.dialects.postgresql import insert as upsert

from warpfold.app.auth.access_tokens import Principal
from warpfold.app.config import Settings
from warpfold.app.datasets import repository as datasets
from warpfold.app.db import QUEUE
from warpfold.app.http.errors import Invalid, TooMany
from warpfold.app.jobs import store, tags
from warpfold.app.jobs.store import Job
from warpfold.app.quotas.quota import Limits, QuotaName, limits_of
from warpfold.app.tables.jobs import NONE, events, idempotency_keys, in_hand, in_lanes, jobs, still, waits
from warpfold.app.tables.users import quotas
from warpfold.app.webhooks import repository as webhooks
from warpfold.contract.jobs import JobSpec, brief_of
from warpfold.contract.kinds.spec import Spec, Task
from warpfold.contract.needs import ALL
from warpfold.contract.sources import TAGGED_FIELDS
from warpfold.contract.states import PRIORITIES, EventType, Status
from warpfold.contract.webhook import Webhook
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.places.addresses import names_private

RETRY_AFTER_FULL_S = 5


@dataclass(frozen=True, slots=True)
class Key:
    """An idempotency key and the hash of the body that came with it."""

    name: str
    body_hash: bytes


@dataclass(frozen=True, slots=True)
class Submitted:
    """A job, and whether this submission made it or an earlier submission with the same key."""

    job: Job
    new: bool


@dataclass(frozen=True, slots=True)
class Submission:
    """What one request adds: a job, its children, the uploaded arrays that they need by the field that names each, and
    the webhook to call at the end."""

    job: Job
    children: tuple[Job, ...]
    datasets: Mapping[str, str]
    webhook: Webhook | None

    @classmethod
    def of(cls, spec: JobSpec, owner: Principal, request_id: str | None, traceparent: str | None) -> "Submission":
        """The submission that `spec` asks for. A job of a preset or of a benchmark on several devices takes the tags
        and the priority of its parent. `request_id` goes to the logs of all who handle the jobs, `traceparent` to
        their spans; either may be missing."""
        job = _job(spec, owner, request_id, traceparent)
        children = []
        for name, part in spec.parts():
            update = {"tags": {**part.tags, **spec.tags}, "priority": spec.priority, "webhook": None}
            child = _job(part.model_copy(update=update), owner, request_id, traceparent)
            children.append(replace(child, parent_id=job.id, name=name))
        used = {source.dataset_id: f"{field}.id" for field, source in spec.sources() if source.dataset_id is not None}
        return cls(job, tuple(children), used, spec.webhook)


def _job(spec: Spec, owner: Principal, request_id: str | None, traceparent: str | None) -> Job:
    return Job.new(
        id=uuid4(),
        owner=owner.name,
        owner_id=owner.id,
        kind=spec.kind,
        priority=PRIORITIES[spec.priority],
        needs=spec.needs() if isinstance(spec, Task) and not spec.parts() else NONE,
        small=isinstance(spec, Task) and not spec.parts() and spec.small(),
        timeout_s=spec.timeout_s,
        spec=spec.model_dump_json(exclude={"webhook"}),
        spec_brief=brief_of(spec),
        tags=spec.tags,
        request_id=request_id,
        traceparent=traceparent,
    )


def check(spec: JobSpec, settings: Settings) -> None:
    """Check what depends on this server's settings. Raises InvalidInput that names the field."""
    check_receiver(spec.webhook, settings)
    for field, source in spec.sources():
        source.check(field, settings.data_roots, settings.max_values, settings.listed_places)


def check_receiver(webhook: Webhook | None, settings: Settings) -> None:
    """Raise InvalidInput for a webhook that this server does not call."""
    if webhook is not None and not settings.webhook_allow_private and names_private(webhook.url.host or ""):
        raise InvalidInput("names a private address, which this server does not call", "webhook.url")


def check_lengths(spec: Mapping[str, Any], max_values: int) -> None:
    """Refuse far too many values before each of them is looked at. Raises Invalid that names the field."""
    for field in sorted(TAGGED_FIELDS):
        match spec.get(field):
            case {"values": [*values]} if len(values) > max_values:
                raise Invalid.of(f"{field}.values", f"{len(values)} values are more than the {max_values} allowed")


def submit(connection: Connection, submission: Submission, key: Key | None, limits: Limits) -> Submitted:
    """Store a submission, or find the job that was accepted with the same key. Raises Invalid that names the field, or
    TooMany where the owner's quota of queued jobs leaves no room."""
    assert limits.queued is not None, "the settings always say"
    assert limits.high_per_hour is not None, "the settings always say"
    high = limits.high_per_hour
    places = len(submission.children) or 1
    job = accept(connection, submission.job, limits.queued, key, places=places, high_per_hour=high)
    if job is not None:
        if submission.datasets:
            for missing in datasets.use(connection, submission.datasets.keys()):
                raise Invalid.of(submission.datasets[missing], "there is no dataset with this id, or it was deleted")
        for child in submission.children:
            accept(connection, child, high_per_hour=high)
        if job.tags or submission.children:
            tags.note(connection, [job.id])
        if submission.webhook is not None:
            _register(connection, job, submission.webhook)
        return Submitted(store.existing(connection, job.id) if submission.children else job, new=True)
    owner_id = submission.job.owner_id
    stored = None if key is None else _find_key(connection, owner_id, key.name)
    if stored is None:
        raise _queue_full(connection, owner_id, limits, len(submission.children))
    body_hash, job_id = stored
    if job_id is None or (key is not None and body_hash != key.body_hash):
        raise other_body()
    return Submitted(store.existing(connection, job_id), new=False)


def other_body() -> Invalid:
    """The answer to a key that came with another body before."""
    return Invalid.of("Idempotency-Key", "was used before with another body")


def _register(connection: Connection, job: Job, webhook: Webhook) -> None:
    if not webhooks.register(connection, job.id, job.owner_id, str(webhook.url), webhook.secret):
        raise Invalid.of("webhook.secret", "give one, or make one of your own with POST /v1/webhooks/secret")


def _queue_full(connection: Connection, owner_id: int, limits: Limits, children: int) -> TooMany:
    in_force = limits_of(connection, owner_id, limits).queued
    detail = f"{in_force} of your jobs are in the queue already; your quota allows no more."
    if children:
        detail = f"The job comes to {children} jobs; your quota of {in_force} in the queue leaves no room."
    return TooMany(detail, RETRY_AFTER_FULL_S, extension={"quota": QuotaName.QUEUED.value, "limit": in_force})


# Both counts go by an index that holds what waits or is in hand, and nothing of the owner's history.
_WAITING_OF = select(func.count()).where(in_lanes(ALL), jobs.c.owner_id == bindparam("owner_id"))
_AT_HAND_OF = select(func.count()).where(
    in_hand(), still(Status.QUEUED), jobs.c.owner_id + literal_column("0") == bindparam("owner_id")
)
_HOUR = func.make_interval(0, 0, 0, 0, 1)
_HIGH_RANK = literal_column(str(PRIORITIES["high"]), SmallInteger)
_HIGH_OF_THE_HOUR = select(func.count()).where(
    jobs.c.owner_id == bindparam("owner_id"),
    jobs.c.priority == _HIGH_RANK,
    jobs.c.rank == _HIGH_RANK,
    jobs.c.created_at > func.now() - _HOUR,
    jobs.c.needs != NONE,
)


def _rank() -> ColumnElement[int]:
    """The rank as which a new job waits: a high job beyond its owner's budget of the hour waits as a normal one. A
    preset takes nothing of the budget: its children do."""
    own_budget = select(quotas.c.high_per_hour).where(quotas.c.user_id == bindparam("owner_id")).scalar_subquery()
    budget = func.coalesce(own_budget, bindparam("high_per_hour", type_=Integer))
    asked = bindparam("priority", type_=SmallInteger)
    full = _HIGH_OF_THE_HOUR.scalar_subquery() >= budget
    beyond = and_(asked == _HIGH_RANK, bindparam("needs", type_=String) != NONE, full)
    return case((beyond, literal_column(str(PRIORITIES["normal"]), SmallInteger)), else_=asked)


@dataclass(frozen=True, slots=True)
class Used:
    """What an owner has used of their quotas: jobs in the queue, and jobs of the hour that waited as high."""

    queued: int
    high: int


_USED = select(
    (_WAITING_OF.scalar_subquery() + _AT_HAND_OF.scalar_subquery()).label("queued"),
    _HIGH_OF_THE_HOUR.scalar_subquery().label("high"),
)


def used(connection: Connection, owner_id: int) -> Used:
    """What an owner has used, which nobody adds to before the transaction ends: the owner's submissions take turns."""
    take_turn(connection, owner_id)
    return Used(*connection.execute(_USED, {"owner_id": owner_id}).one())


_STORED = (
    "id",
    "owner_id",
    "kind",
    "priority",
    "needs",
    "small",
    "timeout_s",
    "spec",
    "spec_brief",
    "tags",
    "parent_id",
    "name",
    "request_id",
    "traceparent",
)
"""The columns of a new job that come from its submission; Postgres fills the others."""


def _acceptance(*, keyed: bool) -> Select[Any]:
    """One statement that stores a job with its first event and wakes the dispatcher, where the owner has room in the
    queue and, if `keyed`, the key is new. Two requests with one key that arrive together meet in the unique index: the
    second waits for the first's commit."""
    new = [
        cast(bindparam(name, type_=Text), jobs.c[name].type)  # JSON text, as it is
        if name in ("spec", "spec_brief")
        else bindparam(name, type_=jobs.c[name].type)
        for name in _STORED
    ]
    source = select(*new, _rank().label("rank"))
    own_limit = select(quotas.c.queued).where(quotas.c.user_id == bindparam("owner_id")).scalar_subquery()
    places = bindparam("places", type_=Integer)
    room = _WAITING_OF.scalar_subquery() + _AT_HAND_OF.scalar_subquery() + places <= func.coalesce(
        own_limit, bindparam("limit")
    )
    if keyed:
        key = [bindparam(name, type_=idempotency_keys.c[name].type) for name in ("owner_id", "key", "body_hash")]
        job_id = bindparam("id", type_=jobs.c.id.type)
        kept = (
            upsert(idempotency_keys)
            .from_select(["owner_id", "key", "body_hash", "job_id"], select(*key, job_id).where(room))
            .on_conflict_do_nothing()
            .returning(idempotency_keys.c.job_id)
            .cte("kept")
        )
        source = source.select_from(kept)
    else:
        source = source.where(room)
    accepted = (
        insert(jobs)
        .from_select([*_STORED, "rank"], source)
        .returning(jobs.c.id, jobs.c.seq, jobs.c.created_at, jobs.c.rank)
        .cte("accepted")
    )
    event = select(accepted.c.id, literal(1), literal(EventType.SUBMITTED.value), literal({}, events.c.data.type))
    submitted = insert(events).from_select(["job_id", "seq", "type", "data"], event).cte("submitted")
    # The statement does not see its own insertion: all that it sees of the same rank is ahead.
    position = select(1 + func.count()).where(waits(), jobs.c.rank >= select(accepted.c.rank).scalar_subquery())
    return select(
        accepted.c.seq,
        accepted.c.created_at,
        accepted.c.rank,
        position.scalar_subquery().label("queue_position"),
        func.pg_notify(QUEUE, ""),
    ).add_cte(submitted)


_NO_LIMIT = (1 << 31) - 1
_TURNS = 0x71_75_65_75 << 32  # advisory locks "queu", one an owner
_TURN = select(func.pg_advisory_xact_lock(bindparam("turn", type_=BigInteger)))
_ACCEPT = _acceptance(keyed=False)
_ACCEPT_KEYED = _acceptance(keyed=True)
_KEY = select(idempotency_keys.c.body_hash, idempotency_keys.c.job_id).where(
    idempotency_keys.c.owner_id == bindparam("owner_id"), idempotency_keys.c.key == bindparam("key")
)


def take_turn(connection: Connection, owner_id: int) -> None:
    """Wait until no other submission of the owner is under way, and keep others waiting until the transaction ends."""
    connection.execute(_TURN, {"turn": _TURNS + owner_id})


def accept(
    connection: Connection,
    new: Job,
    limit: int = _NO_LIMIT,
    key: Key | None = None,
    *,
    places: int = 1,
    high_per_hour: int = _NO_LIMIT,
) -> Job | None:
    """Store one queued job; None if its owner has fewer than `places` left in the queue by their quota (`limit` where
    no quota was set for them), or has used the key before. A preset takes no place itself, but needs one for each
    child. High jobs beyond the owner's quota of an hour (`high_per_hour` where none was set) wait as normal ones.

    Submissions of one owner take turns until they commit: else several could each see the last place free.
    """
    take_turn(connection, new.owner_id)
    row_of_new: dict[str, object] = {name: getattr(new, name) for name in _STORED}
    row_of_new |= {"limit": limit, "places": places, "high_per_hour": high_per_hour}
    if key is None:
        row = connection.execute(_ACCEPT, row_of_new).one_or_none()
    else:
        keyed = row_of_new | {"key": key.name, "body_hash": key.body_hash}
        row = connection.execute(_ACCEPT_KEYED, keyed).one_or_none()
    if row is None:
        return None
    position = None if new.needs == NONE else row.queue_position
    return replace(new, seq=row.seq, created_at=row.created_at, rank=row.rank, queue_position=position)


def _find_key(connection: Connection, owner_id: int, key: str) -> tuple[bytes, UUID | None] | None:
    """The hash of the body that an idempotency key of this owner came with, and the job that it made; None in place of
    the job if it made a batch."""
    row = connection.execute(_KEY, {"owner_id": owner_id, "key": key}).one_or_none()
    return None if row is None else (row.body_hash, row.job_id)
