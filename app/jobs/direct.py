"""Direct hand-over: a small job that comes while nothing waits goes to an idle slot by the statement that accepts it.

The dispatcher would decide the same a few milliseconds later. The worker hears of the job by a notification, as soon as
the acceptance is committed. Like a message in Redis, that notification is a hint: where it is lost, the job was handed
over and not claimed, and the dispatcher withdraws it (docs/decisions/0029-the-short-way-of-a-lone-job.md).

Before that notification others bring the spec, in pieces, if it is short: then the child of the worker computes while
the worker claims the attempt (docs/decisions/0047-a-child-computes-while-its-attempt-is-claimed.md).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any
from uuid import UUID

from sqlalchemy import (
    CTE,
    BigInteger,
    Boolean,
    ColumnElement,
    String,
    Text,
    bindparam,
    case,
    cast,
    exists,
    func,
    literal_column,
    or_,
    select,
)

from warpfold.app.quotas.quota import QuotaName
from warpfold.app.tables.jobs import OPEN, in_hand, in_lanes, jobs, workers
from warpfold.app.tables.users import quota_holds, quotas
from warpfold.contract.needs import ALL, ANY, DASK, ONE_DEVICE

LISTEN = """
    select pg_advisory_lock(hashtextextended('warpfold listens ' || %(worker)s, 0)),
           'warpfold_slot_' || md5(%(worker)s) as channel, 'warpfold_spec_' || md5(%(worker)s) as channel_of_specs
"""
"""A statement for psycopg that takes the lock by which `worker` shows that it listens, until the session ends, and
returns the names of its channels."""

_PIECE = 7_900
"""How many characters of a spec one notification carries; Postgres refuses a message of 8,000 bytes."""
_PIECES = ("piece_1", "piece_2", "piece_3", "piece_4")


def idle_slot() -> CTE:
    """The idle slot that is to have the new job of the parameters `needs` and `owner_id`: a part of the statement that
    accepts it. It has no row unless the job may be handed over `directly`, and none where the dispatcher has to decide:
    because any job waits, because no slot that suits is idle and listens, because the job prefers some kinds of slots
    to others, or because the owner has a limit of running jobs, which only the dispatcher keeps exactly."""
    held = jobs.alias("held")
    needs = bindparam("needs", type_=String)
    owner_id = bindparam("owner_id", type_=BigInteger)
    limited = select(quotas.c.user_id).where(quotas.c.user_id == owner_id, quotas.c.running.is_not(None)).exists()
    one_device = or_(*(workers.c.backend == backend for backend in ONE_DEVICE))  # `in_` would have no text of its own
    kept_from_gpus = select(quota_holds.c.user_id).where(
        quota_holds.c.user_id == owner_id,
        quota_holds.c.quota == QuotaName.GPU_SECONDS_PER_DAY.value,
        quota_holds.c.until > func.now(),
    )
    return (
        select(workers.c.id.label("slot"))
        .where(
            bindparam("directly", type_=Boolean),
            ~exists().where(in_lanes(ALL)),
            ~limited,
            OPEN,
            or_(workers.c.backend == needs, (needs == ANY) & one_device),
            or_(workers.c.backend == "cpu", workers.c.backend == DASK, ~kept_from_gpus.exists()),
            ~select(held.c.id).where(held.c.slot == workers.c.id, in_hand(held)).exists(),
            # The worker has this lock to itself while it listens. Nobody but a worker keeps the others out by it.
            ~func.pg_try_advisory_xact_lock_shared(
                func.hashtextextended(literal_column("'warpfold listens '", Text) + workers.c.id, literal_column("0"))
            ),
        )
        .order_by(workers.c.backend != "cuda", workers.c.id)
        .limit(1)
        .cte("idle_slot")
    )


def pieces_of(spec: str | None) -> Mapping[str, str | None]:
    """The parameters of an acceptance that bring a spec to its worker, a piece each; all are None for no spec, and for
    one that only the claim brings, because it is long or has characters of several bytes."""
    sent = spec is not None and len(spec) <= len(_PIECES) * _PIECE and spec.isascii()
    texts = [spec[start : start + _PIECE] for start in range(0, len(spec), _PIECE)] if sent and spec else []
    return dict(zip_longest(_PIECES, texts))


def tell(slot: ColumnElement[Any], job_id: ColumnElement[Any]) -> Sequence[ColumnElement[Any]]:
    """Notify the worker of `slot`, when this transaction commits, of the first attempt of a job, and before that of its
    spec in pieces: parameters of the statement, as is the `request_id`. To cut the spec here would take Postgres longer
    than to receive it twice."""
    of_slot = func.md5(slot)
    specs, space = literal_column("'warpfold_spec_'", Text) + of_slot, literal_column("' '", Text)
    request_id = func.coalesce(bindparam("request_id", type_=String), literal_column("'-'"))
    sent_pieces: list[ColumnElement[Any]] = []
    for number, name in enumerate(_PIECES, 1):
        piece = bindparam(name, type_=Text)
        message = func.concat_ws(space, job_id, literal_column(str(number)), request_id, piece)
        sent_pieces.append(case((slot.is_not(None) & piece.is_not(None), func.pg_notify(specs, message))))
    first_attempt = cast(job_id, Text) + literal_column("' 1'", Text)
    return *sent_pieces, func.pg_notify(literal_column("'warpfold_slot_'", Text) + of_slot, first_attempt)


@dataclass(frozen=True, slots=True)
class SpecPiece:
    """A part of the spec of a job that is being handed over, and the request that brought the job, if it is known."""

    job_id: UUID
    number: int
    request_id: str | None
    text: str

    @classmethod
    def of(cls, payload: str) -> "SpecPiece":
        """The piece that a notification brings."""
        job_id, number, request_id, text = payload.split(" ", 3)
        return cls(UUID(job_id), int(number), None if request_id == "-" else request_id, text)


def attempt_of(payload: str) -> tuple[UUID, int]:
    """The job's id and the number of the attempt that a notification tells of."""
    job_id, attempt = payload.split()
    return UUID(job_id), int(attempt)
