"""SQL of uploaded arrays: which user holds which array, and when a job last needed it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, delete, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from warpfold.app.auth.visibility import THE_SERVICE, Viewer, visible
from warpfold.app.quotas.bytes_held import bytes_held
from warpfold.app.tables.dataset_uses import dataset_uses
from warpfold.app.tables.jobs import is_, jobs
from warpfold.app.tables.users import datasets, users
from warpfold.contract.states import Status


@dataclass(frozen=True, slots=True)
class Contents:
    """The content of an uploaded file. `id` is the SHA-256 of the file in hexadecimal digits."""

    id: str
    dtype: str  # the name of the format, of a file that is no .npy file
    shape: tuple[int, ...]
    bytes: int


@dataclass(frozen=True, slots=True)
class Dataset:
    """The entry of one owner for an array."""

    contents: Contents
    owner: str
    owner_id: int
    seq: int
    name: str
    created_at: datetime
    last_used_at: datetime


_ROWS = select(datasets, users.c.name.label("owner")).join(users, users.c.id == datasets.c.owner_id)


def lock(connection: Connection, dataset_id: str) -> None:
    """Lock an array until the end of the transaction: nobody else puts its file in place or takes it away."""
    connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(dataset_id, 0))))


def hold(connection: Connection, contents: Contents, owner_id: int, name: str) -> bool:
    """Let the owner hold the array, which is private; False if the owner held it already. Either way the array
    counts as used just now."""
    added = connection.execute(
        upsert(datasets)
        .values(
            id=contents.id,
            owner_id=owner_id,
            name=name,
            dtype=contents.dtype,
            shape=list(contents.shape),
            bytes=contents.bytes,
            shared=False,
        )
        .on_conflict_do_nothing()
        .returning(datasets.c.seq)
    ).one_or_none()
    if added is None:
        again = {"last_used_at": func.now(), **({"name": name} if name else {})}
        connection.execute(
            update(datasets).where(datasets.c.id == contents.id, datasets.c.owner_id == owner_id).values(again)
        )
    return added is not None


@dataclass(frozen=True, slots=True)
class Holdings:
    """The bytes of all arrays and stored results of an owner, and whether one of the arrays is as long as one that
    arrives."""

    bytes: int
    as_long: bool


def holdings(connection: Connection, owner_id: int, length: int) -> Holdings:
    """The bytes that an owner holds when an array of `length` bytes arrives. Nothing is locked."""
    as_long = select(datasets.c.id).where(datasets.c.owner_id == owner_id, datasets.c.bytes == length).exists()
    return Holdings(bytes_held(connection, owner_id), connection.execute(select(as_long)).scalar_one())


def get(connection: Connection, dataset_id: str, viewer: Viewer) -> Dataset | None:
    """The viewer's own hold on an array, or else the oldest hold of another owner that the viewer sees."""
    own_first = (datasets.c.owner_id != viewer.user_id, datasets.c.seq)
    seen = _ROWS.where(datasets.c.id == dataset_id, visible(datasets, viewer))
    row = connection.execute(seen.order_by(*own_first).limit(1)).one_or_none()
    return None if row is None else _dataset(row)


def page(
    connection: Connection,
    owner: str | None,
    length: int | None,
    limit: int,
    before_seq: int | None,
    *,
    viewer: Viewer = THE_SERVICE,
) -> Sequence[Dataset]:
    """Up to `limit` holds of an owner that the viewer sees, on files of `length` bytes, newest first, older than
    `before_seq`."""
    statement = _ROWS.where(visible(datasets, viewer)).order_by(datasets.c.seq.desc()).limit(limit)
    if owner is not None:
        statement = statement.where(users.c.name == owner)
    if length is not None:
        statement = statement.where(datasets.c.bytes == length)
    if before_seq is not None:
        statement = statement.where(datasets.c.seq < before_seq)
    return [_dataset(row) for row in connection.execute(statement)]


def use(connection: Connection, ids: Collection[str]) -> Collection[str]:
    """Note that these arrays are needed now; returns those that nobody holds."""
    updated = connection.execute(
        update(datasets).where(datasets.c.id.in_(ids)).values(last_used_at=func.now()).returning(datasets.c.id)
    )
    return set(ids) - set(updated.scalars())


def rename(connection: Connection, dataset_id: str, owner_id: int, name: str) -> bool:
    """Give an owner's entry for an array another name. False if there is no such entry."""
    renamed = update(datasets).where(datasets.c.id == dataset_id, datasets.c.owner_id == owner_id).values(name=name)
    return bool(connection.execute(renamed).rowcount)


def release(connection: Connection, dataset_id: str, owner_id: int | None) -> bool:
    """End an owner's hold on an array, or everybody's for None. False if there was no hold."""
    statement = delete(datasets).where(datasets.c.id == dataset_id)
    if owner_id is not None:
        statement = statement.where(datasets.c.owner_id == owner_id)
    return bool(connection.execute(statement).rowcount)


def release_unused(connection: Connection, older_than: timedelta) -> Sequence[str]:
    """End every hold on arrays that no job has needed for so long, nor waits for or reads now; returns their ids."""
    open_jobs = select(jobs.c.id).where(or_(is_(Status.QUEUED), is_(Status.RUNNING)))
    needed = select(dataset_uses.c.seq).where(
        dataset_uses.c.dataset_id == datasets.c.id,
        or_(
            open_jobs.where(jobs.c.id == dataset_uses.c.job_id).exists(),
            open_jobs.where(jobs.c.batch_id == dataset_uses.c.batch_id).exists(),
        ),
    )
    unused = datasets.c.last_used_at < func.now() - older_than
    released = delete(datasets).where(unused, ~needed.exists()).returning(datasets.c.id)
    return list(connection.execute(released).scalars())


def is_held(connection: Connection, dataset_id: str) -> bool:
    """Whether anybody holds the array."""
    held = select(datasets.c.id).where(datasets.c.id == dataset_id)
    return connection.execute(select(held.exists())).scalar_one()


def _dataset(row: Row[Any]) -> Dataset:
    return Dataset(
        contents=Contents(row.id, row.dtype, tuple(row.shape), row.bytes),
        owner=row.owner,
        owner_id=row.owner_id,
        seq=row.seq,
        name=row.name,
        created_at=row.created_at,
        last_used_at=row.last_used_at,
    )
