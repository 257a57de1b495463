"""What the api does with uploaded arrays: each function is one request's work."""

import errno
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool

from warpfold.app.auth.access_tokens import Principal
from warpfold.app.datasets import repository
from warpfold.app.datasets.intake import FIRST_BYTES, Intake
from warpfold.app.datasets.repository import Contents, Dataset, Holdings
from warpfold.app.datasets.store import Store
from warpfold.app.datasets.sweep import sweep
from warpfold.app.http.context import Context
from warpfold.app.http.errors import ApiError, Forbidden, NoRoom, NotFound, TooLarge, Unavailable
from warpfold.kernels.dtypes import DType
from warpfold.kernels.npy import MOST_HEAD_BYTES

_PIECE = 1 << 20
_RETRY_AFTER_DISK_S = 60


@dataclass(frozen=True, slots=True)
class Upload:
    """What a request says of the array in its body. `raw` is the dtype of bare elements, None for a .npy file."""

    name: str
    raw: DType | None
    declared: int | None


@dataclass(frozen=True, slots=True)
class Holder:
    """The user who is to hold an array, its name, and how many bytes of all arrays the user may hold."""

    user_id: int
    name: str
    quota: int


async def upload(context: Context, user: Principal, asked: Upload, body: AsyncIterator[bytes]) -> tuple[Dataset, bool]:
    """Keep the array that `body` brings; returns it and whether it is new to the user.

    Raises Invalid, TooLarge, NoRoom and Unavailable. Nothing is kept of what does not come whole.
    """
    settings = context.settings
    store = Store(settings.datasets_dir())
    holder = Holder(user.id, asked.name, settings.dataset_quota_bytes)
    try:
        with store.incoming(user.id) as file:
            intake = Intake(file, asked.raw, asked.declared)
            reserved = False
            async for piece in _pieces(body):
                if not reserved:
                    length = await run_in_threadpool(intake.begin, piece)
                    if length > settings.max_dataset_bytes + MOST_HEAD_BYTES:
                        raise _not_taken(TooLarge, f"A body may have at most {settings.max_dataset_bytes} bytes here.")
                    held = await context.database.read(repository.holdings, user.id, length)
                    await run_in_threadpool(_reserve, store, file, length, held, holder)
                    reserved = True
                await run_in_threadpool(_check_room, store, settings.keep_free_bytes)
                await run_in_threadpool(intake.feed, piece)
            contents = await run_in_threadpool(intake.finish)
            return await context.database.run(_keep, store, intake.path, contents, holder)
    except OSError as error:
        why = os.strerror(error.errno).lower() if error.errno else "the system gave no reason"
        detail = f"The service cannot store the array: {why}."
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _not_taken(NoRoom, detail) from error
        raise Unavailable(detail, _RETRY_AFTER_DISK_S) from error


def _reserve(store: Store, file: IO[bytes], length: int, held: Holdings, holder: Holder) -> None:
    """Make the file as long as it is to become, and only then count: of uploads that race, none is overlooked."""
    os.ftruncate(file.fileno(), length)
    owned = store.arriving(holder.user_id).owned
    # It may be what the user holds already, and would take no more: that only its last byte tells.
    again = held.as_long and owned == length
    if held.bytes + owned > holder.quota and not again:
        raise _not_taken(
            TooLarge,
            f"Your datasets, with what is being uploaded, would be {held.bytes + owned} bytes, more than your quota of "
            f"{holder.quota}; delete some first.",
        )


def _check_room(store: Store, keep_free: int) -> None:
    """Whether all that is on its way leaves Postgres the room that it needs."""
    room = store.free_bytes() - store.arriving(0).unwritten - keep_free
    if room < 0:
        raise _not_taken(NoRoom, "The service's disk is too full for this array, or for any; delete some, or wait.")


def _not_taken(kind: type[ApiError], detail: str) -> ApiError:
    """The refusal of an upload. What is still on its way is not read: the connection ends with the answer."""
    return kind(detail, headers={"Connection": "close"})


async def _pieces(body: AsyncIterator[bytes]) -> AsyncIterator[bytearray]:
    """The same bytes in pieces that are worth a thread's time, the first as soon as it shows the head."""
    held = bytearray()
    enough = FIRST_BYTES
    async for chunk in body:
        held += chunk
        if len(held) >= enough:
            yield held
            held, enough = bytearray(), _PIECE
    if held:
        yield held


def _keep(
    connection: Connection, store: Store, incoming: Path, contents: Contents, holder: Holder
) -> tuple[Dataset, bool]:
    repository.lock(connection, contents.id)
    new = repository.hold(connection, contents, holder.user_id, holder.name)
    if new and (held := repository.bytes_held(connection, holder.user_id)) > holder.quota:
        raise TooLarge(
            f"Your datasets would be {held} bytes, more than your quota of {holder.quota}; delete some first."
        )
    # Within the transaction: a row never stands without its file. A file without a row is swept up.
    store.place(incoming, contents.id)
    dataset = repository.get(connection, contents.id, holder.user_id)
    assert dataset is not None
    return dataset, new


async def get(context: Context, user: Principal, dataset_id: str) -> Dataset:
    """Read an array as the user holds it, or else as somebody does. Raises NotFound."""
    dataset = await context.database.read(repository.get, dataset_id, user.id)
    if dataset is None:
        raise _not_found()
    return dataset


async def delete(context: Context, user: Principal, dataset_id: str) -> None:
    """End the user's hold; an admin who has none ends everybody's. Raises NotFound and Forbidden."""
    held = await get(context, user, dataset_id)
    if held.owner_id != user.id and not user.is_admin:
        raise Forbidden(f"The dataset belongs to {held.owner}; only its owner and admins may delete it.")
    whose = user.id if held.owner_id == user.id else None
    await context.database.run(repository.release, dataset_id, whose)
    await context.database.run(sweep, Store(context.settings.datasets_dir()), dataset_id)


def _not_found() -> NotFound:
    return NotFound("There is no dataset with this id, or it was deleted.")
