"""Filtered chunks of HDF5 datasets. The library unpacks a chunk to whatever it becomes, so that a chunk of 8 KiB might
take all memory: what is deflated is inflated here, by all cores and to no more bytes than a chunk has, and what only
the library decodes is looked at before."""

import struct
from array import array
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.bounded import inflated
from warpfold.kernels.formats.hyperslab import chunks_of, lengths
from warpfold.kernels.machine.cores import usable_cores
from warpfold.kernels.machine.extras import required

MOST_CHUNK_BYTES = 3 << 26
"""The largest filtered chunk that is decoded. It lies in memory twice while its bytes are brought in order."""

_KEPT_BYTES = 1 << 26
"""The decoded chunks that are kept for the next block, and those that threads decode at a time."""

_DEFLATE, _SHUFFLE, _FLETCHER, _SZIP, _NBIT, _SCALEOFFSET, _LZF = 1, 2, 3, 4, 5, 6, 32000
_PACKING = (_DEFLATE, _SZIP, _LZF)
_LZF_TIMES = 90
"""LZF makes at most so many bytes of one."""

_FLETCHER_BYTES = 4


@dataclass(frozen=True, slots=True)
class _Written:
    """The chunks that a file has: their numbers in C order of the grid, sorted, how many bytes each takes, and which
    filters it has not passed. The library looks through all chunks to say this of one."""

    grid: tuple[int, ...]
    numbers: NDArray[np.int64]
    sizes: NDArray[np.int64]
    masks: NDArray[np.uint32]

    @classmethod
    def of(cls, dataset: Any) -> "_Written":
        grid = tuple(-(-length // chunk) for length, chunk in zip(dataset.shape, dataset.chunks, strict=True))
        numbers, sizes, masks = array("q"), array("q"), array("I")

        def visit(chunk: Any) -> None:
            number = 0
            for offset, length, chunks in zip(chunk.chunk_offset, dataset.chunks, grid, strict=True):
                if offset // length >= chunks:  # it was written when the dataset was larger
                    return
                number = number * chunks + offset // length
            numbers.append(number)
            sizes.append(chunk.size)
            masks.append(chunk.filter_mask)

        dataset.id.chunk_iter(visit)
        order = np.argsort(numbers)
        return cls(grid, np.array(numbers)[order], np.array(sizes)[order], np.array(masks, np.uint32)[order])

    def size_and_mask(self, index: tuple[int, ...]) -> tuple[int, int]:
        """The bytes of a chunk, 0 of one that is not there, and its mask."""
        number = 0
        for at, chunks in zip(index, self.grid, strict=True):
            number = number * chunks + at
        place = int(np.searchsorted(self.numbers, number))
        if place == self.numbers.size or self.numbers[place] != number:
            return 0, 0
        return int(self.sizes[place]), int(self.masks[place])


class FilteredChunks:
    """The elements of a dataset in chunks, some of them filtered, block by block."""

    def __init__(self, dataset: Any, path: str) -> None:
        """Raises InvalidInput where chunks cannot be decoded in bounded memory."""
        h5py, plist = required("h5py", "arrays"), dataset.id.get_create_plist()
        self._dataset, self._path, self._chunk = dataset, path, tuple(dataset.chunks)
        self._bytes = prod(self._chunk) * dataset.dtype.itemsize
        self._most = self._bytes + self._bytes // 16 + 64  # what cannot be packed becomes a little longer
        filters = [plist.get_filter(number) for number in range(plist.get_nfilters())]
        self._codes = [code for code, *_ in filters]
        if filters and self._bytes > MOST_CHUNK_BYTES:
            raise InvalidInput(
                f"holds {path!r} in chunks of {self._bytes:,} bytes, and at most {MOST_CHUNK_BYTES:,} are decoded at a "
                "time"
            )
        if sum(code in _PACKING for code in self._codes) > 1:
            raise InvalidInput(f"holds {path!r} packed more than once, which is not decoded here")
        for code, _, values, *_ in filters:
            if code in (_NBIT, _SCALEOFFSET) and (len(values) < 5 or values[2] * values[4] > self._bytes):
                raise InvalidInput(f"holds {path!r} with a filter that declares more than its chunks have")
        as_in_memory = dataset.id.get_type() == h5py.h5t.py_create(dataset.dtype, logical=True)
        self._own = as_in_memory and _DEFLATE in self._codes and {*self._codes} <= {_SHUFFLE, _DEFLATE, _FLETCHER}
        self._kept: OrderedDict[tuple[int, ...], NDArray[Any]] = OrderedDict()
        self._written: _Written | None = None

    def read(self, block: tuple[slice, ...]) -> NDArray[Any]:
        """The elements of a block, each axis with start, stop and step. Raises InvalidInput, and the errors of the
        library."""
        if not self._codes:
            return np.asarray(self._dataset[block])
        self._written = self._written or _Written.of(self._dataset)  # not before: some only ask what can be decoded
        indices = list(product(*(axis.tolist() for axis in chunks_of(block, self._chunk))))
        if not self._own:
            for index in indices:
                self._look(index)
            return np.asarray(self._dataset[block])
        out = np.empty(lengths(block), self._dataset.dtype)
        for index, decoded in self._decoded(indices):
            to, of = self._common(index, block)
            out[to] = self._dataset.fillvalue if decoded is None else decoded[of]
        return out

    def _decoded(self, indices: Sequence[tuple[int, ...]]) -> Iterator[tuple[tuple[int, ...], NDArray[Any] | None]]:
        """The chunks at these indices, None for one that is not there; threads decode as many at a time as may be
        kept."""
        most = max(1, _KEPT_BYTES // self._bytes)
        if most == 1 and indices and indices[0] not in self._kept:
            self._kept.clear()
        threads = min(usable_cores(), most, len(indices))
        with ThreadPoolExecutor(max(1, threads), "decode") as pool:
            for at in range(0, len(indices), most):
                for index, decoded in zip(
                    indices[at : at + most], pool.map(self._chunk_at, indices[at : at + most]), strict=True
                ):
                    if decoded is not None:
                        self._kept[index] = decoded
                        self._kept.move_to_end(index)
                        while len(self._kept) > most:
                            self._kept.popitem(last=False)
                    yield index, decoded

    def _chunk_at(self, index: tuple[int, ...]) -> NDArray[Any] | None:
        """A chunk, decoded; None if it is not there."""
        if (kept := self._kept.get(index)) is not None:
            return kept
        stored = self._stored(index)
        if stored is None:
            return None
        mask, data = stored[0], stored[1]
        numcodecs = required("numcodecs", "arrays")
        for number, code in reversed(list(enumerate(self._codes))):
            if mask >> number & 1:
                continue  # this chunk did not become shorter by the filter
            if code == _FLETCHER:
                data = numcodecs.Fletcher32().decode(data)
            elif code == _DEFLATE:
                data = inflated(data, self._bytes + _FLETCHER_BYTES * self._codes.count(_FLETCHER))
            else:
                data = numcodecs.Shuffle(self._dataset.dtype.itemsize).decode(data)
        made = np.frombuffer(data, np.uint8)
        if made.size != self._bytes:
            raise InvalidInput(f"holds a chunk of {made.size:,} bytes, and {self._bytes:,} are declared")
        decoded: NDArray[Any] = made.view(self._dataset.dtype).reshape(self._chunk)
        return decoded

    def _stored(self, index: tuple[int, ...]) -> tuple[int, bytes] | None:
        """The mask of the filters that a chunk has not passed, and its bytes; None if it is not there."""
        assert self._written is not None, "a block is read"
        size, mask = self._written.size_and_mask(index)
        if not size:
            return None
        if size > self._most:
            raise InvalidInput(f"holds a chunk of {size:,} packed bytes, of which at most {self._most:,} can be needed")
        offset = tuple(at * length for at, length in zip(index, self._chunk, strict=True))
        _, data = self._dataset.id.read_direct_chunk(offset)
        return mask, bytes(data)

    def _look(self, index: tuple[int, ...]) -> None:
        """Raise InvalidInput where the library would unpack a chunk to more bytes than it has."""
        stored = self._stored(index)
        if stored is None:
            return
        mask, data = stored
        for number, code in reversed(list(enumerate(self._codes))):
            if mask >> number & 1:
                continue
            if code == _FLETCHER:
                data = data[:-_FLETCHER_BYTES]
            elif code == _DEFLATE:
                inflated(data, self._most)
            elif code == _SZIP and struct.unpack_from("<I", data)[0] > self._most:
                raise InvalidInput(f"holds a chunk that claims more than the {self._bytes:,} bytes that it has")
            elif code == _LZF and len(data) * _LZF_TIMES > MOST_CHUNK_BYTES and _lzf_bytes(data) > self._most:
                raise InvalidInput(f"holds a chunk that becomes more than the {self._bytes:,} bytes that it has")
            if code in _PACKING:
                return

    def _common(self, index: tuple[int, ...], block: tuple[slice, ...]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """Which elements of a block are in a chunk: where they lie in the block, and in the chunk."""
        to, of = [], []
        for at, length, axis in zip(index, self._chunk, block, strict=True):
            first = max(0, -(-(at * length - axis.start) // axis.step))
            behind = -(-(min((at + 1) * length, axis.stop) - axis.start) // axis.step)
            begin = axis.start + first * axis.step - at * length
            to.append(slice(first, behind))
            of.append(slice(begin, begin + (behind - first - 1) * axis.step + 1, axis.step))
        return tuple(to), tuple(of)


def _lzf_bytes(data: bytes) -> int:
    """How many bytes LZF makes of these."""
    at = made = 0
    while at < len(data):
        control = data[at]
        if control < 32:  # so many bytes follow as they are
            made += control + 1
            at += control + 2
        elif control < 224:
            made += (control >> 5) + 2
            at += 2
        else:
            made += 9 + (data[at + 1] if at + 1 < len(data) else 0)
            at += 3
    return made
