"""Arrays of Zarr hierarchies, versions 2 and 3, in folders and in zip archives.

zarr-python decodes them: each thread asks for blocks of its own, and decodes their chunks itself. zarr-python reads
through a store of ours, which follows no link and bounds the bytes that are read at a time, and by codecs that are
bounded (`zarr_codecs.py`).
"""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from math import prod
from threading import BoundedSemaphore
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.dtypes import DType, dtype_of, part_dtype
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.conventions import Conventions, Lowering, lowering_of_zarr
from warpfold.kernels.formats.folder import Tree
from warpfold.kernels.formats.hyperslab import Range, blocks, hyperslab, lengths
from warpfold.kernels.formats.naming import chosen_name, damaged
from warpfold.kernels.formats.zarr_chunks import ChunksLookedFor
from warpfold.kernels.formats.zarr_codecs import SLACK_BYTES, bound_decoders, check_codecs, metadata_of
from warpfold.kernels.formats.zarr_store import MOST_CHUNK_BYTES, OwnLoop, store_of
from warpfold.kernels.lowering.complexes import complex_numbers, flattened
from warpfold.kernels.lowering.times import integers_of, times_of_dtype
from warpfold.kernels.machine.extras import required
from warpfold.kernels.places.tree import RemoteTree
from warpfold.kernels.source import ArraySource
from warpfold.kernels.sources.sections import in_turn
from warpfold.kernels.sources.sequential import Section, SequentialSource, Tally

BLOCK_BYTES = 1 << 23
"""The bytes that one thread reads at a time; chunks may make it more."""

MOST_DECODED_BYTES = 1 << 28
"""The bytes that all threads decode at a time: a block, and the chunks that it is made of."""

_MOST_LISTED = 1000
_MOST_DEPTH = 16


def open_zarr(folder: Tree, name: str | None, ranges: tuple[Range, ...], conventions: Conventions) -> SequentialSource:
    """The selected elements of the array at the path `name` in a hierarchy.

    Raises InvalidInput naming "array", "select" or "stored", and Unavailable where zarr is not installed.
    """
    zarr = required("zarr", "arrays")
    with damaged("is not a Zarr hierarchy that can be read", Exception):
        path = chosen_name(None if name is None else name.strip("/"), _arrays(folder, name), "an array")
        check_codecs(folder, path)
        store = store_of(folder)
        array = zarr.open_array(store, path=path, mode="r")
        bound_decoders(array)
        stored = _Stored.of(array, path)
        store.most_bytes = stored.most_stored_bytes
        selected = hyperslab(ranges, stored.shape)
        lowering = lowering_of_zarr(conventions, array, path)
        chunks = ChunksLookedFor(folder, store, array, path, selected, conventions.absent)
    elements = _Selected(stored, selected, _Reader(stored, chunks, apart=isinstance(folder, RemoteTree)))
    if part_dtype(array.dtype) is not None:
        return complex_numbers(str(array.dtype.newbyteorder("=")), elements.source(lowering), lengths(selected))
    return elements.source(lowering)


def dimensions_of_zarr(folder: Tree, name: str | None) -> tuple[str, ...]:
    """The names of the dimensions of the array at the path `name`: those of version 3, or those that xarray writes;
    empty where there are none. Raises as `open_zarr`."""
    zarr = required("zarr", "arrays")
    with damaged("is not a Zarr hierarchy that can be read", Exception):
        path = chosen_name(None if name is None else name.strip("/"), _arrays(folder, name), "an array")
        check_codecs(folder, path)
        array = zarr.open_array(store_of(folder), path=path, mode="r")
        names = getattr(array.metadata, "dimension_names", None) or array.attrs.get("_ARRAY_DIMENSIONS") or ()
        return tuple(name if isinstance(name, str) else "" for name in names) or ("",) * len(array.shape)


@dataclass(frozen=True, slots=True)
class _Stored:
    """An array of numbers as its metadata describe it. Complex numbers are read as their `parts`, and times as
    integers."""

    array: Any
    path: str
    shape: tuple[int, ...]
    chunk: tuple[int, ...]
    parts: "np.dtype[Any] | None"
    dtype: DType

    @classmethod
    def of(cls, array: Any, path: str) -> Self:
        """What an open array holds. Raises InvalidInput where it is not read here."""
        parts = part_dtype(array.dtype)
        if times_of_dtype(array.dtype) is not None:
            parts = integers_of(array.dtype)
        try:
            dtype = dtype_of(array.dtype if parts is None else parts)
        except InvalidInput as error:
            raise InvalidInput(f"holds {path!r}, which is not an array of numbers: {error}", "array") from None
        shape = tuple(int(length) for length in array.shape)
        chunk = tuple(int(length) for length in (getattr(array, "shards", None) or array.chunks))
        stored = cls(array, path, shape, chunk, parts, dtype)
        if not shape:
            raise InvalidInput(f"holds {path!r}, a single value and no array", "array")
        if stored.chunk_bytes > MOST_CHUNK_BYTES:
            raise InvalidInput(
                f"holds {path!r} in chunks of {stored.chunk_bytes:,} bytes, and at most {MOST_CHUNK_BYTES:,} "
                "are decoded at a time"
            )
        return stored

    @property
    def each(self) -> int:
        """How many elements are read of each element that is stored."""
        return 1 if self.parts is None else int(self.array.dtype.itemsize) // self.parts.itemsize

    @property
    def chunk_bytes(self) -> int:
        """The bytes of a chunk, or of a shard, when it is decoded."""
        return prod(self.chunk) * self.each * self.dtype.itemsize

    @property
    def most_stored_bytes(self) -> int:
        """How many bytes a chunk, or a shard with its index, has at most as it is stored."""
        return self.chunk_bytes + self.chunk_bytes // 8 + 16 * prod(self.chunk) + SLACK_BYTES

    @property
    def most(self) -> int:
        """How many elements a block has at most."""
        return _block_elements(self.shape, self.chunk, self.each * self.dtype.itemsize)


class _Reader:
    """Reads blocks of an array in several threads, which together decode at most MOST_DECODED_BYTES. With `apart` the
    chunks of a block come from a place, and are requested at the same time; else the thread that decodes them reads
    their files."""

    def __init__(self, stored: _Stored, chunks: ChunksLookedFor, *, apart: bool) -> None:
        self._stored = stored
        self.chunks = chunks
        self._apart = apart
        self._config = required("zarr", "arrays").config
        most, chunk_bytes = stored.most, stored.chunk_bytes
        at_a_time = min(self._config.get("async.concurrency"), _chunks_of_a_block(stored.shape, stored.chunk, most))
        beside = at_a_time * chunk_bytes
        block_bytes = most * stored.each * stored.dtype.itemsize
        self._at_once = BoundedSemaphore(max(1, MOST_DECODED_BYTES // (block_bytes + beside)))
        # zarr's setting holds for the whole process, so it is changed only where one block is read at a time.
        few = {"async.concurrency": max(1, MOST_DECODED_BYTES // chunk_bytes)}
        self._few = few if beside > MOST_DECODED_BYTES else None
        self._own = OwnLoop()

    def read(self, block: tuple[slice, ...]) -> NDArray[Any]:
        """The elements of a block in C order, those of complex numbers as their parts, one dimension. Raises as
        `AbsentChunks.found`."""
        array = self._stored.array
        with self._at_once, self._config.set(self._few) if self._few else nullcontext():
            part = array[block] if self._apart else self._own.read(array, block)
        self.chunks.look(block)
        return flattened(part, self._stored.parts)


@dataclass(frozen=True, slots=True)
class _Selected:
    """The selected elements of an array."""

    stored: _Stored
    selected: tuple[slice, ...]
    reader: _Reader

    def source(self, lowering: Lowering) -> SequentialSource:
        """What the elements stand for in order, or with the truths of `lowering` whether each is a null."""
        stored, size = self.stored, prod(lengths(self.selected)) * self.stored.each
        count, tally = None if lowering.leaves_out else size, Tally(absences=[self.reader.chunks.absent])

        def read(block: tuple[slice, ...], start: int) -> Iterator[NDArray[Any]]:
            with damaged(f"holds {stored.path!r} that cannot be decoded", Exception):
                part = self.reader.read(block)
                yield lowering.taken(ArraySource(part).read(0, part.size), start, tally)

        def sections() -> Iterator[Section]:
            start = 0
            for block in blocks(self.selected, stored.chunk, stored.most):
                length = prod(lengths(block)) * stored.each
                known = (None, None) if count is None else (start, length)
                yield Section(partial(read, block, start), length * stored.dtype.itemsize, *known)
                start += length

        return SequentialSource(
            lowering.dtype(stored.dtype.numpy),
            lambda: in_turn(sections(), tally),
            count,
            size,
            tally,
            None if count is None or stored.each > 1 else lengths(self.selected),
            sections,
            lowering.meaning,
            lowering.with_nulls(self.source),
        )


def _block_elements(shape: Sequence[int], chunk: Sequence[int], itemsize: int) -> int:
    """How many elements a block has at most: those of a whole row of neighbouring chunks where these are few, so that
    no chunk is decoded for more than one block."""
    beside = chunk[0] * prod(shape[1:])
    return max(BLOCK_BYTES // itemsize, beside if 2 * beside * itemsize <= MOST_DECODED_BYTES else 1)


def _chunks_of_a_block(shape: Sequence[int], chunk: Sequence[int], most: int) -> int:
    """About how many chunks a block of at most this many elements touches."""
    row = prod(shape[1:]) or 1
    return -(-most // (chunk[0] * row)) * prod(-(-n // c) for n, c in zip(shape[1:], chunk[1:], strict=True))


def is_zarr(folder: Tree) -> bool:
    """Whether a folder says that it is a Zarr hierarchy."""
    return any(folder.size(name) is not None for name in ("zarr.json", ".zarray", ".zgroup"))


def arrays_in(folder: Tree) -> Iterator[tuple[str, Any, tuple[int, ...], tuple[int, ...]]]:
    """The paths of the arrays in a hierarchy, with their dtypes (of NumPy), their shapes and those of their chunks."""
    zarr = required("zarr", "arrays")
    for path in _arrays(folder, None):
        array = zarr.open_array(store_of(folder), path=path, mode="r")
        shape, chunks = (tuple(int(length) for length in lengths) for lengths in (array.shape, array.chunks))
        yield path, array.dtype, shape, chunks


def _arrays(folder: Tree, wanted: str | None) -> list[str]:
    """The paths of the arrays in a hierarchy, "" for one that is an array itself; or `wanted`, if it is one."""
    if wanted is not None and _is_array(folder, wanted.strip("/")):
        return [wanted.strip("/")]
    return list(_walked(folder, "", 0, []))


def _walked(folder: Tree, path: str, depth: int, names: list[str]) -> list[str]:
    if len(names) < _MOST_LISTED and _is_array(folder, path):
        names.append(path)
    elif len(names) < _MOST_LISTED and depth < _MOST_DEPTH:
        for name in folder.folders(path):
            _walked(folder, f"{path}/{name}" if path else name, depth + 1, names)
    return names


def _is_array(folder: Tree, path: str) -> bool:
    if folder.size(f"{path}/.zarray") is not None:
        return True
    return metadata_of(folder, f"{path}/zarr.json").get("node_type") == "array"
