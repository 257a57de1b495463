"""The files that a reduction reads: their metadata, whether they changed meanwhile, and the SHA-256 of their bytes.

A file is hashed by a thread of its own while it is reduced, by reading it once more: SHA-256 takes a core a second for
one or two gigabytes, and a reduction reads fifty with all cores (docs/decisions/0036-fingerprints-of-inputs.md).
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event
from typing import Any, BinaryIO

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.machine.cores import usable_cores
from warpfold.kernels.places.file import stamp_of
from warpfold.kernels.places.remote import REQUEST_BYTES, RemoteObject

_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file of this machine. `begin` opens it, and raises InvalidInput or OSError. `sha256` is known of a file that is
    named after its bytes. A file that was still written when it was opened gets such a name afterwards: `becomes`
    returns it, and raises InvalidInput."""

    name: str
    begin: Callable[[], BinaryIO]
    sha256: str | None = None
    becomes: Callable[[], str] | None = None

    @property
    def is_hashed(self) -> bool:
        """Whether others hash it."""
        return self.sha256 is not None or self.becomes is not None


@dataclass(frozen=True, slots=True)
class FileMetadata:
    """A file as it was reduced: its size in bytes, the time of its modification in seconds since 1970, and the SHA-256
    of its bytes. A folder has no size, time or hash, and a file has a hash only if it was asked for."""

    name: str
    size: int | None
    modified: float | None
    sha256: str | None


class Inputs:
    """The files of one reduction, to be looked at before it opens them: `with Inputs(files, …) as inputs`. The first
    `most` of them are looked at; with `fingerprint` all of them are, and are hashed within the block."""

    def __init__(self, files: Sequence[LocalFile], *, fingerprint: bool, most: int) -> None:
        self.count = len(files)
        self._looked = [(file, _stamp(file)) for file in (files if fingerprint else files[:most])]
        self._fingerprint = fingerprint
        self._stop = Event()
        self._threads: ThreadPoolExecutor | None = None
        self._hashes: list[Future[str] | None] = [None] * len(self._looked)

    def __enter__(self) -> "Inputs":
        for at, (file, stamp) in enumerate(self._looked if self._fingerprint else ()):
            if stamp is not None and not file.is_hashed:
                # Half of the cores at most: the other half reduces.
                self._threads = self._threads or ThreadPoolExecutor(max(1, usable_cores() // 2), "hash")
                self._hashes[at] = self._threads.submit(_hashed, file, stamp, self._stop)
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)

    def metadata(self) -> Sequence[FileMetadata]:
        """The files in order, when they were reduced; waits for their hashes. Raises InvalidInput where one of them is
        another than it was."""
        metadata = []
        for (file, stamp), hashing in zip(self._looked, self._hashes, strict=True):
            known = file.sha256 if file.becomes is None else file.becomes()
            sha256 = known if hashing is None else hashing.result()
            now = _stamp(file)
            if not file.is_hashed and stamp is not None and now not in (stamp, None):
                raise _changed(file)
            metadata.append(
                FileMetadata(
                    file.name if file.becomes is None or known is None else known,
                    None if stamp is None else stamp[2],
                    None if stamp is None or file.is_hashed else stamp[3] / 1e9,
                    sha256,
                )
            )
        return metadata


def hash_of_object(read: object) -> str | None:
    """The SHA-256 of an object of a place, which is read once more for it; None of a folder of objects. Raises
    InvalidInput where it is another object now, and Unavailable."""
    if not isinstance(read, RemoteObject):
        return None
    digest = hashlib.sha256()
    for part in read.in_order(_ranges(read.size)):
        digest.update(part.data)
    return digest.hexdigest()


def fingerprint_of(hashes: Sequence[str | None]) -> str | None:
    """One hash of files and objects in their order: that of a single one; of several the SHA-256 of their hashes in
    hexadecimal digits, each with a line feed behind it. None where one of them is not known, and of nothing."""
    known = [sha256 for sha256 in hashes if sha256 is not None]
    if not known or len(known) < len(hashes):
        return None
    return known[0] if len(known) == 1 else hashlib.sha256("".join(f"{sha}\n" for sha in known).encode()).hexdigest()


def _ranges(size: int) -> Iterator[tuple[int, int]]:
    return ((at, min(at + REQUEST_BYTES, size)) for at in range(0, size, REQUEST_BYTES))


def _stamp(file: LocalFile) -> tuple[Any, ...] | None:
    """The mark that tells the file from another of its name; None of a folder, and where it cannot be opened."""
    try:
        with file.begin() as opened:
            return stamp_of(opened)
    except (OSError, InvalidInput):  # the reduction says so
        return None


def _hashed(file: LocalFile, stamp: tuple[Any, ...], stop: Event) -> str:
    digest, buffer = hashlib.sha256(), memoryview(bytearray(_PIECE))
    with file.begin() as opened:
        if stamp_of(opened) != stamp:
            raise _changed(file)
        while not stop.is_set() and (count := opened.readinto(buffer)):  # type: ignore[attr-defined]
            digest.update(buffer[:count])
        if stamp_of(opened) != stamp:
            raise _changed(file)
    return digest.hexdigest()


def _changed(file: LocalFile) -> InvalidInput:
    return InvalidInput(f"{file.name!r} changed while it was read", "source")
