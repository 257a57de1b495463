"""Uploads that may be resumed: each has a file with the bytes that have come, of its final length, and a note beside
it.

The note says how many bytes have come. It is written after every piece, so that all bytes count that reached the file
before its process was killed. If the machine itself stops, bytes that were not on the disk are lost, although the file
may seem to have them. The note therefore names the run of the machine that wrote it, and after a restart of the machine
the upload goes on from the bytes that were flushed.
"""

import fcntl
import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from pydantic import BaseModel, ValidationError

from warpfold.contract import upload_notes
from warpfold.contract.upload_notes import (
    BOOT_BYTES,
    NUMBERS_BYTES,
    STATE_BYTES,
    WRITER_BYTES,
    NoteState,
    finished_mark,
    is_finished_mark,
    unfinished_mark,
)

_ID = re.compile(r"[0-9a-f]{32}")
_TAKE_OVER_S = 10.0
_LOOK_EVERY_S = 0.02
_BEING_MADE_S = 60.0
_MARKED_S = 3600.0
"""How long a mark of a finished upload stays for jobs that wait."""


class Busy(Exception):
    """Another request writes this upload and does not end."""


class UploadMetadata(BaseModel):
    """The sender's description of an upload at its beginning. `dtype` is that of bare elements, None for a .npy
    file; `length` counts the bytes to be sent; an upload to which nothing was added for `lives_s` seconds is
    removed."""

    name: str
    dtype: str | None
    length: int
    lives_s: float


class PartialUpload:
    """One unfinished upload of a user. Raises OSError."""

    def __init__(self, notes: Path, incoming: Path, owner_id: int, upload_id: str) -> None:
        self.id = upload_id
        self._note = notes / f"{owner_id}-{upload_id}"
        self.path = incoming / f"{owner_id}-{upload_id}"
        """Where its bytes are."""

    def create(self, metadata: UploadMetadata) -> None:
        """Begin it, without a byte."""
        self._note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._note.touch(mode=0o600)
        self._note.write_bytes(NoteState(boot=upload_notes.boot()).line() + metadata.model_dump_json().encode())
        self.path.touch(mode=0o600)

    def metadata(self) -> UploadMetadata | None:
        """The note about an upload; None if there is no such upload, or no longer."""
        try:
            metadata = UploadMetadata.model_validate_json(self._note.read_bytes()[STATE_BYTES:])
            return metadata if self.path.exists() and age_s(self.path) < metadata.lives_s else None
        except (FileNotFoundError, ValidationError):
            return None

    def offset(self) -> int:
        """How many bytes have come and need not be sent again."""
        with self._note.open("rb") as note:
            return NoteState.of(note.fileno()).valid_offset

    def expires_at(self, metadata: UploadMetadata) -> datetime:
        """When it will be removed if nothing is added."""
        return datetime.fromtimestamp(self.path.stat().st_mtime + metadata.lives_s, UTC)

    @contextmanager
    def writing(self) -> Iterator["Writing"]:
        """Take over as the writer of the upload for the time of the block. Raises Busy, and FileNotFoundError if the
        upload was removed."""
        me = secrets.token_hex(WRITER_BYTES // 2)
        with self._note.open("r+b", buffering=0) as note, self.path.open("r+b", buffering=0) as file:
            os.pwrite(note.fileno(), me.encode(), NUMBERS_BYTES + 1)
            _lock(file)
            if os.fstat(file.fileno()).st_nlink == 0:
                raise FileNotFoundError
            offset = NoteState.of(note.fileno()).valid_offset
            writing = Writing(file, note, me, offset)
            writing.note(offset, flushed=False)
            boot = f"{upload_notes.boot():{BOOT_BYTES}}".encode()
            os.pwrite(note.fileno(), boot, NUMBERS_BYTES + 1 + WRITER_BYTES + 1)
            os.utime(file.fileno())
            yield writing

    def finish(self, dataset_id: str) -> None:
        """Forget it, and leave a mark for the jobs that read it while it came: it is this dataset now."""
        mark = finished_mark(self._note)
        new = unfinished_mark(mark)
        new.write_text(dataset_id)
        new.replace(mark)
        self.remove()

    def finished(self) -> bool:
        """Whether it became a dataset, not long ago."""
        return finished_mark(self._note).exists()

    def remove(self) -> None:
        """Forget it. Doing it again changes nothing."""
        self.path.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)


class Writing:
    """The right to write one unfinished upload."""

    def __init__(self, file: IO[bytes], note: IO[bytes], me: str, offset: int) -> None:
        self.file = file
        self.offset = offset
        self._note = note
        self._me = me
        self._flushed = NoteState.of(note.fileno()).flushed

    def is_wanted(self) -> bool:
        """Whether no later request wants to write the upload. Where one does, the sender of this request has gone, even
        if its connection still seems open."""
        return NoteState.of(self._note.fileno()).writer == self._me

    def note(self, offset: int, *, flushed: bool) -> None:
        """Note that the file has all bytes up to `offset`, `flushed` to the disk or not."""
        self._flushed = offset if flushed else min(self._flushed, offset)
        # The writer's name stays as it is: the next one may have written its own by now.
        os.pwrite(self._note.fileno(), NoteState(offset, self._flushed).line()[:NUMBERS_BYTES], 0)
        if flushed:
            os.fdatasync(self._note.fileno())
        self.offset = offset


class PartialUploads:
    """All unfinished uploads that may be resumed: notes in one folder, what has come in another."""

    def __init__(self, notes: Path, incoming: Path) -> None:
        self._notes = notes
        self._incoming = incoming

    def new(self, owner_id: int) -> PartialUpload:
        """An upload that is yet to be created."""
        return PartialUpload(self._notes, self._incoming, owner_id, secrets.token_hex(16))

    def get(self, owner_id: int, upload_id: str) -> PartialUpload:
        """The upload of a user with this id, whether or not there is one."""
        return PartialUpload(self._notes, self._incoming, owner_id, upload_id)

    def of(self, owner_id: int) -> list[PartialUpload]:
        """All unfinished uploads of a user."""
        names = sorted(name.partition("-") for name in self.names())
        return [self.get(owner_id, upload_id) for owner, _, upload_id in names if owner == str(owner_id)]

    def names(self) -> set[str]:
        """The names of all notes, and of the files that they stand for."""
        return {path.name for path in self._notes.glob("*") if _ID.fullmatch(path.name.partition("-")[2])}

    def remove_expired(self) -> None:
        """Remove those whose time is over, notes without a file, and old marks."""
        for name in self.names():
            owner, _, upload_id = name.partition("-")
            upload = self.get(int(owner), upload_id)
            if upload.metadata() is None and age_s(self._notes / name) > _BEING_MADE_S:
                upload.remove()
        for path in self._notes.glob("*"):
            if is_finished_mark(path) and age_s(path) > _MARKED_S:
                path.unlink(missing_ok=True)


def _lock(file: IO[bytes]) -> None:
    give_up = time.monotonic() + _TAKE_OVER_S
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > give_up:
                raise Busy from None
            time.sleep(_LOOK_EVERY_S)
        except OSError:  # a file system without locks
            return


def age_s(path: Path) -> float:
    """How long ago a file was written to; 0 if it is gone."""
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
