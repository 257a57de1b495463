"""Partitions: the partial values of parts of one array, each of which may be reduced on another machine, and the value
that they make together.

What an op adds up travels as exact states (docs/exact-state.md), so that any partitions in any order give the bits of
the whole array, and the value is rounded once. Ops that select or count elements never round.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import isnan
from types import MappingProxyType
from typing import Any

from warpfold.kernels.backend import Backend, Progress, Reduction, Stages
from warpfold.kernels.cpu.folds.extremes import larger, smaller
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput, NoElements, Unavailable
from warpfold.kernels.exact import ExactState, deviation, value_of, variance
from warpfold.kernels.operands import check_freedom, result_dtype
from warpfold.kernels.ops import Extreme, Finish, NanPolicy, Op, Terms, Value, empty_value, op_named
from warpfold.kernels.sequential import Elements, counted

Open = Callable[[], tuple[Elements, Elements | None]]
"""Opens the elements of a partition from the first one on; of an op of two sources those of both."""

_ADDED: Mapping[Terms, tuple[str, ...]] = MappingProxyType(
    {Terms.VALUES: ("sum",), Terms.PRODUCTS: ("sum_squares",), Terms.MOMENTS: ("sum", "sum_squares")}
)
"""The ops whose states an op needs."""

_OF_TWO: Mapping[str, Callable[[Any, Any], Value | None]] = MappingProxyType(
    {
        "min": smaller,
        "max": larger,
        "norm_inf": larger,
        "count_nonzero": lambda left, right: int(left + right),
        "any": lambda left, right: bool(left or right),
        "all": lambda left, right: bool(left and right),
    }
)
"""How the values of two partitions make one, for ops that add nothing up."""


def combines(op: Op) -> bool:
    """Whether partial values of `op` make its value. Products do not: one of integers may be too long in a partition
    and zero as a whole."""
    return op.adds or op.places or op.name in _OF_TWO


@dataclass(frozen=True, slots=True)
class PartialValue:
    """The share of the elements of one partition, or of several, in the value of an op.

    `states` are the canonical bytes of the exact states of an op that adds: one, or of a variance those of the elements
    and of their squares. Of other ops `value` is the value over these elements, None over no elements. Of argmin and
    argmax `at` is the partition and the index in it, and `value` the element there. `count` is how many elements
    entered, and `read` how many there were. `dtype` is that of the elements, `result` that of the value.
    """

    op: str
    dtype: str
    result: str
    count: int
    read: int
    states: tuple[bytes, ...] = ()
    value: Value | None = None
    at: tuple[int, int] | None = None

    def merge(self, other: "PartialValue") -> "PartialValue":
        """Both partial values together. Raises InvalidInput where they are of other ops or dtypes, and StateError where
        the bytes of a state are of another version or damaged."""
        if (self.op, self.dtype, self.result) != (other.op, other.dtype, other.result):
            raise InvalidInput(
                f"a partition gave {other.op} of {other.dtype}, and another {self.op} of {self.dtype}: all partitions "
                "need one dtype"
            )
        states = tuple(
            ExactState.from_bytes(left).merge(ExactState.from_bytes(right)).to_bytes()
            for left, right in zip(self.states, other.states, strict=True)
        )
        chosen = self._chosen(other)
        return PartialValue(
            self.op, self.dtype, self.result, self.count + other.count, self.read + other.read, states, *chosen
        )

    def _chosen(self, other: "PartialValue") -> tuple[Value | None, tuple[int, int] | None]:
        op = op_named(self.op)
        if op.adds:
            return None, None
        if self.value is None or other.value is None:
            chosen = self if other.value is None else other
            return chosen.value, chosen.at
        if op.places:
            chosen = min(self, other, key=lambda partial: _order(op, partial))
            return chosen.value, chosen.at
        return _OF_TWO[op.name](self.value, other.value), None

    def finish(self, ddof: int, before: Sequence[int]) -> Value:
        """The value, rounded once. `before` says how many elements lie before each partition. Raises InvalidInput where
        the op has no value for the elements."""
        op = op_named(self.op)
        if not self.count:
            return empty_value(op, DTYPES[self.dtype])
        if op.terms is Terms.MOMENTS:
            check_freedom(op, self.count, ddof)
            finish = variance if op.finish is Finish.VARIANCE else deviation
            values, squares = map(ExactState.from_bytes, self.states)
            return finish(values, squares, ddof, DTYPES[self.result])
        if op.adds:
            return value_of(op, ExactState.from_bytes(self.states[0]), self.result)
        if op.places:
            assert self.at is not None, "some element was found"
            return before[self.at[0]] + self.at[1]
        assert self.value is not None, "some element entered"
        return self.value


def _order(op: Op, partial: PartialValue) -> tuple[bool, float, tuple[int, int]]:
    """Sorts a NaN first, then by value, then by place."""
    assert partial.value is not None
    assert partial.at is not None
    is_nan = isnan(partial.value)
    key = 0 if is_nan else partial.value if op.extreme is Extreme.LEAST else -partial.value
    return not is_nan, key, partial.at


@dataclass(frozen=True, slots=True)
class Reduced:
    """The partial value of a partition and how long it took, in milliseconds and by stages, as a `Reduction` has it."""

    partial: PartialValue
    strategy: str
    load_ms: float
    kernel_ms: float
    prepare_ms: float
    stages: Stages | None


def reduce_partition(
    backend: Backend, begin: Open, op: Op, number: int, *, nan_policy: NanPolicy, progress: Progress | None = None
) -> Reduced:
    """Reduce partition `number` on an open backend. `begin` is called once for each read: the elements of a variance
    and of an index are read twice. Raises a KernelError, and what `progress` raises."""
    passes: list[Reduction] = []
    states: list[bytes] = []
    read, dtype, result = 0, "", ""

    def passed(name: str) -> Reduction | None:
        nonlocal read, dtype, result
        source, other = begin()
        reduction: Reduction | None
        try:
            passes.append(backend.reduce(source, name, nan_policy=nan_policy, other=other, progress=progress))
            reduction = passes[-1]
        except NoElements:
            reduction = None
        read, dtype = counted(source), source.dtype.name
        result = result_dtype(op, source.dtype, None if other is None else other.dtype)
        return reduction

    value: Value | None = None
    at: tuple[int, int] | None = None
    count = 0
    if op.adds:
        names = (op.name,) if op.magnitudes or op.sources > 1 else _ADDED[op.terms]
        for name in names:
            reduction = passed(name)
            if reduction is None:
                states.append(ExactState.empty(op_named(name).terms).to_bytes())
                continue
            if reduction.state is None:
                raise Unavailable(
                    f"{reduction.strategy} on {backend.device.name} gives no exact state of {name} of {dtype}"
                )
            count = reduction.count
            states.append(reduction.state)
    elif (reduction := passed(op.name)) is not None:
        count, value = reduction.count, reduction.value
        if op.places:
            at = number, int(value)
            element = passed("min" if op.extreme is Extreme.LEAST else "max")
            assert element is not None, "an element was found before"
            value = element.value
    partial = PartialValue(op.name, dtype, result, count, read, tuple(states), value if count else None, at)
    return Reduced(
        partial,
        passes[0].strategy if passes else "exact",
        sum(each.load_ms for each in passes),
        sum(each.kernel_ms for each in passes),
        sum(each.prepare_ms for each in passes),
        _together([each.stages for each in passes]),
    )


def _together(stages: Sequence[Stages | None]) -> Stages | None:
    known = [each for each in stages if each is not None]
    return reduce(added, known) if known and len(known) == len(stages) else None


def added(left: Stages, right: Stages) -> Stages:
    """The time of both, stage by stage."""

    def both(a: float | None, b: float | None) -> float | None:
        return b if a is None else a if b is None else a + b

    return Stages(
        both(left.read_s, right.read_s),
        both(left.decode_s, right.decode_s),
        both(left.copy_s, right.copy_s),
        both(left.reduce_s, right.reduce_s),
    )
