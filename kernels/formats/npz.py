"""Members of .npz archives. A stored member is read like a .npy file, at its place in the archive; a compressed member
is read in order."""

import struct
import zipfile
import zlib
from collections.abc import Iterator
from math import prod
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.dtypes import dtype_of
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.hyperslab import Range, hyperslab, lengths
from warpfold.kernels.formats.naming import chosen_name, damaged
from warpfold.kernels.formats.npy import Head, read_head
from warpfold.kernels.places.arrays import array_at
from warpfold.kernels.places.file import is_remote
from warpfold.kernels.source import ArraySource
from warpfold.kernels.sources.checksums import Checksum
from warpfold.kernels.sources.sequential import Elements, SequentialSource

MOST_DIRECTORY_BYTES = 1 << 24
"""The longest directory of an archive that is read: that of 100,000 members."""

MOST_REORDERED_BYTES = 1 << 28
"""The largest array that is decoded as a whole, where its elements do not come in the order in which they are read."""

_FAULTS = (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, ValueError, OverflowError)
"""The last two are those of names that are no text, and of places that no file has."""
_UTF_8 = 1 << 11
_LOCAL = struct.Struct("<4s22xHH")
_ENTRY_BYTES = 46
"""The length of an entry of the directory without its name, its further fields and its comment."""
_END, _END_64 = struct.Struct("<10xH10x"), struct.Struct("<32xQ16x")
"""The number of members in the records behind a directory."""
_BLOCK_BYTES = 1 << 23
_SUFFIX = ".npy"


class _Bounded:
    """A file that refuses to read more bytes at once than a directory may have, because an archive may claim a
    directory of any length."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        if size > MOST_DIRECTORY_BYTES:
            raise InvalidInput(f"has a directory of {size:,} bytes, and at most {MOST_DIRECTORY_BYTES:,} are read")
        return self._file.read(size if size >= 0 else MOST_DIRECTORY_BYTES)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def open_npz(file: BinaryIO, member: str | None, ranges: tuple[Range, ...]) -> Elements:
    """The selected elements of one array of an archive. `file` may be closed afterwards, but its descriptor must stay
    open. Raises InvalidInput naming "array" where the archive has no such member, or where it has several members and
    none is named.
    """
    with damaged("is not a whole .npz archive", *_FAULTS):
        archive = archive_in(file)
        name = chosen_name(member, members(archive), "an array")
        info = archive.getinfo(name + _SUFFIX)
        check_packing(info)
        if info.compress_type == zipfile.ZIP_STORED:
            return _stored(file, info, ranges)
        with archive.open(info) as packed:
            head = read_head(packed)  # type: ignore[arg-type]
    return _packed(archive, info, head, hyperslab(ranges, head.shape))


def archive_in(file: BinaryIO) -> zipfile.ZipFile:
    """The archive in `file`, which stays open. Raises InvalidInput where its directory is damaged or too long."""
    with damaged("is not a whole zip archive", *_FAULTS):
        archive = zipfile.ZipFile(_Bounded(file))  # type: ignore[call-overload, unused-ignore]
        _check_count(archive, file)
        if not is_remote(file):  # of an object every member would be a request
            check_names(archive, file)
        return archive


def _check_count(archive: zipfile.ZipFile, file: BinaryIO) -> None:
    """Raise InvalidInput where the directory of an archive has another number of members than the record behind it
    says: a comment with a damaged length swallows the members that follow, which would count as missing."""
    taken = sum(
        _ENTRY_BYTES + len(_name_in_directory(info)) + len(info.extra) + len(info.comment)
        for info in archive.infolist()
    )
    file.seek(archive.start_dir + taken)
    record = file.read(max(_END.size, _END_64.size))
    for layout, mark in ((_END, b"PK\x05\x06"), (_END_64, b"PK\x06\x06")):
        if record.startswith(mark) and layout.unpack_from(record) == (len(archive.infolist()),):
            return
    raise InvalidInput("is not a whole zip archive: its directory has another number of members than it should have")


def _name_in_directory(info: zipfile.ZipInfo) -> bytes:
    return info.orig_filename.encode("utf-8" if info.flag_bits & _UTF_8 else "cp437")


def check_names(archive: zipfile.ZipFile, file: BinaryIO) -> None:
    """Raise InvalidInput where the directory of an archive names a member otherwise than the member itself does: a
    member with a damaged name would count as missing."""
    for info in archive.infolist():
        name = _name_in_directory(info)
        if not info.filename:
            raise InvalidInput("is not a whole zip archive: a member has no name")
        file.seek(info.header_offset)
        local = file.read(_LOCAL.size + len(name))
        if len(local) < _LOCAL.size or not local.startswith(b"PK\x03\x04"):
            raise InvalidInput(f"is not a whole zip archive: {info.filename[:200]!r} is not where its directory says")
        if _LOCAL.unpack_from(local)[1] != len(name) or local[_LOCAL.size :] != name:
            raise InvalidInput(f"is not a whole zip archive: its directory calls {info.filename[:200]!r} what is not")


def check_packing(info: zipfile.ZipInfo) -> None:
    """Raise InvalidInput where a member cannot be unpacked in bounded memory: a few bytes of bzip2 or LZMA are
    unpacked as a whole, however many they become."""
    if info.flag_bits & 1:
        raise InvalidInput(f"holds {info.filename[:200]!r} encrypted")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InvalidInput(
            f"holds {info.filename[:200]!r} packed by a method other than deflate, which is not read here"
        )


def heads(file: BinaryIO) -> Iterator[tuple[str, Head | None, int]]:
    """The arrays of an archive with their heads (None for an array that does not hold numbers), and the bytes that they
    take in the archive. Raises InvalidInput."""
    with damaged("is not a whole .npz archive", *_FAULTS):
        archive = archive_in(file)
        for name in members(archive):
            info = archive.getinfo(name + _SUFFIX)
            check_packing(info)
            with archive.open(info) as packed:
                try:
                    head = read_head(packed)  # type: ignore[arg-type]
                except InvalidInput:
                    head = None
            yield name, head, info.compress_size


def members(archive: zipfile.ZipFile) -> list[str]:
    """The names of the arrays in an archive."""
    return [name.removesuffix(_SUFFIX) for name in archive.namelist() if name.endswith(_SUFFIX)]


def _stored(file: BinaryIO, info: zipfile.ZipInfo, ranges: tuple[Range, ...]) -> Elements:
    file.seek(info.header_offset)
    local = file.read(_LOCAL.size)
    if len(local) < _LOCAL.size or not local.startswith(b"PK\x03\x04"):
        raise InvalidInput("is not a whole .npz archive: a member is not where its directory says")
    _, name, extra = _LOCAL.unpack(local)
    begin = info.header_offset + _LOCAL.size + name + extra
    file.seek(begin)
    head = read_head(file)
    size = file.seek(0, 2)
    if head.offset + head.data_bytes > min(begin + info.file_size, size):
        raise InvalidInput(f"is truncated: the head of {info.filename!r} promises {head.data_bytes:,} bytes of data")
    source = array_at(file, head, hyperslab(ranges, head.shape))
    if isinstance(source, ArraySource) and source.file is not None and source.array.shape == head.shape:
        checksum = Checksum(file.fileno(), begin, info.file_size, info.CRC, info.filename.removesuffix(_SUFFIX))
        return ArraySource(source.array, source.file.with_checksum(checksum))
    return source  # the checksum is that of the whole member


def _packed(archive: zipfile.ZipFile, info: zipfile.ZipInfo, head: Head, selected: tuple[slice, ...]) -> Elements:
    dtype, shape = dtype_of(head.dtype), lengths(selected)
    whole = shape == head.shape
    row = prod(head.shape[1:]) * head.dtype.itemsize
    by_rows = not head.fortran_order and (whole or row <= _BLOCK_BYTES)
    if not by_rows and head.data_bytes > MOST_REORDERED_BYTES:
        raise InvalidInput(
            f"holds {info.filename!r} compressed and not in the order of its elements, and its {head.data_bytes:,} "
            "bytes are too many to bring them in order: store it in C order, or without compression"
        )

    def pieces() -> Iterator[NDArray[Any]]:
        with damaged("is damaged", *_FAULTS), archive.open(info) as packed:
            read_head(packed)  # type: ignore[arg-type]
            if not by_rows:
                flat = read_whole(packed, head.data_bytes).view(head.dtype)
                order = "F" if head.fortran_order else "C"
                parts = iter([flat.reshape(head.shape, order=order)[selected]])  # type: ignore[call-overload]
            elif whole:
                parts = _flat(packed, head)
            else:
                parts = _rows(packed, head, selected, row)
            for part in parts:
                whole_part = ArraySource(part)
                for at in range(0, part.size, _BLOCK_BYTES):  # another order of the elements needs a copy of each
                    yield whole_part.read(at, min(at + _BLOCK_BYTES, part.size))
            while packed.read(_BLOCK_BYTES):  # read to the end of the member, because its checksum is there
                pass

    return SequentialSource(dtype, pieces, prod(shape), shape=shape)


def _flat(packed: Any, head: Head) -> Iterator[NDArray[Any]]:
    left, most = head.data_bytes, max(1, _BLOCK_BYTES // head.dtype.itemsize) * head.dtype.itemsize
    while left:
        part = read_whole(packed, min(left, most))
        left -= part.size
        yield part.view(head.dtype)


def _rows(packed: Any, head: Head, selected: tuple[slice, ...], row: int) -> Iterator[NDArray[Any]]:
    at = 0
    step = max(1, _BLOCK_BYTES // max(1, row))
    for start in range(0, head.shape[0], step):
        stop = min(start + step, head.shape[0])
        part = read_whole(packed, (stop - start) * row).view(head.dtype).reshape(stop - start, *head.shape[1:])
        first = selected[0].start + max(0, -(-(start - selected[0].start) // selected[0].step)) * selected[0].step
        yield part[(slice(min(first, stop) - start, max(0, selected[0].stop - start), selected[0].step), *selected[1:])]
        at += stop - start


def read_whole(packed: Any, nbytes: int) -> NDArray[np.uint8]:
    """The next `nbytes` of a member, read a part at a time. Raises InvalidInput where the member ends before."""
    out = np.empty(nbytes, np.uint8)
    view, filled = out.data, 0
    while filled < nbytes:
        got = packed.readinto(view[filled : filled + _BLOCK_BYTES])
        if not got:
            raise InvalidInput(f"is truncated: {nbytes - filled:,} bytes of data are missing")
        filled += got
    return out
