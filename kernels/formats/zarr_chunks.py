"""Chunks of Zarr arrays that are not there, found while blocks are read: those of which a folder has no file, and those
of which the index of a shard has no bytes."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.folder import Tree
from warpfold.kernels.formats.hyperslab import chunks_of
from warpfold.kernels.sources.absent_chunks import AbsentChunks, WhereAbsent

_ABSENT = np.uint64(-1 % (1 << 64))
_MOST_INDEX_BYTES = 1 << 27


class ChunksLookedFor:
    """The chunks of an array that blocks of selected elements lack."""

    def __init__(  # noqa: PLR0917
        self, folder: Tree, store: Any, array: Any, path: str, selected: Sequence[slice], policy: WhereAbsent
    ) -> None:
        """`store` is the one through which zarr reads the array. Raises InvalidInput where the index of a shard is not
        read here."""
        self._folder, self._store, self._array = folder, store, array
        self._shard = None if getattr(array, "shards", None) is None else tuple(array.shards)
        self._wanted = chunks_of(selected, array.chunks)
        self._prefix = f"{path}/" if path else ""
        fill = None if array.fill_value is None else str(array.fill_value)
        self.absent = AbsentChunks(path, prod(axis.size for axis in self._wanted), fill, policy)
        self._lock, self._looked_at = Lock(), set[tuple[int, ...]]()
        sharding = None if self._shard is None else array.metadata.to_dict()["codecs"][0]["configuration"]
        self._index = None if sharding is None else _index_of(sharding)
        store.take_missed()  # metadata may be elsewhere than they were looked for

    def look(self, block: Sequence[slice]) -> None:
        """Note which chunks of a block are absent, after it was read. Raises as `AbsentChunks.found`."""
        missed = {name.removeprefix(self._prefix) for name in self._store.take_missed()}
        if self._shard is None or self._index is None:
            if missed:
                with self._lock:
                    self._folder.check_names()
                    self.absent.note(missed)
            return
        for shard in product(*(axis.tolist() for axis in chunks_of(block, self._shard))):
            with self._lock:
                if shard in self._looked_at:
                    continue
                self._looked_at.add(shard)
            lacking = list(self._lacking(shard, self._shard, *self._index))
            if lacking:
                with self._lock:
                    self.absent.note(lacking)

    def _lacking(
        self, shard: tuple[int, ...], lengths: Sequence[int], order: str, tail: int, at_end: bool
    ) -> Iterator[str]:
        """The wanted chunks of a shard of which its index has no bytes."""
        per_shard = [length // chunk for length, chunk in zip(lengths, self._array.chunks, strict=True)]
        size = 16 * prod(per_shard)
        key = self._prefix + self._array.metadata.encode_chunk_key(shard)
        start, stop = (-size - tail, None) if at_end else (0, size)
        index = self._folder.read(key, start, stop, _MOST_INDEX_BYTES)
        absent: NDArray[np.bool_] = np.ones(per_shard, np.bool_)
        if index is not None:
            if len(index) < size:
                raise InvalidInput(f"holds {key!r}, which is shorter than the index of a shard")
            absent = np.all(np.frombuffer(index[:size], f"{order}u8").reshape(*per_shard, 2) == _ABSENT, axis=-1)
        first = [at * number for at, number in zip(shard, per_shard, strict=True)]
        inside = [
            axis[(axis >= start) & (axis < start + number)] - start
            for axis, start, number in zip(self._wanted, first, per_shard, strict=True)
        ]
        for local in np.argwhere(absent[np.ix_(*inside)]):
            yield "/".join(str(start + int(axis[at])) for axis, start, at in zip(inside, first, local, strict=True))


def _index_of(sharding: Mapping[str, Any]) -> tuple[str, int, bool]:
    """The byte order of the index of a shard, how many bytes follow it, and whether it is at the end. Raises
    InvalidInput for an index in another form."""
    order, tail = "<", 0
    for codec in sharding["index_codecs"]:
        match codec["name"]:
            case "bytes":
                order = ">" if (codec.get("configuration") or {}).get("endian") == "big" else "<"
            case "crc32c":
                tail += 4
            case other:
                raise InvalidInput(
                    f"holds shards whose index is encoded by {str(other)[:64]!r}, which is not read here"
                )
    return order, tail, sharding.get("index_location", "end") == "end"
