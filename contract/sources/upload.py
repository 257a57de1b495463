"""Arrays that are being uploaded: they are reduced while they come."""

import os
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, StringConstraints

from warpfold.contract.folders import Folders
from warpfold.contract.sources.dataset import DatasetSource
from warpfold.contract.sources.source import SourceSpec
from warpfold.contract.upload_notes import Arriving
from warpfold.kernels.dtypes import dtype_of
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.npy import Head, read_head
from warpfold.kernels.formats.npy_head import MOST_HEAD_BYTES, is_npy
from warpfold.kernels.sources.inputs import LocalFile
from warpfold.kernels.sources.sequential import Elements, Section, SequentialSource

PATIENCE_S = 15.0
"""An upload of which no byte comes for this long fails its job: others wait for the slot."""

MOST_WAITING_S = 60.0
_HANDED_IN_FOR = 1e9
"""A job waits for its sender for a minute at most in all, and for a second more for each of so many bytes: twice the
time that is left when a client hands it in. Otherwise a sender who trickles would hold the slot until the job's time
limit."""

_SLOWEST = 20e6
"""Bytes a second at which an upload that has come whole is hashed and brought to the disk, at least."""

_LOOK_EVERY_S = 0.004
_SECTION_BYTES = 16 << 20
_FIRST_BYTES = MOST_HEAD_BYTES + 12


class UploadSource(SourceSpec):
    """The array of a .npy file that is on its way to `/v1/uploads`: the job reduces what has come, waits for the rest,
    and ends once the upload is a dataset. A job whose upload makes no progress for 15 seconds fails, and so does a job
    that has waited for its sender for a minute in all, and a second more for each GB: hand it in shortly before the
    upload ends. Afterwards a `dataset` source names the array."""

    type: Literal["upload"]
    id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")] = Field(
        description="The id of your upload, from the answer to `POST /v1/uploads`."
    )

    @property
    def upload_id(self) -> str:
        return self.id

    def identity(self) -> str:
        return f"the upload {self.id}"

    @staticmethod
    def summary(stored: Mapping[str, Any]) -> str | None:
        return f"upload {stored['id']}" if "id" in stored else None

    def bytes_at_hand(self, folders: Folders | None) -> int | None:
        try:  # the file is as long as it is to become
            return None if folders is None else Arriving(folders.datasets, self.id).path.stat().st_size
        except OSError:
            return None

    def files(self, folders: Folders) -> Sequence[LocalFile]:
        arriving = Arriving(folders.datasets, self.id)
        return (LocalFile(self.id, partial(_begin, folders, arriving), becomes=partial(_became, self.id, arriving)),)

    def open(self, folders: Folders) -> Elements:
        """The elements, of which all reads wait until they have come. Raises InvalidInput, as reading does."""
        following = _Following(folders.datasets, self.id)
        head = following.head()
        if head is None:  # the file must be whole before it can be read
            return DatasetSource(type="dataset", id=following.finished()).open(folders)
        return SequentialSource(
            dtype=dtype_of(head.dtype),
            make=partial(following.arrays, head),
            count=head.data_bytes // head.dtype.itemsize,
            shape=head.shape,
            sections=partial(following.sections, head),
        )


def _begin(folders: Folders, arriving: Arriving) -> BinaryIO:
    try:
        return arriving.path.open("rb")
    except FileNotFoundError:
        return folders.dataset(arriving.finished() or "").open("rb")


def _became(upload_id: str, arriving: Arriving) -> str:
    if (dataset_id := arriving.finished()) is None:
        raise InvalidInput(f"upload {upload_id} has not become a dataset", "source.id")
    return dataset_id


class _Following:
    """The file of an upload, read behind its writer."""

    def __init__(self, datasets: Path, upload_id: str) -> None:
        self._id = upload_id
        self._datasets = datasets
        self._arriving = Arriving(datasets, upload_id)
        self._file: int | None = None
        self._length = 0
        self._waited_s = 0.0
        try:
            self._file = os.open(self._arriving.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:  # it has become a dataset already, or goes to another machine
            return
        weakref.finalize(self, os.close, self._file)
        self._length = os.fstat(self._file).st_size

    def head(self) -> Head | None:
        """The head of the array, if its elements can be read while they come. Raises InvalidInput."""
        if self._file is None or not self._arriving.grows_here():
            return None
        self._wait(min(_FIRST_BYTES, self._length))
        first = os.pread(self._file, _FIRST_BYTES, 0)
        head = read_head(BytesIO(first), wider=True) if is_npy(first) else None
        if head is None or (head.fortran_order and len(head.shape) > 1):
            return None
        plain = head.dtype.kind in "iuf" and head.dtype.isbuiltin == 1
        return head if plain and head.offset + head.data_bytes == self._length else None

    def finished(self) -> str:
        """The dataset that the upload has become, once it has. Raises InvalidInput where it does not."""
        self._wait(self._length)
        give_up = time.monotonic() + PATIENCE_S + self._length / _SLOWEST
        while (dataset_id := self._arriving.finished()) is None:
            if self._arriving.offset() is None and self._arriving.finished() is None:
                raise self._error("is not there: it was given up, or it goes to another machine")
            if time.monotonic() > give_up:
                raise self._error("has come whole, and has not become a dataset")
            time.sleep(_LOOK_EVERY_S)
        return dataset_id

    def sections(self, head: Head) -> Iterator[Section]:
        """Runs of the elements, each once it has come; at the end the upload is a dataset."""
        count = head.data_bytes // head.dtype.itemsize
        step = max(1, _SECTION_BYTES // head.dtype.itemsize)
        for start in range(0, count, step):
            size = min(step, count - start)
            self._wait(head.offset + (start + size) * head.dtype.itemsize)
            yield Section(partial(self._read, head, start, size), size * head.dtype.itemsize, start, size)
        self.finished()

    def arrays(self, head: Head) -> Iterator[NDArray[Any]]:
        """The same elements in order."""
        for section in self.sections(head):
            yield from section.make()

    def _read(self, head: Head, start: int, count: int) -> Iterator[NDArray[Any]]:
        assert self._file is not None
        array = np.empty(count, head.dtype)
        view, at = array.view(np.uint8).data, head.offset + start * head.dtype.itemsize
        while view:
            got = os.preadv(self._file, [view], at)
            if not got:
                raise self._error("is shorter than it was")
            view, at = view[got:], at + got
        yield array

    def _wait(self, position: int) -> None:
        """Wait until all bytes before `position` have come. Raises InvalidInput after PATIENCE_S without any, and where
        the job has waited too long in all."""
        seen, since = -1, time.monotonic()
        most_s = MOST_WAITING_S + self._length / _HANDED_IN_FOR
        while (offset := self._arriving.offset()) is None or offset < position:
            if self._arriving.finished() is not None:
                return
            if offset is None:
                raise self._error("is not there: it was given up, or it goes to another machine")
            now = time.monotonic()
            if offset != seen:
                seen, since = offset, now
            if now - since > PATIENCE_S:
                raise self._error(f"ended after {offset} of {self._length} bytes: nothing came for {PATIENCE_S:g} s")
            if self._waited_s > most_s:
                so_far = f"{offset} of {self._length} bytes had come"
                raise self._error(f"comes too slowly: the job waited {most_s:.3g} s for it in all, and {so_far}")
            began = time.monotonic()
            time.sleep(_LOOK_EVERY_S)
            self._waited_s += time.monotonic() - began

    def _error(self, why: str) -> InvalidInput:
        return InvalidInput(f"upload {self._id} {why}", "source.id")
