"""What follows from the shape and the strides of an array, and from the axes that are reduced."""

from collections.abc import Sequence
from math import prod

from warpfold.engines.axes import Axes, normal_axes, result_shape
from warpfold.kernels.cuda.resident import Arrangement


class Plan:
    """How an array of `shape` is reduced along `axis`; `strides` are in elements.

    `shape` is that of the values, and `empty` says that the array has no elements. Where `copied` is not None, the
    array is first copied with its axes in that order. The values lie in memory as an array of `lengths` in C order:
    along an axis the next value is `steps` elements away. `order` are the places of its axes in their own order, and
    with `in_order` they are there already. Raises ValueError for axes that do not exist or occur twice.
    """

    __slots__ = ("arranged", "copied", "empty", "in_order", "lengths", "order", "shape", "steps")

    def __init__(self, shape: Sequence[int], strides: Sequence[int], axis: Axes, keepdims: bool) -> None:
        axes = normal_axes(axis, len(shape))
        self.shape = result_shape(shape, axes, keepdims=keepdims)
        self.empty = prod(shape) == 0
        arranged = Arrangement.of(shape, strides, axes)
        self.copied = None
        if arranged is None:
            arranged = Arrangement.rows(shape, axes)
            self.copied = (*arranged.kept, *sorted(axes))
        self.arranged, self.order = arranged, arranged.order
        self.in_order = self.order == tuple(range(len(self.order)))
        self.lengths = self.shape if self.in_order else arranged.lengths
        self.steps = tuple(prod(self.lengths[axis + 1 :]) for axis in range(len(self.lengths)))
