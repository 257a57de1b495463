"""Shapes on a CPU: the exact strategy through the backend, as a job runs it, beside NumPy, Polars and pyarrow as their
users call them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.bench.contenders import contender
from warpfold.kernels.bench.data import bounds_of, keys_of
from warpfold.kernels.driver import Backend
from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import Unavailable
from warpfold.kernels.formats.keyed_arrays import keyed_arrays
from warpfold.kernels.machine.extras import required
from warpfold.kernels.ops import op_named
from warpfold.kernels.parts.grouping import AlongAxes, Grouping, Segments
from warpfold.kernels.parts.keyed import Aggregation, GroupPlan
from warpfold.kernels.source import ArraySource, Source
from warpfold.kernels.strategy import EXACT
from warpfold.kernels.studies.shapes import By, CaseShape, KeyOrder

Bound = tuple[Callable[[], Any], Callable[[Any], NDArray[Any]]]
"""A call that reduces, and what makes its answer an array of values."""


@dataclass(frozen=True, eq=False)
class HostShape:
    """The elements of a shape in this process's memory, shape (n,), with the offsets of its segments or its keys."""

    backend: Backend
    elements: NDArray[Any]
    dtype: DType
    shape: CaseShape
    bounds: NDArray[np.int64] | None = None
    keys: NDArray[np.int32] | None = None

    @classmethod
    def of(cls, backend: Backend, source: Source, shape: CaseShape, seed: int) -> "HostShape":
        """The shape with its elements read, and its offsets or keys made."""
        elements = source.read(0, source.count)
        if shape.by is By.SEGMENTS:
            return cls(backend, elements, source.dtype, shape, bounds=bounds_of(shape, seed))
        if shape.by is By.AXIS:
            return cls(backend, elements, source.dtype, shape)
        keys = keys_of(shape, seed).read(0, shape.n)
        return cls(
            backend, elements, source.dtype, shape, keys=np.sort(keys) if shape.key_order == KeyOrder.SORTED else keys
        )

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        if self.keys is not None:
            assert self.shape.groups is not None
            return np.bincount(self.keys, minlength=self.shape.groups)
        if self.bounds is not None:
            return np.diff(self.bounds)
        return np.full(self.width, self.shape.n // self.width, np.int64)

    @property
    def width(self) -> int:
        """How many values a matrix has."""
        assert self.shape.rows is not None
        assert self.shape.columns is not None
        return self.shape.rows if self.shape.axis else self.shape.columns

    @cached_property
    def largest(self) -> float:
        return float(np.max(np.abs(self.elements), initial=0))

    @property
    def matrix(self) -> NDArray[Any]:
        """The elements as a matrix."""
        return self.elements.reshape(self.shape.rows or 0, self.shape.columns or 0)

    def members(self, number: int) -> NDArray[Any]:
        if self.keys is not None:
            of_key: NDArray[Any] = self.elements[self.keys == number]
            return of_key
        if self.bounds is not None:
            return self.elements[self.bounds[number] : self.bounds[number + 1]]
        return self.matrix[number] if self.shape.axis else np.ascontiguousarray(self.matrix[:, number])

    def dense(self, keys: NDArray[Any], values: NDArray[Any]) -> NDArray[Any]:
        """The values of all keys, of those of the groups that there are."""
        assert self.shape.groups is not None
        made = np.zeros(self.shape.groups, values.dtype)
        made[keys] = values
        return made

    def workload(self, op: str, strategy: str) -> "HostShapedWorkload":
        """The reduction of this shape. Raises InvalidInput where the strategy does not compute it, Unavailable where
        its package is not installed."""
        row = contender(strategy, "cpu", self.shape.by, op, self.dtype.name, self.shape.axis)
        return HostShapedWorkload(self, BOUND[row.strategy, row.by](self, op))


class HostShapedWorkload:
    """One reduction of a shape."""

    waits = True

    def __init__(self, data: HostShape, bound: Bound) -> None:
        self._data, (self._call, self._values) = data, bound
        self._latest: Any = None

    @property
    def read_bytes(self) -> int:
        beside = (array.nbytes for array in (self._data.bounds, self._data.keys) if array is not None)
        return int(self._data.elements.nbytes + sum(beside) + self._data.counts.size * self._data.dtype.itemsize)

    def run(self) -> None:
        self._latest = self._call()

    def values(self) -> NDArray[Any]:
        assert self._latest is not None, "run() comes first"
        return self._values(self._latest)


def _exact_grouped(data: HostShape, op: str) -> Bound:
    backend, source = data.backend, ArraySource(data.elements)
    grouping: Grouping
    extent: tuple[int, ...] = (data.shape.n,)
    if data.bounds is None:
        assert data.shape.axis is not None
        grouping, extent = AlongAxes((data.shape.axis,)), data.matrix.shape
    else:
        grouping = Segments(tuple(data.bounds.tolist()))
    return (
        lambda: backend.reduce_groups(source, extent, grouping, op, strategy=EXACT),
        lambda made: np.asarray(made.values, np.float64),
    )


def _exact_keyed(data: HostShape, op: str) -> Bound:
    backend = data.backend
    assert data.keys is not None
    source = keyed_arrays([("key", ArraySource(data.keys), "by")], [("value", ArraySource(data.elements), "column")])
    plan = GroupPlan((Aggregation(op_named(op), 0, "value"),), max_groups=max(1, data.shape.groups or 0))
    return (
        lambda: backend.group_by(source, plan),
        lambda made: data.dense(made.keys[0].to_numpy(), np.asarray(made.columns[0].values, np.float64)),
    )


def _numpy_matrix(data: HostShape, op: str) -> Bound:
    call, matrix, axis = getattr(np, op), data.matrix, data.shape.axis
    return lambda: call(matrix, axis=axis), np.asarray


def _numpy_segments(data: HostShape, op: str) -> Bound:
    assert data.bounds is not None
    call = {"sum": np.add, "min": np.minimum, "max": np.maximum}[op]
    starts = data.bounds[:-1]
    return lambda: call.reduceat(data.elements, starts), np.asarray


def _numpy_keyed(data: HostShape, op: str) -> Bound:
    assert data.keys is not None
    keys, groups = data.keys, data.shape.groups or 0
    return lambda: np.bincount(keys, weights=data.elements, minlength=groups), np.asarray


def _polars(data: HostShape, op: str) -> Bound:
    try:
        polars: Any = import_module("polars")
    except ImportError:
        raise Unavailable("polars is not installed on the machine that ran this") from None
    frame = polars.DataFrame({"key": data.keys, "value": data.elements})
    return (
        lambda: frame.group_by("key").agg(getattr(polars.col("value"), op)()),
        lambda made: data.dense(made["key"].to_numpy(), made["value"].to_numpy()),
    )


def _pyarrow(data: HostShape, op: str) -> Bound:
    pyarrow = required("pyarrow", "tables")
    table = pyarrow.table({"key": data.keys, "value": data.elements})
    return (
        lambda: table.group_by("key").aggregate([("value", op)]),
        lambda made: data.dense(made["key"].to_numpy(), made[f"value_{op}"].to_numpy()),
    )


BOUND: Mapping[tuple[str, By], Callable[[HostShape, str], Bound]] = MappingProxyType(
    {
        (EXACT, By.AXIS): _exact_grouped,
        ("numpy", By.AXIS): _numpy_matrix,
        (EXACT, By.SEGMENTS): _exact_grouped,
        ("numpy", By.SEGMENTS): _numpy_segments,
        (EXACT, By.KEYS): _exact_keyed,
        ("numpy", By.KEYS): _numpy_keyed,
        ("polars", By.KEYS): _polars,
        ("pyarrow", By.KEYS): _pyarrow,
    }
)
"""What makes a strategy ready for a shape."""
