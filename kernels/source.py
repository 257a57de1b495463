"""Sources: where the elements of a reduction come from."""

import os
import weakref
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.dtypes import DType, Kind, dtype_of
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.generate import generate
from warpfold.kernels.sources.checksums import Checksum
from warpfold.kernels.sources.mapped import forget, populate

MOST_MAPPED_BYTES = 1 << 28
"""The largest file of which a process keeps all pages that it has read through its map."""


class Source(Protocol):
    """A one-dimensional array of `count` elements of `dtype` that can be read piece by piece."""

    @property
    def dtype(self) -> DType: ...

    @property
    def count(self) -> int: ...

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Elements start … stop−1 on the host, shape (stop − start,), native byte order; True is the byte 1."""
        ...

    def read_into(self, start: int, out: NDArray[np.uint8]) -> None:
        """Fill `out`, which is contiguous, with the bytes that `read` gives of the elements from `start` on.

        Several threads may call it at once. Raises InvalidInput where a file does not hold them any more."""
        ...


def stamp_of(descriptor: int) -> tuple[int, int]:
    """Size and time of modification of an open file: another stamp is another content."""
    status = os.fstat(descriptor)
    return status.st_size, status.st_mtime_ns


@dataclass(frozen=True, slots=True)
class Location:
    """Where bytes lie: `offset` bytes behind the beginning of the open file `descriptor`, or, where that is −1, at the
    address `offset`."""

    descriptor: int
    offset: int


@dataclass(frozen=True, slots=True)
class Extent:
    """Elements that lie one after another: where the first of them lies, and how many they are."""

    location: Location
    count: int


class FileBytes:
    """The bytes of an open file from `offset` on. Reading them costs no page faults, as reading a memory map does, and
    finds out that the file was cut, where touching a map would end the process."""

    def __init__(self, descriptor: int, offset: int, checksum: Checksum | None = None) -> None:
        """`checksum` is that of the member of an archive whose last bytes these are, if one is known."""
        self._descriptor = os.dup(descriptor)
        self._offset = offset
        self._checksum = checksum
        self._stamp = stamp_of(self._descriptor)
        weakref.finalize(self, os.close, self._descriptor)

    def behind(self, nbytes: int) -> "FileBytes":
        """The same bytes without the first `nbytes`."""
        return FileBytes(self._descriptor, self._offset + nbytes)

    def location(self, start: int) -> "Location":
        """Where the bytes from `start` on lie."""
        return Location(self._descriptor, self._offset + start)

    def with_checksum(self, checksum: Checksum) -> "FileBytes":
        """The same bytes, with the checksum of the member of an archive that ends with them."""
        return FileBytes(self._descriptor, self._offset, checksum)

    @property
    def checksum(self) -> Checksum | None:
        """The checksum that the file gives for these bytes; None where it gives none."""
        return None if self._checksum is None else replace(self._checksum, descriptor=self._descriptor)

    def is_unchanged(self) -> bool:
        """Whether the file is as it was when it was opened, as far as its size and its time of modification tell."""
        return stamp_of(self._descriptor) == self._stamp

    def read_into(self, start: int, out: NDArray[np.uint8]) -> None:
        """Fill `out` with the bytes from `start` on. Raises InvalidInput where the file ends before."""
        view, filled = out.data, 0
        while filled < len(view):
            try:
                got = os.preadv(self._descriptor, [view[filled:]], self._offset + start + filled)
            except OSError as error:
                raise InvalidInput(f"the file cannot be read: {os.strerror(error.errno or 0).lower()}") from None
            if got == 0:
                raise InvalidInput("the file became shorter while it was read")
            filled += got


@dataclass(frozen=True)
class ArraySource:
    """Elements of a NumPy array (or a memory map) of any shape, in C order. `file` holds the same elements, in the same
    order and byte order, where `array` is a map of a file."""

    array: NDArray[Any]
    file: FileBytes | None = None

    @property
    def dtype(self) -> DType:
        return dtype_of(self.array.dtype)

    @property
    def count(self) -> int:
        return int(self.array.size)

    def read(self, start: int, stop: int) -> NDArray[Any]:
        # reshape of a C-contiguous map is a view: nothing is read before it is used. Of any other layout it would be a
        # copy of everything, where `flat` copies the piece.
        flat = self.array.reshape(-1) if self.array.flags.c_contiguous else self.array.flat
        stored = flat[start:stop]
        if self.file is not None and self.array.flags.c_contiguous:
            populate(stored)
        piece = np.asarray(stored, dtype=self.dtype.numpy)
        # A file's True may be any byte but 0, and kernels add up bytes.
        return piece.view(np.uint8) != 0 if self.dtype.kind is Kind.BOOL else piece

    def read_into(self, start: int, out: NDArray[np.uint8]) -> None:
        dtype = self.dtype
        if self.file is not None and bytes_at(self) is not None:
            self.file.read_into(start * dtype.itemsize, out)
        else:
            out[:] = np.ascontiguousarray(self.read(start, start + out.size // dtype.itemsize)).view(np.uint8)


class HeldArrays:
    """Arrays in memory as one source, one after another: none of them is copied before it is read."""

    def __init__(self, dtype: DType, arrays: Sequence[NDArray[Any]]) -> None:
        self.dtype = dtype
        self._arrays = arrays
        self._ends = list(accumulate(array.size for array in arrays))

    @property
    def count(self) -> int:
        return self._ends[-1] if self._ends else 0

    def whole(self) -> NDArray[Any]:
        """All elements, shape (count,); a single array is not copied."""
        return self._arrays[0] if len(self._arrays) == 1 else np.concatenate(self._arrays)

    def extents(self) -> "Sequence[Extent] | None":
        """Where the elements of all arrays lie, if these have no gaps."""
        if not all(array.flags.c_contiguous and array.dtype == self.dtype.numpy for array in self._arrays):
            return None
        return [Extent(Location(-1, array.ctypes.data), array.size) for array in self._arrays if array.size]

    def read(self, start: int, stop: int) -> NDArray[Any]:
        out = np.empty(stop - start, self.dtype.numpy)
        self.read_into(start, out.view(np.uint8))
        return out

    def read_into(self, start: int, out: NDArray[np.uint8]) -> None:
        rest, at = out.view(self.dtype.numpy), start
        while rest.size:
            number = bisect_right(self._ends, at)
            array = self._arrays[number]
            part = array[at - self._ends[number] + array.size :][: rest.size]
            rest[: part.size] = part
            rest, at = rest[part.size :], at + part.size


@dataclass(frozen=True)
class GeneratedSource:
    """`count` elements of a named distribution (`kernels.generate.DISTRIBUTIONS`), the same bits on every backend."""

    distribution: str
    count: int
    seed: int
    dtype: DType
    parameters: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))

    def read(self, start: int, stop: int) -> NDArray[Any]:
        return generate(self, start, stop)

    def read_into(self, start: int, out: NDArray[np.uint8]) -> None:
        out[:] = self.read(start, start + out.size // self.dtype.itemsize).view(np.uint8)


@dataclass(frozen=True)
class FileSource:
    """`count` elements of `dtype` that lie in a file, `offset` bytes behind its beginning, in native byte order; no
    truth values."""

    dtype: DType
    count: int
    file: FileBytes
    offset: int

    def read(self, start: int, stop: int) -> NDArray[Any]:
        out = np.empty(stop - start, self.dtype.numpy)
        self.read_into(start, out.view(np.uint8))
        return out

    def read_into(self, start: int, out: NDArray[np.uint8]) -> None:
        self.file.read_into(self.offset + start * self.dtype.itemsize, out)


class Chain(ABC):
    """Sources that are read one after another, each opened when it is read (`kernels.sources.chained`)."""

    @abstractmethod
    def extents(self) -> Sequence[Extent] | None:
        """Where the elements of all links lie, if the links are few enough to stay open, and their elements lie in
        files. Raises InvalidInput where a link cannot be opened."""

    @abstractmethod
    def is_unchanged(self) -> bool:
        """Whether the files that are open are as they were when they were opened."""

    @abstractmethod
    def checksums(self) -> Sequence[Checksum]:
        """The checksums of the links that are open. Those of a link that is closed are verified when it is closed."""

    @abstractmethod
    def changed(self) -> str | None:
        """The name of a link that is open and whose file has changed; None if all are unchanged."""


@dataclass(frozen=True)
class PartSource:
    """Elements `start` … `start` + `count` − 1 of another source."""

    source: Source
    start: int
    count: int

    @property
    def dtype(self) -> DType:
        return self.source.dtype

    def read(self, start: int, stop: int) -> NDArray[Any]:
        return self.source.read(self.start + start, self.start + stop)

    def read_into(self, start: int, out: NDArray[np.uint8]) -> None:
        self.source.read_into(self.start + start, out)


def part_of(source: Source, start: int, stop: int) -> Source:
    """Elements start … stop − 1 of `source`; a view where they are in memory or in a file of their own."""
    match source:
        case ArraySource(array, file) if array.flags.c_contiguous:
            behind = None if file is None else file.behind(start * array.itemsize)
            return ArraySource(array.reshape(-1)[start:stop], behind)
        case FileSource(dtype, _, file, offset):
            return FileSource(dtype, stop - start, file, offset + start * dtype.itemsize)
    return PartSource(source, start, stop - start)


def bytes_at(source: object) -> Location | None:
    """Where the bytes of a source's elements lie one after another as kernels read them; None where they do not."""
    match source:
        case ArraySource(array, file):
            if not (array.flags.c_contiguous and array.dtype.isnative and source.dtype.kind is not Kind.BOOL):
                return None
            return Location(-1, array.ctypes.data) if file is None else file.location(0)
        case FileSource(file=file, offset=offset):
            return file.location(offset)
    return None


def extents_of(source: object) -> Sequence[Extent] | None:
    """Where the elements of a source lie as kernels read them, extent after extent; None where they do not. Raises
    InvalidInput where a link of a chain cannot be opened."""
    if isinstance(source, Chain | HeldArrays):
        return source.extents()
    where = bytes_at(source)
    return None if where is None or not isinstance(source, ArraySource | FileSource) else [Extent(where, source.count)]


def unreadable(sources: Sequence[object], error: int) -> InvalidInput:
    """The error of reading files of `sources`, with the system's number for it, 0 where a file ended too early. It
    names the link of a chain that changed."""
    changed = (source.changed() for source in sources if isinstance(source, Chain))
    name = next((f"{name}: " for name in changed if name is not None), "")
    if error:
        return InvalidInput(f"{name}the file cannot be read: {os.strerror(error).lower()}")
    return InvalidInput(f"{name}the file became shorter while it was read")


def generator_of(source: object) -> tuple[GeneratedSource, int] | None:
    """The generator of the elements of `source`, and the index of the first of them; None where they are not made."""
    match source:
        case GeneratedSource():
            return source, 0
        case PartSource(whole, first, _):
            made = generator_of(whole)
            return None if made is None else (made[0], made[1] + first)
    return None


def unchanged(source: object) -> bool:
    """Whether the file that a source reads by position is as it was when it was opened; true where it has no file."""
    match source:
        case ArraySource(file=FileBytes() as file) | FileSource(file=file):
            return file.is_unchanged()
        case Chain():
            return source.is_unchanged()
        case PartSource(whole, _, _):
            return unchanged(whole)
    return True


def checksums_of(source: object) -> Sequence[Checksum]:
    """The checksums of the files of a source whose elements are read by position. A part of an array has none, because
    a checksum covers a whole member of an archive."""
    match source:
        case ArraySource(file=FileBytes(checksum=Checksum() as checksum)):
            return (checksum,)
        case Chain():
            return source.checksums()
    return ()


def forget_read(source: object, start: int, stop: int) -> None:
    """Have this process forget the mapped pages of elements start … stop − 1, which it has read, of a large file."""
    if not isinstance(source, ArraySource) or source.file is None or source.array.nbytes <= MOST_MAPPED_BYTES:
        return
    if source.array.flags.c_contiguous:
        forget(source.array.reshape(-1)[start:stop])


def in_memory(source: object) -> bool:
    """Whether the elements of a source are in memory: they are neither read from a file nor made."""
    return isinstance(source, HeldArrays) or (isinstance(source, ArraySource) and source.file is None)
