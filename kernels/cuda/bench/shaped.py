"""Shapes on a GPU: the exact kernels beside torch, CuPy and CUB, on elements that lie in the GPU's memory."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.bench.contenders import contender
from warpfold.kernels.bench.data import KEY, bounds_of, keys_of
from warpfold.kernels.bench.workload import ShapedWorkload
from warpfold.kernels.cuda.baselines.shaped import cub_keys, cub_matrix, cub_segments
from warpfold.kernels.cuda.baselines.torch_ import torch_on
from warpfold.kernels.cuda.exact.finishing import FINISHED_OPS
from warpfold.kernels.cuda.gpu.failures import cuda_errors
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.recorded import Prepared, RecordingGpu
from warpfold.kernels.cuda.grouped import ColumnsLayout, FinishedValues, Layout, OffsetsLayout, Rounding, RowsLayout
from warpfold.kernels.cuda.keyed.sums import KeyedSums
from warpfold.kernels.cuda.staging.stager import Stager
from warpfold.kernels.dtypes import DType
from warpfold.kernels.source import Source
from warpfold.kernels.strategy import EXACT
from warpfold.kernels.studies.shapes import By, CaseShape, KeyOrder


@dataclass(frozen=True, eq=False)
class DeviceShape:
    """The elements of a shape in the GPU's memory, shape (n,), with the offsets of its segments or its keys. To be used
    while `gpu.active()`."""

    gpu: Gpu
    elements: Any
    dtype: DType
    shape: CaseShape
    offsets: OffsetsLayout | None = None
    keys: Any = None

    @classmethod
    def of(cls, gpu: Gpu, stager: Stager, source: Source, shape: CaseShape, seed: int) -> "DeviceShape":
        """The shape with its elements loaded, and its offsets or keys made. Raises OutOfMemory."""
        elements = stager.whole(source, None)
        offsets = keys = None
        with cuda_errors("the offsets or keys of a shape"):
            if shape.by is By.SEGMENTS:
                offsets = OffsetsLayout.of(bounds_of(shape, seed))
            elif shape.by is By.KEYS:
                keys = stager.whole(keys_of(shape, seed), None)
                if shape.key_order == KeyOrder.SORTED:
                    keys.sort()
            gpu.stream.synchronize()
        return cls(gpu, elements, source.dtype, shape, offsets, keys)

    @property
    def matrix(self) -> Any:
        """The elements as a matrix."""
        return self.elements.reshape(self.shape.rows, self.shape.columns)

    @property
    def layout(self) -> Layout:
        """The grouping that makes the values of a matrix or of segments."""
        if self.offsets is not None:
            return self.offsets
        rows, columns = self.shape.rows or 0, self.shape.columns or 0
        return RowsLayout(rows, columns, self.shape.n) if self.shape.axis else ColumnsLayout(columns, rows)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        import cupy

        if self.offsets is not None:
            return np.diff(self.offsets.host)
        if self.keys is not None:
            counted: NDArray[np.int64] = cupy.bincount(self.keys, minlength=self.shape.groups or 0).get()
            return counted
        values = int((self.shape.rows if self.shape.axis else self.shape.columns) or 0)
        return np.full(values, self.shape.n // values, np.int64)

    @cached_property
    def largest(self) -> float:
        return max(abs(float(self.elements.min())), abs(float(self.elements.max())))

    @property
    def read_bytes(self) -> int:
        """The bytes of the elements, of the offsets or keys, and of the values."""
        beside = self.offsets.offsets.nbytes if self.offsets is not None else 0
        beside += self.keys.nbytes if self.keys is not None else 0
        return int(self.elements.nbytes + beside + self.counts.size * self.dtype.itemsize)

    def members(self, number: int) -> NDArray[Any]:
        made: Any
        if self.keys is not None:
            made = self.elements[self.keys == number]
        elif self.offsets is not None:
            made = self.elements[int(self.offsets.host[number]) : int(self.offsets.host[number + 1])]
        else:
            made = self.matrix[number] if self.shape.axis else self.matrix[:, number].copy()
        taken: NDArray[Any] = made.get()
        return taken

    def dense(self, keys: Any, values: Any) -> NDArray[Any]:
        """The values of all keys on the host, of those of the groups that there are."""
        made = np.zeros(self.shape.groups or 0, self.dtype.numpy)
        made[keys.get()] = values.get()
        return made

    def workload(self, op: str, strategy: str) -> ShapedWorkload:
        """The reduction of this shape. Raises InvalidInput where the strategy does not compute it, Unavailable where
        its package or its compiler is not installed."""
        row = contender(strategy, "cuda", self.shape.by, op, self.dtype.name, self.shape.axis)
        with cuda_errors(f"{op} by {self.shape.by}"):
            return BOUND[row.strategy, row.by](self, op)


class ExactOfShape:
    """Exact sums or means of rows, columns or segments: the launches of a reduction, recorded once."""

    waits = False

    def __init__(self, data: DeviceShape, op: str) -> None:
        recorder = RecordingGpu(data.gpu)
        self.read_bytes = data.read_bytes
        row = FINISHED_OPS[op]
        rounding = Rounding(row.finish)
        self._sums = FinishedValues(recorder, data.elements, data.layout, data.dtype, row.kind, rounding)
        with recorder.recording() as launches:
            self._sums.start()
        self._prepared = Prepared(data.gpu, launches)

    def run(self) -> None:
        self._prepared.start()

    def values(self) -> NDArray[Any]:
        with cuda_errors("reading the values"):
            self._sums.finish()
            values: NDArray[Any] = self._sums.values.get()
            return values


class ExactByKey:
    """Exact sums or means by key, from the sample of the keys to the keys and the values of all groups."""

    waits = True

    def __init__(self, data: DeviceShape, op: str) -> None:
        self._data, self._mean, self.read_bytes = data, op == "mean", data.read_bytes
        self._keys: Any = None
        self._values: Any = None

    def run(self) -> None:
        data = self._data
        sums = KeyedSums(data.gpu, data.keys, KEY, data.elements, data.dtype)
        sums.add()
        self._keys = sums.groups().keys
        self._values = sums.values(mean=self._mean)

    def values(self) -> NDArray[Any]:
        with cuda_errors("reading the values"):
            return self._data.dense(self._keys, self._values)


class PeerOfShape:
    """A peer's call on the GPU's stream; `read` makes what it gave an array of values."""

    def __init__(
        self, data: DeviceShape, call: Callable[[], Any], read: Callable[[Any], NDArray[Any]], *, waits: bool
    ) -> None:
        self._call, self._read, self._latest = call, read, None
        self.waits, self.read_bytes = waits, data.read_bytes

    def run(self) -> None:
        self._latest = self._call()

    def values(self) -> NDArray[Any]:
        with cuda_errors("reading the values"):
            return self._read(self._latest)


def _torch_matrix(data: DeviceShape, op: str) -> PeerOfShape:
    torch = torch_on(data.gpu)
    call, tensor, axis = getattr(torch, op), torch.from_dlpack(data.elements).view(*data.matrix.shape), data.shape.axis
    return PeerOfShape(data, lambda: call(tensor, dim=axis), lambda made: made.cpu().numpy(), waits=False)


def _torch_segments(data: DeviceShape, op: str) -> PeerOfShape:
    torch = torch_on(data.gpu)
    assert data.offsets is not None
    tensor, offsets = torch.from_dlpack(data.elements), torch.from_dlpack(data.offsets.offsets)
    return PeerOfShape(
        data,
        lambda: torch.segment_reduce(tensor, op, offsets=offsets, unsafe=True),
        lambda made: made.cpu().numpy(),
        waits=True,
    )


def _torch_keys(data: DeviceShape, op: str) -> PeerOfShape:
    torch = torch_on(data.gpu)
    keys, tensor = torch.from_dlpack(data.keys), torch.from_dlpack(data.elements)
    out = torch.zeros(data.shape.groups, dtype=tensor.dtype, device=tensor.device)
    return PeerOfShape(
        data, lambda: out.zero_().index_add_(0, keys, tensor), lambda made: made.cpu().numpy(), waits=True
    )


def _cupy_matrix(data: DeviceShape, op: str) -> PeerOfShape:
    call, axis = getattr(data.matrix, op), data.shape.axis
    return PeerOfShape(data, lambda: call(axis=axis), lambda made: made.get(), waits=False)


def _cupy_keys(data: DeviceShape, op: str) -> PeerOfShape:
    import cupy

    out = cupy.zeros(data.shape.groups, dtype=data.dtype.numpy)

    def call() -> Any:
        out.fill(0)
        cupy.add.at(out, data.keys, data.elements)
        return out

    return PeerOfShape(data, call, lambda made: made.get(), waits=True)


def _cub_matrix(data: DeviceShape, op: str) -> PeerOfShape:
    call = cub_matrix(data.gpu, data.elements, data.dtype, data.shape.rows or 0, data.shape.columns or 0)
    return PeerOfShape(data, call, lambda made: made.get(), waits=False)


def _cub_segments(data: DeviceShape, op: str) -> PeerOfShape:
    assert data.offsets is not None
    call = cub_segments(data.gpu, data.elements, data.dtype, data.offsets.offsets)
    return PeerOfShape(data, call, lambda made: made.get(), waits=False)


def _cub_keys(data: DeviceShape, op: str) -> PeerOfShape:
    call = cub_keys(data.gpu, data.elements, data.dtype, data.keys, in_order=data.shape.key_order == KeyOrder.SORTED)

    def read(made: Any) -> NDArray[Any]:
        names, sums, key_count = made
        count = int(key_count.get()[0])
        return data.dense(names[:count], sums[:count])

    return PeerOfShape(data, call, read, waits=False)


BOUND: Mapping[tuple[str, By], Callable[[DeviceShape, str], ShapedWorkload]] = MappingProxyType(
    {
        (EXACT, By.AXIS): ExactOfShape,
        ("torch", By.AXIS): _torch_matrix,
        ("cupy", By.AXIS): _cupy_matrix,
        ("cub", By.AXIS): _cub_matrix,
        (EXACT, By.SEGMENTS): ExactOfShape,
        ("torch", By.SEGMENTS): _torch_segments,
        ("cub", By.SEGMENTS): _cub_segments,
        (EXACT, By.KEYS): ExactByKey,
        ("torch", By.KEYS): _torch_keys,
        ("cupy", By.KEYS): _cupy_keys,
        ("cub", By.KEYS): _cub_keys,
    }
)
"""The function that makes a strategy ready, by strategy and kind of shape."""
