"""The work of requests about uploaded arrays, one function for each request."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, BinaryIO

import structlog
from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool
from structlog.typing import FilteringBoundLogger

from warpfold.app.auth.access_tokens import Principal
from warpfold.app.auth.audit import Action, Deed
from warpfold.app.auth.visibility import THE_SERVICE, Viewer
from warpfold.app.datasets import repository, uses
from warpfold.app.datasets.intake import FIRST_BYTES, Intake
from warpfold.app.datasets.repository import Contents, Dataset, Holdings
from warpfold.app.datasets.store import Store
from warpfold.app.datasets.sweep import sweep
from warpfold.app.datasets.uses import Uses
from warpfold.app.http.bodies import Body, Piece
from warpfold.app.http.context import Context
from warpfold.app.http.errors import ApiError, Forbidden, NoRoom, NotFound, TooLarge, Unavailable
from warpfold.app.http.file_bytes import StoredFile
from warpfold.app.http.pipes import Piped
from warpfold.app.quotas.bytes_held import bytes_held, lock_holdings
from warpfold.kernels.dtypes import DType
from warpfold.kernels.formats.npy_head import MOST_HEAD_BYTES

log: FilteringBoundLogger = structlog.get_logger()

_CHECK_EVERY = 64 << 20
_RETRY_AFTER_DISK_S = 60
MOST_USES = 50
"""So many jobs, and so many batches, are listed of those that read an array."""


@dataclass(frozen=True, slots=True)
class Upload:
    """The description of a body by its request. `raw` is the dtype of bare elements, None for a file; with `text` a
    file of no known format is taken for a table of text."""

    name: str
    raw: DType | None
    declared: int | None
    text: bool


@dataclass(frozen=True, slots=True)
class Holder:
    """The user who is to hold an array, its name, and how many bytes of all arrays the user may hold."""

    user_id: int
    name: str
    quota: int


async def upload(context: Context, user: Principal, upload_request: Upload, body: Body) -> tuple[Dataset, bool]:
    """Keep the array that `body` brings; returns it and whether it is new to the user. Nothing is kept of a body that
    does not come whole. Raises Invalid, TooLarge, NoRoom and Unavailable.
    """
    settings = context.settings
    store = Store(settings.datasets_dir())
    holder = Holder(user.id, upload_request.name, settings.dataset_quota_bytes)
    with failing_disk(), store.incoming(user.id) as file:
        intake = Intake(file, upload_request.raw, upload_request.declared, text=upload_request.text)
        try:
            first = await body.first(FIRST_BYTES)
            length = await run_in_threadpool(intake.begin, first)
            await reserve(context, store, file, length, holder)
            room = RoomCheck(store, settings.keep_free_bytes)

            def take(piece: Piece | Piped) -> None:
                room.before(len(piece))
                intake.write(piece)

            await run_in_threadpool(take, first)
            await body.rest(take)
            contents = await run_in_threadpool(intake.finish)
        finally:
            await run_in_threadpool(intake.close)
        return await context.database.run(keep, store, intake.path, contents, holder)


@contextmanager
def failing_disk() -> Iterator[None]:
    """Turn what the disk refuses in the block into NoRoom and Unavailable."""
    try:
        yield
    except OSError as error:
        why = os.strerror(error.errno).lower() if error.errno else "the system gave no reason"
        detail = f"The service cannot store the array: {why}."
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _not_taken(NoRoom, detail) from error
        raise Unavailable(detail, _RETRY_AFTER_DISK_S) from error


async def reserve(context: Context, store: Store, file: IO[bytes], length: int, holder: Holder) -> None:
    """Make room for a file that is to have `length` bytes. Raises TooLarge."""
    most = context.settings.max_dataset_bytes
    if length > most + MOST_HEAD_BYTES:
        raise _not_taken(TooLarge, f"A body may have at most {most} bytes here.")
    held = await context.database.read(repository.holdings, holder.user_id, length)
    await run_in_threadpool(_reserve, store, file, length, held, holder)


def _reserve(store: Store, file: IO[bytes], length: int, held: Holdings, holder: Holder) -> None:
    """Give the file its final length first and count afterwards, so that of racing uploads each sees the others."""
    os.ftruncate(file.fileno(), length)
    owned = store.arriving(holder.user_id).owned
    # The user may hold this very array already, which would take no more room: only its last byte tells.
    again = held.as_long and owned == length
    if held.bytes + owned > holder.quota and not again:
        raise _not_taken(
            TooLarge,
            f"Your datasets, stored results and uploads in progress would be {held.bytes + owned} bytes, more "
            f"than your quota of {holder.quota}; delete some first.",
        )


class RoomCheck:
    """Looks now and then whether all that is on its way leaves Postgres the room that it needs."""

    def __init__(self, store: Store, keep_free: int) -> None:
        self._store = store
        self._keep_free = keep_free
        self._unchecked = _CHECK_EVERY

    def before(self, count: int) -> None:
        """Look before `count` more bytes are written. Raises NoRoom."""
        self._unchecked += count
        if self._unchecked < _CHECK_EVERY:
            return
        self._unchecked = 0
        room = self._store.free_bytes() - self._store.arriving(0).unwritten - self._keep_free
        if room < 0:
            raise _not_taken(NoRoom, "The service's disk has no room for this array; delete some datasets, or wait.")


def _not_taken(kind: type[ApiError], detail: str) -> ApiError:
    """The refusal of an upload. The rest of the body is not read: the connection ends with the answer."""
    return kind(detail, headers={"Connection": "close"})


def keep(
    connection: Connection, store: Store, incoming: Path, contents: Contents, holder: Holder
) -> tuple[Dataset, bool]:
    """Give a whole file its name and let the user hold it; returns that, and whether it is new to the user. Raises
    TooLarge and OSError."""
    repository.lock(connection, contents.id)
    new = repository.hold(connection, contents, holder.user_id, holder.name)
    if new:
        lock_holdings(connection, holder.user_id)
        if (held := bytes_held(connection, holder.user_id)) > holder.quota:
            raise TooLarge(
                f"Your datasets and stored results would be {held} bytes, more than your quota of {holder.quota}; "
                "delete some first."
            )
    # Within the transaction: a row never stands without its file. A file without a row is swept up.
    store.place(incoming, contents.id)
    dataset = repository.get(connection, contents.id, Viewer(holder.user_id, sees_all=False))
    assert dataset is not None
    return dataset, new


async def get(context: Context, user: Principal, dataset_id: str) -> Dataset:
    """Read an array as the user holds it, or else as somebody does who shares it with them. Raises NotFound."""
    dataset = await context.database.read(repository.get, dataset_id, context.viewer(user))
    if dataset is None:
        raise _not_found()
    return dataset


async def stored(context: Context, user: Principal | None, dataset_id: str) -> StoredFile:
    """The row of an array's file, which is needed before the file is sent to `user`, who is None for a worker.
    Raises NotFound."""
    viewer = THE_SERVICE if user is None else context.viewer(user)
    dataset = await context.database.read(repository.get, dataset_id, viewer)
    if dataset is None:
        raise _not_found()
    return StoredFile(dataset.contents.bytes, dataset_id)


def opened(context: Context, dataset_id: str) -> BinaryIO:
    """The file of an array, to be closed by the caller. Raises NotFound and Unavailable."""
    try:
        return Store(context.settings.datasets_dir()).path(dataset_id).open("rb")
    except FileNotFoundError:
        raise NotFound("The file of this dataset is not on the machine of this api.") from None
    except OSError as error:
        log.error("a dataset cannot be read", dataset=dataset_id, error=str(error))
        raise Unavailable("The service cannot read the dataset from its disk.", _RETRY_AFTER_DISK_S) from error


async def uses_of(context: Context, user: Principal, dataset_id: str) -> Uses:
    """What reads an array that the user may read, of what the user sees. Raises NotFound."""
    await get(context, user, dataset_id)
    return await context.database.read(uses.newest, dataset_id, context.viewer(user), MOST_USES)


async def rename(context: Context, user: Principal, dataset_id: str, name: str) -> Dataset:
    """Give the user's entry for an array another name, or for an admin without one that of its owner. Raises NotFound
    and Forbidden."""
    held = await _owned(context, user, dataset_id, "rename")
    deed = Deed(user, Action.RENAME_ARRAY, dataset_id, held.owner, {"name": name})
    await context.database.run(deed.done, repository.rename, dataset_id, held.owner_id, name)
    return replace(held, name=name)


async def delete(context: Context, user: Principal, dataset_id: str) -> None:
    """End the user's hold; an admin without a hold ends everybody's. Raises NotFound and Forbidden."""
    held = await _owned(context, user, dataset_id, "delete")
    whose = user.id if held.owner_id == user.id else None
    deed = Deed(user, Action.DELETE_ARRAY, dataset_id, held.owner, {"name": held.name})
    await context.database.run(deed.done, repository.release, dataset_id, whose)
    await context.database.run(sweep, Store(context.settings.datasets_dir()), dataset_id)


async def _owned(context: Context, user: Principal, dataset_id: str, verb: str) -> Dataset:
    held = await get(context, user, dataset_id)
    if held.owner_id != user.id and not user.is_admin:
        raise Forbidden(f"The dataset belongs to {held.owner}; only its owner and admins may {verb} it.")
    return held


def _not_found() -> NotFound:
    return NotFound("There is no dataset with this id that you may read, or it was deleted.")
