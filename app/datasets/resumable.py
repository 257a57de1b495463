"""The work of requests about uploads that may be resumed, one function for each request.

Headers and answers are those of the IETF's "Resumable Uploads for HTTP" (draft-ietf-httpbis-resumable-upload).
"""

import os
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from warpfold.app.auth.access_tokens import Principal
from warpfold.app.datasets import uses
from warpfold.app.datasets.intake import Intake
from warpfold.app.datasets.partial import Busy, PartialUpload, UploadMetadata, Writing
from warpfold.app.datasets.repository import Contents, Dataset
from warpfold.app.datasets.service import Holder, RoomCheck, failing_disk, keep, reserve
from warpfold.app.datasets.store import Store
from warpfold.app.http.bodies import Body, Piece
from warpfold.app.http.context import Context
from warpfold.app.http.errors import Conflict, Invalid, NotFound, UploadMoved
from warpfold.app.http.pipes import Piped
from warpfold.kernels.dtypes import dtype_named
from warpfold.kernels.formats.npy import head_of
from warpfold.kernels.formats.signature import is_text

_MOST_OF_A_USER = 100


@dataclass(frozen=True, slots=True)
class UploadState:
    """An unfinished upload as it is now: what its sender said, how much of it has come, and when it will be removed."""

    id: str
    metadata: UploadMetadata
    offset: int
    expires_at: datetime


async def create(context: Context, user: Principal, metadata: UploadMetadata) -> UploadState:
    """Begin an upload of `metadata.length` bytes, none of which has come. Raises Conflict, TooLarge, NoRoom and
    Unavailable."""
    store = Store(context.settings.datasets_dir())
    length = _bytes_of_file(metadata)
    with failing_disk():
        if len(await run_in_threadpool(store.partial.of, user.id)) >= _MOST_OF_A_USER:
            raise Conflict(f"You have {_MOST_OF_A_USER} unfinished uploads: finish one, or delete it.")
        upload = store.partial.new(user.id)
        await run_in_threadpool(upload.create, metadata)
        try:
            with upload.path.open("r+b") as file:
                await reserve(context, store, file, length, _holder(context, user, metadata))
            await run_in_threadpool(RoomCheck(store, context.settings.keep_free_bytes).before, 0)
        except BaseException:
            upload.remove()
            raise
        return await run_in_threadpool(_state, upload, metadata)


async def show(context: Context, user: Principal, upload_id: str) -> UploadState:
    """How much of an upload has come. Raises NotFound."""
    with failing_disk():
        upload, metadata = await run_in_threadpool(_find, context, user, upload_id)
        return await run_in_threadpool(_state, upload, metadata)


async def mine(context: Context, user: Principal) -> list[UploadState]:
    """All unfinished uploads of a user."""
    store = Store(context.settings.datasets_dir())
    with failing_disk():
        uploads = [(upload, upload.metadata()) for upload in await run_in_threadpool(store.partial.of, user.id)]
        return [_state(upload, metadata) for upload, metadata in uploads if metadata is not None]


async def append(
    context: Context, user: Principal, upload_id: str, offset: int, body: Body, *, complete: bool
) -> tuple[Dataset, bool] | UploadState:
    """Add what `body` brings from `offset` on. With `complete` that is the last of it: returns the dataset, and whether
    it is new to the user; else the upload as it is now.

    What has come stays if the body ends early, and if the upload cannot be finished for want of room. An upload that
    can never become an array is removed. Raises NotFound, UploadMoved, Conflict, Invalid, TooLarge, NoRoom and
    Unavailable.
    """
    with failing_disk():
        upload, metadata = await run_in_threadpool(_find, context, user, upload_id)
        opened = upload.writing()
        try:
            writing = await run_in_threadpool(opened.__enter__)
        except FileNotFoundError:
            raise _not_found() from None
        except Busy:
            raise Conflict("Another request adds to this upload and does not end; ask again.") from None
        try:
            if offset != writing.offset:
                raise UploadMoved.at(writing.offset, offset)
            try:
                return await _take(context, user, _Open(upload, metadata, writing), body, complete=complete)
            except Invalid:
                await run_in_threadpool(upload.remove)
                raise
        finally:
            await run_in_threadpool(opened.__exit__, None, None, None)


@dataclass(frozen=True, slots=True)
class _Open:
    """An upload that this request writes."""

    upload: PartialUpload
    metadata: UploadMetadata
    writing: Writing

    def flush(self) -> None:
        """Bring what has come to the disk, and note that."""
        os.fdatasync(self.writing.file.fileno())
        self.writing.note(self.writing.offset, flushed=True)


async def _take(
    context: Context, user: Principal, part: _Open, body: Body, *, complete: bool
) -> tuple[Dataset, bool] | UploadState:
    store = Store(context.settings.datasets_dir())
    metadata, writing = part.metadata, part.writing
    raw = None if metadata.dtype is None else dtype_named(metadata.dtype)
    begin = partial(Intake, text=is_text(metadata.name))
    intake = await run_in_threadpool(begin, writing.file, raw, metadata.length, writing.offset)
    room = RoomCheck(store, context.settings.keep_free_bytes)

    def take(piece: Piece | Piped) -> None:
        if intake.received + len(piece) > metadata.length:
            raise Invalid.of("", f"there are more bytes than the {metadata.length} of Upload-Length")
        room.before(len(piece))
        intake.write(piece)
        writing.note(intake.received, flushed=False)

    try:
        try:
            await body.rest(take, writing.is_wanted)
        except ClientDisconnect:
            await run_in_threadpool(part.flush)
            if not writing.is_wanted():
                raise Conflict("Another request goes on with this upload.", headers={"Connection": "close"}) from None
            raise
        if not complete:
            await run_in_threadpool(part.flush)
            return _state(part.upload, metadata)
        contents = await run_in_threadpool(intake.finish)
    finally:
        await run_in_threadpool(intake.close)
    kept = await context.database.run(_keep, store, part.upload, contents, _holder(context, user, metadata))
    await run_in_threadpool(part.upload.finish, contents.id)
    return kept


def _keep(
    connection: Connection, store: Store, upload: PartialUpload, contents: Contents, holder: Holder
) -> tuple[Dataset, bool]:
    kept = keep(connection, store, upload.path, contents, holder)
    uses.became(connection, upload.id, contents.id)
    return kept


async def delete(context: Context, user: Principal, upload_id: str) -> None:
    """Forget an upload and what has come of it. Raises NotFound."""
    with failing_disk():
        upload, _ = await run_in_threadpool(_find, context, user, upload_id)
        await run_in_threadpool(upload.remove)


def _find(context: Context, user: Principal, upload_id: str) -> tuple[PartialUpload, UploadMetadata]:
    upload = Store(context.settings.datasets_dir()).partial.get(user.id, upload_id)
    metadata = upload.metadata()
    if metadata is None:
        raise _not_found()
    return upload, metadata


def _state(upload: PartialUpload, metadata: UploadMetadata) -> UploadState:
    try:
        return UploadState(upload.id, metadata, upload.offset(), upload.expires_at(metadata))
    except FileNotFoundError:
        raise _not_found() from None


def _bytes_of_file(metadata: UploadMetadata) -> int:
    """How long the file is to become: bare elements get a head."""
    if metadata.dtype is None:
        return metadata.length
    dtype = dtype_named(metadata.dtype)
    return metadata.length + len(head_of(dtype.numpy, metadata.length // dtype.itemsize))


def _holder(context: Context, user: Principal, metadata: UploadMetadata) -> Holder:
    return Holder(user.id, metadata.name, context.settings.dataset_quota_bytes)


def _not_found() -> NotFound:
    return NotFound("There is no unfinished upload of yours with this id: it was finished, deleted, or left too long.")
