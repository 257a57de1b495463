"""A batch is accepted: all of its jobs, or none of them, are stored in one transaction, with their events and the key.

A few hundred jobs are one statement: their rows come as JSON, which Postgres takes apart. The order of the statements
is that of one job's acceptance: the owner's turn, the key, the quota, the jobs, their datasets and webhooks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Boolean,
    Connection,
    SmallInteger,
    String,
    TextClause,
    Uuid,
    bindparam,
    insert,
    select,
    text,
)

from warpfold.app.auth.visibility import THE_SERVICE, Viewer
from warpfold.app.batches import repository
from warpfold.app.batches.preparing import Origin, Portion, WebhookOf
from warpfold.app.batches.repository import Batch
from warpfold.app.http.errors import Invalid, TooMany
from warpfold.app.jobs import accept, tags
from warpfold.app.jobs.accept import RETRY_AFTER_FULL_S, Key
from warpfold.app.jobs.inputs import Inputs, look_at
from warpfold.app.jobs.transitions import wake_dispatcher
from warpfold.app.quotas import room
from warpfold.app.quotas.quota import Limits, QuotaName
from warpfold.app.tables.batches import batches
from warpfold.app.tables.jobs import idempotency_keys
from warpfold.app.tables.webhooks import webhooks
from warpfold.app.webhooks import repository as outbox
from warpfold.contract.batches import BatchOptions
from warpfold.contract.states import PRIORITIES


@dataclass(frozen=True, slots=True)
class NewBatch:
    """A batch whose specs were checked: where it came from, the portions of its jobs in their order, and whether it is
    shared with everyone if it reads nothing private."""

    id: UUID
    origin: Origin
    options: BatchOptions
    count: int
    portions: Sequence[Portion]
    shared: bool = True

    @property
    def inputs(self) -> Inputs:
        """What its jobs read of users. One of them that reads something private makes the whole batch private."""
        arrays: dict[str, str] = {}
        results: dict[UUID, str] = {}
        for portion in reversed(self.portions):  # the first field that names an input stays
            arrays |= portion.datasets
            results |= portion.results
        uploads = frozenset[str]().union(*(portion.uploads for portion in self.portions))
        return Inputs(arrays, results, uploads)

    @property
    def places(self) -> int:
        """How many of its jobs will wait in the queue."""
        return sum(portion.places for portion in self.portions)


@dataclass(frozen=True, slots=True)
class AcceptedBatch:
    """A batch, the JSON of the ids of its jobs with commas between, and whether this request made it or an earlier one
    with the same key."""

    batch: Batch
    ids: str
    new: bool


# A high job beyond the budget of the hour waits as a normal one, in the order of the jobs; a preset takes nothing of
# the budget, but its children do. `place` is the order in which the rows came.
_STORE: TextClause = text("""
    with new as materialized (
        select *, count(*) filter (where priority = :high_rank and needs <> 'none') over (order by place) as high
        from rows from (
            json_to_recordset(cast(:rows as json)) as (
                id uuid, kind text, priority smallint, needs text, small boolean, work json, timeout_s float8,
                spec json, spec_brief json, tags jsonb, parent_id uuid, name text, batch_index integer
            )
        ) with ordinality as rows(id, kind, priority, needs, small, work, timeout_s, spec, spec_brief, tags, parent_id,
                                  name, batch_index, place)
    ), accepted as (
        insert into jobs (id, owner_id, kind, priority, needs, small, work, timeout_s, spec, spec_brief, tags,
                          parent_id, name, request_id, traceparent, shared, batch_id, batch_index, rank)
        select id, :owner_id, kind, priority, needs, small, work, timeout_s, spec, spec_brief, tags, parent_id, name,
               :request_id, :traceparent, :shared, case when batch_index is not null then :batch_id end, batch_index,
               case when priority = :high_rank and needs <> 'none' and high > :high_left then :normal_rank
                    else priority end
        from new order by place
        returning id
    )
    insert into job_events (job_id, seq, type, data) select id, 1, 'submitted', '{}' from accepted
""").bindparams(
    bindparam("rows", type_=String),
    bindparam("owner_id", type_=BigInteger),
    bindparam("batch_id", type_=Uuid),
    bindparam("request_id", type_=String),
    bindparam("traceparent", type_=String),
    bindparam("shared", type_=Boolean),
    bindparam("high_left", type_=BigInteger),
    bindparam("high_rank", PRIORITIES["high"], type_=SmallInteger),
    bindparam("normal_rank", PRIORITIES["normal"], type_=SmallInteger),
)
_PLACE: TextClause = text("""
    update batches set first_seq = (select min(seq) from jobs where batch_id = :batch_id),
                       last_seq = (select max(seq) from jobs where batch_id = :batch_id)
    where id = :batch_id
""").bindparams(bindparam("batch_id", type_=Uuid))
_KEY = select(idempotency_keys.c.body_hash, idempotency_keys.c.batch_id).where(
    idempotency_keys.c.owner_id == bindparam("owner_id"), idempotency_keys.c.key == bindparam("key")
)


def replayed(connection: Connection, owner_id: int, key: Key) -> AcceptedBatch | None:
    """The batch of an earlier request with the same key and body; None if the key is new. Raises Invalid if the key
    came with another body."""
    row = connection.execute(_KEY, {"owner_id": owner_id, "key": key.name}).one_or_none()
    if row is None:
        return None
    if row.batch_id is None or row.body_hash != key.body_hash:
        raise accept.other_body()
    batch = repository.existing(connection, row.batch_id)
    return AcceptedBatch(batch, repository.ids_of(connection, batch.id), new=False)


def take_room(connection: Connection, owner_id: int, places: int, defaults: Limits) -> None:
    """Take `places` of the owner's quota of queued jobs. Raises TooMany if it leaves no room for so many."""
    assert defaults.queued is not None, "the settings always say"
    if room.take(connection, owner_id, places, defaults.queued):
        return
    left = room.count(connection, owner_id, defaults.queued)
    if not room.take(connection, owner_id, places, defaults.queued):
        detail = f"The batch has {places} jobs, and {left.used} of yours are in the queue; your quota allows "
        raise TooMany(
            f"{detail}{left.limit} together.",
            RETRY_AFTER_FULL_S,
            extension={"quota": QuotaName.QUEUED.value, "limit": left.limit},
        )


def submit(
    connection: Connection, new: NewBatch, key: Key | None, defaults: Limits, viewer: Viewer = THE_SERVICE
) -> AcceptedBatch:
    """Store a batch, whose inputs `viewer` sees, or find the one that was accepted with the same key. Raises Invalid
    that names the field, or TooMany that names the quota."""
    owner_id = new.origin.owner.id
    room.take_turn(connection, owner_id)
    earlier = None if key is None else replayed(connection, owner_id, key)
    if earlier is not None:
        return earlier
    take_room(connection, owner_id, new.places, defaults)
    high_left = accept.high_left(connection, owner_id, defaults)
    seen = look_at(connection, new.inputs, viewer)
    shared = new.shared and seen.shared
    row = {"id": new.id, "owner_id": owner_id, "name": new.options.name, "tags": new.options.tags, "shared": shared}
    connection.execute(insert(batches).values(**row, count=new.count))
    if key is not None:
        kept = {"owner_id": owner_id, "key": key.name, "body_hash": key.body_hash, "batch_id": new.id}
        connection.execute(insert(idempotency_keys).values(**kept))
    same = {"owner_id": owner_id, "batch_id": new.id, "shared": shared}
    same |= {"request_id": new.origin.request_id, "traceparent": new.origin.traceparent}
    for portion in new.portions:
        connection.execute(_STORE, {**same, "rows": portion.rows, "high_left": high_left})
        high_left = max(0, high_left - portion.high)
    connection.execute(_PLACE, {"batch_id": new.id})
    if any(portion.tagged for portion in new.portions):
        tags.note_batch(connection, new.id)
    seen.use(connection, batch=new.id)
    _register(connection, owner_id, [webhook for portion in new.portions for webhook in portion.webhooks])
    _register_own(connection, new)
    wake_dispatcher(connection)
    ids = ", ".join(portion.ids for portion in new.portions)
    return AcceptedBatch(repository.existing(connection, new.id), ids, new=True)


def _register(connection: Connection, owner_id: int, wanted: Sequence[WebhookOf]) -> None:
    if not wanted:
        return
    unsigned = next((job for job in wanted if job.webhook.secret is None), None)
    if unsigned is not None and not outbox.has_secret(connection, owner_id):
        raise _unsigned(unsigned.field)
    rows = [
        {"id": UUID(job.job_id), "job_id": UUID(job.job_id), "url": str(job.webhook.url), "secret": job.webhook.secret}
        for job in wanted
    ]
    connection.execute(insert(webhooks), rows)


def _register_own(connection: Connection, new: NewBatch) -> None:
    webhook = new.options.webhook
    if webhook is None:
        return
    owner_id = new.origin.owner.id
    if not outbox.register_batch(connection, new.id, owner_id, str(webhook.url), webhook.secret):
        raise _unsigned("webhook.secret")


def _unsigned(field: str) -> Invalid:
    return Invalid.of(field, "give a secret, or make a secret of your own with POST /v1/webhooks/secret")
