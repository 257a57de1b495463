"""Chunks of HDF5 datasets that are not in the file, because nothing was ever written to them."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from warpfold.kernels.absent_chunks import AbsentChunks, WhereAbsent
from warpfold.kernels.extras import required
from warpfold.kernels.formats.hyperslab import chunks_of


def absent_chunks(dataset: Any, path: str, selected: Sequence[slice], policy: WhereAbsent) -> AbsentChunks:
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
        absent.found((), int(bool(empty)))
        return absent
    wanted = chunks_of(selected, dataset.chunks)
    total = prod(axis.size for axis in wanted)
    absent = AbsentChunks(path, total, fill, policy)
    grid = [-(-length // chunk) for length, chunk in zip(dataset.shape, dataset.chunks, strict=True)]
    present = dataset.id.get_num_chunks()
    if present < prod(grid) and total < prod(grid):
        present = _present(dataset, wanted)
    absent.found((), max(0, total - present))
    return absent


def _present(dataset: Any, wanted: Sequence[Any]) -> int:
    """How many of the wanted chunks are in the file; `wanted` has their indices on each axis."""
    found = 0

    def visit(chunk: Any) -> None:
        nonlocal found
        index = [offset // length for offset, length in zip(chunk.chunk_offset, dataset.chunks, strict=True)]
        found += all(bool(np.isin(at, axis)) for at, axis in zip(index, wanted, strict=True))

    dataset.id.chunk_iter(visit)
    return found
