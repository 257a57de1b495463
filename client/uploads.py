"""Conversations that send arrays. An array that the service has is not sent, and an upload that was cut goes on where
it stood."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpfold.client import jobs
from warpfold.client.array_files import ArrayAsFile, ColumnAsFile
from warpfold.client.beside import Beside, Timed
from warpfold.client.catalogue import whoami
from warpfold.client.contents import ArrayContent, BytesContent, FileContent, Sendable
from warpfold.client.datasets import dataset
from warpfold.client.errors import WarpfoldError
from warpfold.client.exchange import Call, Content, Interrupted, Parameters, Portion, Steps
from warpfold.client.http import httpx
from warpfold.client.models import Dataset, Job
from warpfold.contract.backoff import Backoff
from warpfold.kernels.formats.npy_head import is_npy

_HASHED_FIRST = 8 << 20
"""Bytes up to which an array is hashed before it is sent, and sent in one request."""

_EARLY = 64 << 20
"""Bytes from which an array may be reduced while it is sent."""

_MOST_IN_VAIN = 8
_SLOWEST = 20e6
"""Bytes a second at which the service is given time to hash an upload and to bring it to its disk."""


@dataclass(frozen=True, slots=True)
class _Rest:
    """The part of a content that is yet to be sent."""

    content: Content
    start: int

    @property
    def length(self) -> int:
        return self.content.length - self.start

    def pieces(self, start: int = 0) -> Iterator[bytes | memoryview]:
        return self.content.pieces(self.start + start)


def content_of(data: object, dtype: str | None, *, rehash: bool = False) -> Sendable:
    """The content to upload for an array, or for a file that is given as its Path. Raises TypeError for data that is
    not an array, and for a folder."""
    if not isinstance(data, Path):
        from warpfold.client.arrays import as_numpy
        from warpfold.client.as_files import as_file

        match as_file(data, dtype):
            case ArrayAsFile(array):
                return ArrayContent(array)
            case ColumnAsFile() as column:
                return BytesContent(column.to_bytes())
            case numbers:
                return ArrayContent(as_numpy(numbers, dtype))
    if data.is_dir():
        raise TypeError(
            f"{data} is a folder: pass an array of a Zarr hierarchy as zarr.open(path)['name'], or send the hierarchy "
            "by the command `warpfold reduce FOLDER`"
        )
    if dtype is not None:
        raise TypeError(f"the file {data} is sent as it is; for another dtype, load the file and pass the array")
    return FileContent(data, rehash)


def begins_as_npy(path: Path) -> bool:
    """Whether a file says of itself that it is an array. Raises OSError."""
    if path.is_dir():
        return False
    with path.open("rb") as file:
        return is_npy(file.read(8))


def digest(content: Content) -> str:
    """The id that the service will give the array."""
    running = hashlib.sha256()
    for piece in content.pieces():
        running.update(piece)
    return running.hexdigest()


@dataclass(eq=False)
class EarlyJob:
    """A job that reduces a large upload while it comes: `fields` of its spec besides the source, and the job, once it
    was handed in."""

    fields: Mapping[str, Any]
    job: Job | None = None

    def beside(self, upload_id: str) -> Beside:
        """The submission, and the cancel of its job if the service refuses the upload."""
        source = {"type": "upload", "id": upload_id}
        submission = next(jobs.submit({**self.fields, "source": source}, None))
        return Beside(submission, lambda job: next(jobs.cancel(job.id)))


def upload(content: Sendable, name: str, early: EarlyJob | None = None) -> Steps[Dataset]:
    """Have the service keep an array; what it keeps for this user already is not sent again.

    The digest is remembered of a file that was sent before. Else the service computes it while the array arrives, and
    it is computed here first only where that may save the sending: of a small array, and of one for which the service
    holds an array of the same length. An `early` job is handed in while a large array is sent; not where nothing is.
    """
    dataset_id = content.known()
    if dataset_id is None and (content.length <= _HASHED_FIRST or (yield from _is_as_long(content.length))):
        dataset_id = digest(content)
    if dataset_id is not None:
        held: Dataset | None = yield Call("GET", f"/v1/datasets/{dataset_id}", _if_held, expected=(404,))
        if held is not None and held.bytes == content.length and held.owner == (yield from whoami()).name:
            content.keep(digest=held.id)
            return held
    uploaded: Dataset | None = None
    if content.length > _HASHED_FIRST:
        uploaded = yield from _in_parts(content, name, early if content.length >= _EARLY else None)
    if uploaded is None:
        query = {"name": name or content.called or None}
        uploaded = yield Call(
            "POST",
            "/v1/datasets",
            dataset,
            query,
            content=content,
            portion=Portion(name or content.called, 0, content.length),
            read_s=_patience_s(content),
        )
    content.keep(digest=uploaded.id)
    return uploaded


def _is_as_long(length: int) -> Steps[bool]:
    """Whether the user holds an array of so many bytes; true where the service cannot tell."""

    def read(response: httpx.Response) -> bool:
        return response.status_code == 422 or bool(response.json()["items"])

    owner = (yield from whoami()).name
    query: Parameters = {"owner": owner, "bytes": length, "limit": 1}
    answer: bool = yield Call("GET", "/v1/datasets", read, query, expected=(422,))
    return answer


def _in_parts(content: Sendable, name: str, early: EarlyJob | None) -> Steps[Dataset | None]:
    """Send an array so that a cut loses nothing; None if the service does not take it like that."""
    path, offset = content.unfinished(), 0
    if path is not None:
        stands: int | None = yield Call("HEAD", path, _offset, expected=(404,))
        path, offset = (None, 0) if stands is None else (path, stands)
    if path is None:
        headers = {"Upload-Length": str(content.length), "Upload-Complete": "?0"}
        called = name or content.called
        path = yield Call(
            "POST", "/v1/uploads", _location, {"name": called or None}, headers=headers, expected=(404, 405)
        )
        if path is None:
            return None
        content.keep(upload=path)
    backoff, in_vain = Backoff(0.1, 2.0, least=0.5), 0
    while in_vain < _MOST_IN_VAIN:
        rest, beside = _Rest(content, offset), None
        if early is not None and early.job is None:
            beside = early.beside(path.rpartition("/")[2])
        try:
            outcome: Dataset | int | None = yield Call(
                "PATCH",
                path,
                _appended,
                headers={
                    "Content-Type": "application/partial-upload",
                    "Upload-Offset": str(offset),
                    "Upload-Complete": "?1",
                },
                content=rest if beside is None else Timed(rest, beside, content.length),
                portion=Portion(name or content.called, offset, content.length),
                beside=beside,
                expected=(404, 409),
                once=True,
                after_s=backoff.next() if in_vain else 0.0,
                read_s=_patience_s(content),
            )
        except Interrupted as error:
            cut: Exception | None = error
            outcome = yield Call("HEAD", path, _offset, expected=(404,), after_s=backoff.next())
        else:
            cut = None
        if early is not None and beside is not None:
            early.job = beside.outcome
        if outcome is None:
            raise WarpfoldError("the service finished this upload or has given it up: send the array again") from cut
        if not isinstance(outcome, int):
            return outcome
        in_vain = 0 if outcome > offset else in_vain + 1
        if not in_vain:
            backoff.reset()
        offset = outcome if outcome >= 0 else offset
    raise WarpfoldError(f"the service takes no more of this upload than the {offset} bytes that it has") from cut


def _patience_s(content: Content) -> float:
    return 60.0 + content.length / _SLOWEST


def _if_held(response: httpx.Response) -> Dataset | None:
    return None if response.status_code == 404 else dataset(response)


def _location(response: httpx.Response) -> str | None:
    return response.headers["Location"] if response.status_code == 201 else None


def _offset(response: httpx.Response) -> int | None:
    return None if response.status_code == 404 else int(response.headers["Upload-Offset"])


def _appended(response: httpx.Response) -> Dataset | int | None:
    """The dataset; or where the upload stands, -1 if the answer does not say; or None if there is no such upload."""
    if response.status_code == 404:
        return None
    if response.status_code == 409:
        return int(response.headers.get("Upload-Offset", -1))
    return dataset(response)
