"""Datasets of HDF5 files. The variables of NetCDF-4 files are such datasets.

A dataset that lies in the file as it is in memory is read like a .npy file. Others are decoded block after block, by
the HDF5 library or, where their chunks are filtered, by `hdf5_chunks.py`. External links, external storage and virtual
datasets are refused, because they read other files: a file that anybody may have written must not name files of the
server.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from math import prod
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.dtypes import dtype_of, part_dtype
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.conventions import Conventions, Lowering, lowered, lowering_of_hdf5
from warpfold.kernels.formats.hdf5_chunks import FilteredChunks
from warpfold.kernels.formats.hyperslab import Range, blocks, chunks_of, hyperslab, lengths
from warpfold.kernels.formats.naming import chosen_name, damaged
from warpfold.kernels.formats.npy import Head
from warpfold.kernels.lowering.complexes import complex_numbers, flattened
from warpfold.kernels.machine.extras import required
from warpfold.kernels.places.arrays import array_at, complex_at
from warpfold.kernels.places.file import again, is_remote
from warpfold.kernels.source import ArraySource
from warpfold.kernels.sources.absent_chunks import AbsentChunks, WhereAbsent
from warpfold.kernels.sources.sequential import Elements, SequentialSource, Tally

BLOCK_BYTES = 1 << 25
"""The bytes that are decoded at a time."""

_CHUNK_CACHE_BYTES = 1 << 26
_MOST_LISTED = 1000
_MOST_LINKS = 16


def open_hdf5(file: BinaryIO, name: str | None, ranges: tuple[Range, ...], conventions: Conventions) -> Elements:
    """The selected elements of the dataset `name`, a path in the file. `file` must stay open while they are read.

    Raises InvalidInput naming "array" or "select", and Unavailable where h5py is not installed.
    """
    with opened(file) as tree:
        path = chosen_name(name.strip("/") if name else None, datasets(tree, name), "an array")
        dataset = _object_at(tree, path)
        with damaged(f"holds {path!r} that cannot be read", Exception):
            head = _head(dataset, path)
            selected = hyperslab(ranges, head.shape)
            lowering = lowering_of_hdf5(conventions, dataset, path)
            at = _offset(dataset, head.dtype)
            chunk = dataset.chunks or tuple(1 for _ in head.shape)
            _reader(dataset, path)
            absent = _absent_chunks(dataset, path, selected, conventions.absent)
    if at is not None:
        stored = _as_stored(file, head, at, selected)
        return stored if lowering.plain else lowered(stored, lowering, lengths(selected))
    in_blocks = partial(blocks, selected, chunk, BLOCK_BYTES // head.dtype.itemsize)
    decoded = _decoded(file, path, head, in_blocks, lengths(selected), lowering)
    decoded.tally.absences.append(absent)
    if part_dtype(head.dtype) is None:
        return decoded
    return complex_numbers(str(head.dtype.newbyteorder("=")), decoded, lengths(selected))


def dimensions_of_hdf5(file: BinaryIO, name: str | None) -> tuple[str, ...]:
    """The names of the dimensions of the dataset `name`: their labels, or the names of their scales, which are the
    dimensions of netCDF; empty where a dimension has none. Raises as `open_hdf5`."""
    with opened(file) as tree:
        path = chosen_name(name.strip("/") if name else None, datasets(tree, name), "an array")
        dataset = _object_at(tree, path)
        with damaged(f"holds {path!r} that cannot be read", Exception):
            _head(dataset, path)
            named = [dimension.label or next(iter(dimension.keys()), "") for dimension in dataset.dims]
            scales = [list(dimension.values()) for dimension in dataset.dims]
            own = path.rpartition("/")[2] if dataset.is_scale and len(named) == 1 else ""  # a scale is its own
            return tuple(
                label or (of[0].name.rpartition("/")[2] if of else own) for label, of in zip(named, scales, strict=True)
            )


def _decoded(  # noqa: PLR0917
    file: BinaryIO,
    path: str,
    head: Head,
    in_blocks: Callable[[], Iterator[tuple[slice, ...]]],
    shape: tuple[int, ...],
    lowering: Lowering,
) -> SequentialSource:
    """The elements of a dataset, or the parts of complex ones, that the library decodes, block after block."""
    tally, parts = Tally(), part_dtype(head.dtype)

    def pieces() -> Iterator[NDArray[Any]]:
        with opened(file) as again, damaged(f"holds {path!r} that cannot be decoded", Exception):
            read = _reader(_object_at(again, path), path)
            for block in in_blocks():
                part = flattened(read(block), parts)
                yield lowering.taken(ArraySource(part).read(0, part.size), tally.elements, tally)

    size = prod(shape) * (1 if parts is None else 2)
    count = None if lowering.leaves_out else size
    return SequentialSource(
        lowering.dtype(head.dtype if parts is None else parts),
        pieces,
        count,
        size,
        tally,
        None if count is None or parts is not None else shape,
        meaning=lowering.meaning,
        nulls=lowering.with_nulls(partial(_decoded, file, path, head, in_blocks, shape)),
    )


@contextmanager
def opened(file: BinaryIO) -> Iterator[Any]:
    """The tree of groups and datasets in `file`."""
    h5py = required("h5py", "arrays")
    with damaged("is not a whole HDF5 file", Exception):
        # The file is opened by its descriptor, because its path could lead to another file by now.
        of_file = again(file) if is_remote(file) else f"/dev/fd/{file.fileno()}"
        tree = h5py.File(of_file, "r", rdcc_nbytes=_CHUNK_CACHE_BYTES, locking=None if is_remote(file) else False)
    with tree:
        yield tree


def datasets(tree: Any, wanted: str | None = None) -> list[str]:
    """The paths of the datasets of numbers that hard links lead to, 1,000 at most; and `wanted`, if it is one."""
    h5py = required("h5py", "arrays")
    names: list[str] = []

    def visit(name: str, node: Any) -> bool | None:
        if isinstance(node, h5py.Dataset) and node.shape and _is_number(node.dtype):
            names.append(name)
        return True if len(names) >= _MOST_LISTED else None

    with damaged("is a damaged HDF5 file", Exception):
        if wanted is None or not isinstance(_object_at(tree, wanted.strip("/"), must=False), h5py.Dataset):
            tree.visititems(visit)
        else:
            names.append(wanted.strip("/"))
    return names


def _is_number(dtype: "np.dtype[Any]") -> bool:
    return dtype.kind in "biuf" or part_dtype(dtype) is not None


def _object_at(tree: Any, path: str, links: int = 0, *, must: bool = True) -> Any:
    """The object at `path`. Every link on the way is checked before it is followed."""
    h5py = required("h5py", "arrays")
    node = tree
    for part in path.split("/"):
        link = node.get(part, getlink=True) if isinstance(node, h5py.Group) and part else None
        if isinstance(link, h5py.ExternalLink):
            raise InvalidInput(f"holds {path!r} as a link to another file, which is not followed", "array")
        if isinstance(link, h5py.SoftLink):
            if links == _MOST_LINKS:
                raise InvalidInput(f"holds {path!r} behind too many links", "array")
            start = node.file if link.path.startswith("/") else node
            node = _object_at(start, link.path.strip("/"), links + 1, must=must)
        elif link is not None:
            node = node[part]
        elif must:
            raise InvalidInput(f"holds no array {path!r}", "array")
        else:
            return None
    return node


def _head(dataset: Any, path: str) -> Head:
    """Shape and dtype of a dataset of numbers. Raises InvalidInput for a dataset that holds no numbers, or that reads
    another file."""
    if dataset.is_virtual or dataset.external:
        raise InvalidInput(f"holds {path!r} with its elements in other files, which are not read", "array")
    dtype, shape = dataset.dtype, dataset.shape
    if not shape:
        raise InvalidInput(f"holds {path!r}, a single value and no array", "array")
    try:
        dtype_of(part_dtype(dtype) or dtype)
    except InvalidInput as error:
        raise InvalidInput(f"holds {path!r}, which is not an array of numbers: {error}", "array") from None
    return Head(tuple(int(length) for length in shape), False, dtype, 0)


def _reader(dataset: Any, path: str) -> Callable[[tuple[slice, ...]], NDArray[Any]]:
    """Reads a block of a dataset. Raises InvalidInput as `FilteredChunks`."""
    return dataset.__getitem__ if dataset.chunks is None else FilteredChunks(dataset, path).read


def _offset(dataset: Any, dtype: "np.dtype[Any]") -> int | None:
    """The offset of the elements in the file, if they lie there contiguously and as they are in memory; else None."""
    h5py = required("h5py", "arrays")
    layout = dataset.id.get_create_plist().get_layout()
    same = dataset.id.get_type() == h5py.h5t.py_create(dtype, logical=True)
    offset: int | None = dataset.id.get_offset() if layout == h5py.h5d.CONTIGUOUS and same else None
    return offset


def _as_stored(file: BinaryIO, head: Head, offset: int, selected: tuple[slice, ...]) -> Elements:
    size = file.seek(0, 2)
    if offset + head.data_bytes > size:
        raise InvalidInput(f"is truncated: {offset + head.data_bytes:,} bytes are promised, {size:,} are there")
    stored = Head(head.shape, False, head.dtype, offset)
    parts = part_dtype(head.dtype)
    return array_at(file, stored, selected) if parts is None else complex_at(file, stored, parts, selected)


def _absent_chunks(dataset: Any, path: str, selected: Sequence[slice], policy: WhereAbsent) -> AbsentChunks:
    """The absent chunks of the selected elements. The storage of a dataset without chunks counts as one chunk. Raises
    as `AbsentChunks.found`."""
    h5py = required("h5py", "arrays")
    created = dataset.id.get_create_plist()
    defined = created.fill_value_defined() != h5py.h5d.FILL_VALUE_UNDEFINED
    filled = defined and created.get_fill_time() != h5py.h5d.FILL_TIME_NEVER
    fill = str(dataset.fillvalue) if filled else None
    if dataset.chunks is None:
        empty = created.get_layout() == h5py.h5d.CONTIGUOUS and not dataset.id.get_storage_size() and dataset.size
        absent = AbsentChunks(path, 1, fill, policy)
        absent.note((), int(bool(empty)))
        return absent
    wanted = chunks_of(selected, dataset.chunks)
    total = prod(axis.size for axis in wanted)
    absent = AbsentChunks(path, total, fill, policy)
    grid = [-(-length // chunk) for length, chunk in zip(dataset.shape, dataset.chunks, strict=True)]
    present = dataset.id.get_num_chunks()
    if present < prod(grid) and total < prod(grid):
        present = _present_chunks(dataset, wanted)
    absent.note((), max(0, total - present))
    return absent


def _present_chunks(dataset: Any, wanted: Sequence[Any]) -> int:
    """How many of the wanted chunks are in the file; `wanted` has their indices on each axis."""
    present = 0

    def visit(chunk: Any) -> None:
        nonlocal present
        index = [offset // length for offset, length in zip(chunk.chunk_offset, dataset.chunks, strict=True)]
        present += all(bool(np.isin(at, axis)) for at, axis in zip(index, wanted, strict=True))

    dataset.id.chunk_iter(visit)
    return present
