"""A job is accepted: its spec is checked against this server, and stored with its idempotency key and first event.

One transaction stores the job, its children, its webhook and its use of uploaded arrays; from its commit on, nothing
loses the job. Statements are built once, with bound parameters: SQLAlchemy then finds their compiled form at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import (
    Connection,
    Row,
    Select,
    SmallInteger,
    Text,
    bindparam,
    case,
    cast,
    func,
    insert,
    literal,
    literal_column,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import insert as upsert

from warpfold.app.auth.access_tokens import Principal
from warpfold.app.auth.visibility import THE_SERVICE, Viewer
from warpfold.app.config import Settings
from warpfold.app.datasets.store import Store
from warpfold.app.db import QUEUE
from warpfold.app.http.errors import Invalid, TooMany
from warpfold.app.jobs import direct, store, tags
from warpfold.app.jobs.inputs import NO_INPUTS, Inputs, look_at
from warpfold.app.jobs.store import Job
from warpfold.app.quotas import room
from warpfold.app.quotas.quota import Limits, QuotaName, limits_of
from warpfold.app.quotas.room import Room
from warpfold.app.tables.jobs import NONE, events, idempotency_keys, jobs
from warpfold.app.webhooks import repository as webhooks
from warpfold.contract.folders import Folders
from warpfold.contract.groupings import check_held
from warpfold.contract.jobs import JobSpec, brief_of
from warpfold.contract.kinds.reduce import ReduceSpec
from warpfold.contract.kinds.spec import Spec, Task
from warpfold.contract.sources import TAGGED_FIELDS
from warpfold.contract.states import PRIORITIES, EventType
from warpfold.contract.webhook import Webhook
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.places.addresses import names_private

RETRY_AFTER_FULL_S = 5


@dataclass(frozen=True, slots=True)
class Key:
    """An idempotency key and the hash of the body that came with it."""

    name: str
    body_hash: bytes


def job_of(
    spec: Spec,
    owner: Principal,
    request_id: str | None,
    traceparent: str | None,
    job_id: UUID | None = None,
    *,
    secret: UUID | None = None,
    folders: Folders | None = None,
    shared: bool = True,
) -> Job:
    """The new job that `spec` asks for, with `job_id` as its id if that is given, and `shared` with everyone if it
    reads nothing private. `request_id` goes to the logs of all
    who handle the job, `traceparent` to their spans; either may be missing. With `folders`, the sizes of files are
    looked at, which may wait for a disk."""
    return Job.new(
        id=job_id or uuid4(),
        owner=owner.name,
        owner_id=owner.id,
        kind=spec.kind,
        priority=PRIORITIES[spec.priority],
        needs=spec.needs() if isinstance(spec, Task) and not spec.parts() else NONE,
        small=isinstance(spec, Task) and not spec.parts() and spec.small(),
        work=_work(spec, folders),
        timeout_s=spec.timeout_s,
        spec=spec.model_dump_json(exclude={"webhook"}),
        spec_brief=brief_of(spec),
        tags=spec.tags,
        request_id=request_id,
        traceparent=traceparent,
        secret=secret,
        shared=shared,
    )


def children_of(spec: JobSpec, parent: Job, owner: Principal) -> tuple[Job, ...]:
    """The jobs of a preset, or of a benchmark on several devices, with the tags and the priority of their parent, which
    is the job of `spec`."""
    children = []
    for name, part in spec.parts():
        update = {"tags": {**part.tags, **spec.tags}, "priority": spec.priority, "webhook": None}
        child = job_of(
            part.model_copy(update=update), owner, parent.request_id, parent.traceparent, shared=parent.shared
        )
        children.append(replace(child, parent_id=parent.id, name=name))
    return tuple(children)


def check_uploads(spec: JobSpec, settings: Settings, owner: Principal) -> None:
    """Refuse uploads that are not the owner's, or not there. Raises InvalidInput that names the field."""
    for field, source in spec.sources():
        if (upload_id := source.upload_id) is not None:
            upload = Store(settings.datasets_dir()).partial.get(owner.id, upload_id)
            if upload.metadata() is None and not upload.finished():
                raise InvalidInput(
                    "is no upload of yours that has begun: name the dataset if the upload has ended", f"{field}.id"
                )


def reads_files(spec: Spec) -> bool:
    """Whether a job has sources whose sizes are known by a look at files."""
    return any(source.lies == "host" for _, source in spec.sources())


def _work(spec: Spec, folders: Folders | None) -> Mapping[str, object] | None:
    """The bytes and elements that a job has to move. None for small jobs and for jobs with parts, whose duration they
    do not predict."""
    work = None if not isinstance(spec, Task) or spec.parts() or spec.small() else spec.work(folders)
    return None if work is None else work.model_dump()


def check(spec: JobSpec, settings: Settings) -> None:
    """Check what depends on this server's settings. Raises InvalidInput that names the field."""
    check_receiver(spec.webhook, settings)
    for field, source in spec.sources():
        source.check(field, settings.data_roots, settings.max_values, settings.listed_places)
    if isinstance(spec, ReduceSpec) and (grouping := spec.grouping()) is not None:
        shape, dtype = spec.source.known_shape, spec.source.known_dtype
        if shape is not None and dtype is not None:
            check_held(spec.row(), grouping, shape, dtype, settings.dataset_quota_bytes)


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


def submit(
    connection: Connection,
    new: Job,
    key: Key | None,
    limits: Limits,
    *,
    children: tuple[Job, ...] = (),
    inputs: Inputs = NO_INPUTS,
    viewer: Viewer = THE_SERVICE,
    webhook: Webhook | None = None,
) -> Job:
    """Store a new job with its `children`, its use of `inputs`, which `viewer` sees, and its `webhook`, or find the job
    that was accepted with the same key: that has another id. Raises Invalid that names the field, or TooMany where the
    owner's quota of queued jobs leaves no room."""
    seen = look_at(connection, inputs, viewer)
    if not seen.shared:
        new, children = replace(new, shared=False), tuple(replace(child, shared=False) for child in children)
    if new.priority == _HIGH:
        room.take_turn(connection, new.owner_id)  # two that count the high jobs at once would see the same budget
        new, children = _ranked(connection, new, children, limits)
    places = len(children) or 1
    job = submit_at_once(connection, new, key, limits, places)
    if job is None:
        earlier = _earlier(connection, new, key)
        if earlier is not None:
            return earlier
        left = room.count(connection, new.owner_id, _queued(limits))
        if left.room < places:
            raise _queue_full(left, len(children))
        job = submit_at_once(connection, new, key, limits, places)
    if job is None:  # while the jobs were counted, another request came with the key
        earlier = _earlier(connection, new, key)
        assert earlier is not None, "there was room, and the key was new"
        return earlier
    seen.use(connection, job=job.id)
    for child in children:
        accept(connection, child)
    if job.tags or children:
        tags.note(connection, [job.id])
    if webhook is not None:
        _register(connection, job, webhook)
    return store.existing(connection, job.id) if children else job


def at_once(new: Job, *beside: object) -> bool:
    """Whether one statement stores a new job whole, where its children, its inputs and its webhook are `beside`."""
    return not any(beside) and not new.tags and new.priority != _HIGH


def submit_at_once(connection: Connection, new: Job, key: Key | None, limits: Limits, places: int = 1) -> Job | None:
    """Store a new job, which takes `places` in the queue, by one statement, which may be a transaction of its own where
    the job is stored `at_once`. None if no room is known to be left for it by the owner's quota, or the key was used
    before, or this was done before and its answer was lost: `submit` knows why. A preset takes no place itself: its
    children do."""
    row = _row_of(new) | {"limit": _queued(limits), "places": places}
    row["directly"] = new.small and limits.running is None
    if key is None:
        accepted = connection.execute(_ACCEPT_CHECKED, row).one_or_none()
    else:
        row |= {"key": key.name, "body_hash": key.body_hash}
        accepted = connection.execute(_ACCEPT_KEYED, row).one_or_none()
    return None if accepted is None else _accepted(new, accepted)


def _earlier(connection: Connection, new: Job, key: Key | None) -> Job | None:
    """The job that came with the same key, or this very job, if the answer to its insertion was lost; None if there is
    neither. Raises Invalid if another body came with the key."""
    stored = None if key is None else _find_key(connection, new.owner_id, key.name)
    if stored is None:
        return store.get(connection, new.id)
    body_hash, job_id = stored
    if job_id is None or (key is not None and body_hash != key.body_hash):
        raise other_body()
    return store.existing(connection, job_id)


def _queued(limits: Limits) -> int:
    assert limits.queued is not None, "the settings always say"
    return limits.queued


def other_body() -> Invalid:
    """The answer to a key that came with another body before."""
    return Invalid.of("Idempotency-Key", "was used before with another body")


def _register(connection: Connection, job: Job, webhook: Webhook) -> None:
    if not webhooks.register(connection, job.id, job.owner_id, str(webhook.url), webhook.secret):
        raise Invalid.of("webhook.secret", "give a secret, or make a secret of your own with POST /v1/webhooks/secret")


def _queue_full(left: Room, children: int) -> TooMany:
    detail = f"{left.used} of your jobs are in the queue already; your quota of {left.limit} allows no more."
    if children:
        detail = f"The job consists of {children} jobs; your quota of {left.limit} in the queue leaves no room."
    return TooMany(detail, RETRY_AFTER_FULL_S, extension={"quota": QuotaName.QUEUED.value, "limit": left.limit})


_HIGH, _NORMAL = PRIORITIES["high"], PRIORITIES["normal"]
_HIGH_RANK = literal_column(str(_HIGH), SmallInteger)
_HIGH_OF_THE_HOUR = select(func.count()).where(
    jobs.c.owner_id == bindparam("owner_id"),
    jobs.c.priority == _HIGH_RANK,
    jobs.c.rank == _HIGH_RANK,
    jobs.c.created_at > func.now() - func.make_interval(0, 0, 0, 0, 1),
    jobs.c.needs != NONE,
)


def high_left(connection: Connection, owner_id: int, defaults: Limits) -> int:
    """How many more jobs of an owner may wait as high in this hour, by a quota that is `defaults` unless they have one
    of their own. It holds until the transaction ends if the owner's turn was taken before."""
    most = limits_of(connection, owner_id, defaults).high_per_hour
    assert most is not None, "the settings always say"
    return max(0, most - int(connection.execute(_HIGH_OF_THE_HOUR, {"owner_id": owner_id}).scalar_one()))


def _ranked(
    connection: Connection, new: Job, children: tuple[Job, ...], defaults: Limits
) -> tuple[Job, tuple[Job, ...]]:
    """A job of high priority and its children, which wait as high as far as the owner's budget of the hour goes, and
    else as normal ones. A preset takes nothing of the budget: its children do."""
    left = high_left(connection, new.owner_id, defaults)
    if children:
        return new, tuple(replace(job, rank=_HIGH if n < left else _NORMAL) for n, job in enumerate(children))
    return replace(new, rank=_HIGH if left else _NORMAL), ()


_STORED = (
    "id",
    "owner_id",
    "kind",
    "priority",
    "needs",
    "small",
    "work",
    "timeout_s",
    "spec",
    "spec_brief",
    "tags",
    "parent_id",
    "name",
    "request_id",
    "traceparent",
    "rank",
    "secret",
    "shared",
)
"""The columns of a new job that come from its submission; Postgres fills the others."""


def _acceptance(*, checked: bool = True, keyed: bool = False) -> Select[Any]:
    """One statement that stores a job with its first event and wakes the dispatcher: if it is `checked`, where the
    owner has room in the queue, and if `keyed`, where the key is new. It hands a checked job over if an idle slot may
    have it at once, and wakes the worker of that slot in place of the dispatcher. Two requests with one key that arrive
    together meet in the unique index: the second waits for the first's commit. The same job is stored once."""
    new = [
        cast(bindparam(name, type_=Text), jobs.c[name].type)  # JSON text, as it is
        if name in ("spec", "spec_brief")
        else bindparam(name, type_=jobs.c[name].type)
        for name in _STORED
    ]
    source = select(*new)
    taken = room.taken(checked=checked)
    idle = direct.idle_slot()
    handed = (idle.c.slot, case((idle.c.slot.is_not(None), func.now())))
    if keyed:
        key = [bindparam(name, type_=idempotency_keys.c[name].type) for name in ("owner_id", "key", "body_hash")]
        job_id = bindparam("id", type_=jobs.c.id.type)
        kept = (
            upsert(idempotency_keys)
            .from_select(["owner_id", "key", "body_hash", "job_id"], select(*key, job_id).select_from(taken))
            .on_conflict_do_nothing()
            .returning(idempotency_keys.c.job_id)
            .cte("kept")
        )
        source = source.add_columns(*handed).select_from(kept.outerjoin(idle, true()))
    elif checked:
        source = source.add_columns(*handed).select_from(taken.outerjoin(idle, true()))
    accepted = (
        upsert(jobs)
        .from_select([*_STORED, "slot", "dispatched_at"] if checked else [*_STORED], source)
        .on_conflict_do_nothing(index_elements=["id"])
        .returning(jobs.c.id, jobs.c.seq, jobs.c.rank, jobs.c.created_at, jobs.c.slot)
        .cte("accepted")
    )
    event = select(accepted.c.id, literal(1), literal(EventType.SUBMITTED.value), literal({}, events.c.data.type))
    submitted = insert(events).from_select(["job_id", "seq", "type", "data"], event).cte("submitted")
    waits = accepted.c.slot.is_(None)
    return select(
        accepted.c.seq,
        accepted.c.created_at,
        accepted.c.slot,
        case((waits, func.pg_notify(QUEUE, "")), else_=direct.tell(accepted.c.slot, accepted.c.id)),
    ).add_cte(taken, submitted)


_ACCEPT = _acceptance(checked=False)
_ACCEPT_CHECKED = _acceptance()
_ACCEPT_KEYED = _acceptance(keyed=True)
_KEY = select(idempotency_keys.c.body_hash, idempotency_keys.c.job_id).where(
    idempotency_keys.c.owner_id == bindparam("owner_id"), idempotency_keys.c.key == bindparam("key")
)


def accept(connection: Connection, new: Job) -> Job:
    """Store one queued job without a look at its owner's quota."""
    return _accepted(new, connection.execute(_ACCEPT, _row_of(new)).one())


def _row_of(new: Job) -> dict[str, object]:
    row: dict[str, object] = {name: getattr(new, name) for name in _STORED}
    return row | {"takes": 0 if new.needs == NONE else 1}


def _accepted(new: Job, row: Row[*tuple[Any, ...]]) -> Job:
    return replace(new, seq=row.seq, created_at=row.created_at, slot=row.slot)


def _find_key(connection: Connection, owner_id: int, key: str) -> tuple[bytes, UUID | None] | None:
    """The hash of the body that an idempotency key of this owner came with, and the job that it made; None in place of
    the job if it made a batch."""
    row = connection.execute(_KEY, {"owner_id": owner_id, "key": key}).one_or_none()
    return None if row is None else (row.body_hash, row.job_id)
