"""How the elements of an array lie in memory that make up the values along axes: as rows or as columns, without a copy
of the array."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from warpfold.kernels.parts.grouping import Index


@dataclass(frozen=True, slots=True)
class AxisRun:
    """Neighbouring axes that are all reduced, or all kept: how many elements they have, how far apart these lie, and
    how far apart the values that they belong to (0 where they are reduced)."""

    length: int
    stride: int
    output: int


@dataclass(frozen=True, slots=True)
class Arranged:
    """An array as runs of its axes, from the slowest to the fastest; an axis of one element is in none. Values are
    numbered in the order of memory: `lengths` are those of the axes that are kept, in that order, and `order` brings
    them back into the array's."""

    runs: tuple[AxisRun, ...]
    lengths: tuple[int, ...]
    order: tuple[int, ...]

    @classmethod
    def of(cls, shape: Sequence[int], strides: Sequence[int], axes: Collection[int]) -> "Arranged":
        """The array of `shape` whose elements are `strides` apart, counted in elements, reduced along `axes`."""
        order = sorted(range(len(shape)), key=lambda axis: (-strides[axis], axis))
        kept = [axis for axis in order if axis not in axes]
        outputs, output = {}, 1
        for axis in reversed(kept):
            outputs[axis] = output
            output *= shape[axis]
        runs = _merged([AxisRun(shape[axis], strides[axis], outputs.get(axis, 0)) for axis in order])
        back = tuple(sorted(range(len(kept)), key=kept.__getitem__))
        return cls(tuple(runs), tuple(shape[axis] for axis in kept), back)


@dataclass(frozen=True, slots=True)
class ElementRuns:
    """The elements of values along axes. From `flat[starts[i]]` on, a *row* has `length` neighbours of value places[i];
    *columns* are `length` rows of `width` neighbours, `stride` apart, that belong to the values from places[i] on.
    `width` is 0 for rows. The values are in the order of `arranged`."""

    flat: NDArray[Any]
    starts: Index
    places: Index
    length: int
    stride: int
    width: int
    arranged: Arranged

    @classmethod
    def of(cls, array: NDArray[Any], axes: Collection[int], word: "np.dtype[Any]") -> "ElementRuns | None":
        """Those of an array that has elements, read as `word`; None where neighbours on its fastest axis are no
        neighbours in memory, or where an axis runs backwards."""
        if not array.dtype.isnative or not array.flags.aligned:
            return None
        strides = [stride // array.itemsize for stride in array.strides]
        odd = any(stride % array.itemsize for stride in array.strides)
        if odd or any(stride < 1 for stride, length in zip(strides, array.shape, strict=True) if length > 1):
            return None
        arranged = Arranged.of(array.shape, strides, axes)
        runs = list(arranged.runs)
        if runs[-1].stride != 1:
            return None
        inner, stride, width = runs.pop(), 1, 0
        length = inner.length
        if inner.output:
            width, length, stride = length, 1, 0
            if runs and not runs[-1].output:
                column = runs.pop()
                length, stride = column.length, column.stride
        starts, places = np.zeros(1, np.int64), np.zeros(1, np.int64)
        for run in runs:
            steps = np.arange(run.length, dtype=np.int64)
            starts = (starts[:, None] + steps * run.stride).reshape(-1)
            places = (places[:, None] + steps * run.output).reshape(-1)
        if array.flags.c_contiguous:
            flat = array.reshape(-1).view(word)
        else:
            reach = 1 + sum((size - 1) * step for size, step in zip(array.shape, strides, strict=True))
            flat = as_strided(array, (reach,), (array.itemsize,), writeable=False).view(word)
        return cls(flat, starts, places, length, stride, width, arranged)

    @property
    def values(self) -> int:
        """How many values there are."""
        return prod(self.arranged.lengths)

    def ordered(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Numbers of all values, in C order of the array."""
        if self.arranged.order == tuple(range(len(self.arranged.order))):
            return numbers
        turned = numbers.reshape(self.arranged.lengths).transpose(self.arranged.order)
        return np.ascontiguousarray(turned).reshape(-1)


def _merged(runs: Sequence[AxisRun]) -> list[AxisRun]:
    """The same elements in as few runs as can be; an axis of one element is none."""
    made: list[AxisRun] = []
    for run in runs:
        if run.length == 1:
            continue
        before = made[-1] if made else None
        if before is not None and (before.stride, before.output) == (run.stride * run.length, run.output * run.length):
            made[-1] = AxisRun(before.length * run.length, run.stride, run.output)
        else:
            made.append(run)
    return made or [AxisRun(1, 1, 0)]
