"""Every aggregate, layout, dtype and NaN policy gives the values of the definition, however the elements are cut into
states, in whatever order these are merged, and whatever way they have come."""

import math
import pickle
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, product
from math import prod
from typing import Any, TypeVar

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.kernels.conformance import same
from tests.support.kernels.patterns import any_bits, array_of_bits
from warpfold.kernels.aggregates.aggregate import Ids, Layout, One, State, UnderWay
from warpfold.kernels.aggregates.by_name import aggregate_of
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import OPS, NanPolicy, Op, Parameters, Value, reference
from warpfold.kernels.ops.quantiles import METHODS
from warpfold.kernels.parts.grouping import AlongAxes, Index, Segments, walk_of
from warpfold.kernels.parts.merged import Merged
from warpfold.kernels.parts.partial import PartialColumn, PartialTable

T = TypeVar("T")

SELECTING = [op for op in OPS.values() if not op.adds and not op.selects]
QUANTILE = OPS["quantile"]
COUNT = 128


@dataclass(frozen=True, eq=False)
class Case:
    """Elements with their groups and their places there, and the layouts of those from one to another."""

    belongs: Sequence[tuple[int, int]]
    layouts: Callable[[int, int], Sequence[Layout]]
    groups: int

    @cached_property
    def _by_group(self) -> dict[int, list[int]]:
        order: dict[int, list[int]] = {}
        for at, (group, _) in sorted(enumerate(self.belongs), key=lambda element: element[1]):
            order.setdefault(group, []).append(at)
        return order

    def in_order(self, group: int) -> Sequence[int]:
        """The elements of a group in the order of their places."""
        return self._by_group.get(group, ())


def single() -> Case:
    return Case([(0, at) for at in range(COUNT)], lambda start, stop: [One(start)], 1)


def by_ids() -> Case:
    ids = np.array([random.Random(3).randrange(5) for _ in range(COUNT)], np.int32)
    belongs = [(group, 7 + at) for at, group in enumerate(ids.tolist())]
    return Case(belongs, lambda start, stop: [Ids(ids[start:stop], 7 + start)], 6)


def along(shape: tuple[int, ...], *axes: int) -> Case:
    walk = walk_of(AlongAxes(axes), shape)
    kept = [axis for axis in range(len(shape)) if axis not in axes]

    def number(index: Sequence[int], of: Sequence[int]) -> int:
        value = 0
        for axis in of:
            value = value * shape[axis] + index[axis]
        return value

    belongs = [(number(index, kept), number(index, axes)) for index in np.ndindex(*shape)]
    return Case(belongs, walk.parts, prod(shape[axis] for axis in kept))


def segments() -> Case:
    bounds = [0, 0, 3, 3, 17, 127, COUNT]
    belongs = [(at, place) for at, (first, stop) in enumerate(pairwise(bounds)) for place in range(stop - first)]
    return Case(belongs, walk_of(Segments(tuple(bounds)), (COUNT,)).parts, len(bounds) - 1)


CASES: dict[str, Case] = {
    "single": single(),
    "ids": by_ids(),
    "rows": along((8, 16), 1),
    "columns": along((8, 16), 0),
    "columns of blocks": along((4, 4, 8), 1),
    "wide columns": along((4, 32), 0),
    "wide columns of blocks": along((2, 2, 32), 1),
    "rows of blocks": along((4, 4, 8), 0, 2),
    "segments": segments(),
}


def sent(part: T) -> T:
    """What another process gets."""
    received: T = pickle.loads(pickle.dumps(part))  # noqa: S301 - our own bytes
    return received


def whole(made: "Made") -> State:
    under_way = made.aggregate.begun(made.case.groups)
    made.update(under_way, 0, COUNT)
    return under_way.rows(0, made.case.groups)


def in_pieces(made: "Made") -> State:
    """Pieces that states of any order take, with groups in other rows and more rows as they are met."""
    groups = made.case.groups
    merged = made.aggregate.begun(1)
    for start, stop in made.pieces():
        part, moved = made.aggregate.begun(groups), made.aggregate.begun()
        made.update(part, start, stop)
        order = np.array(made.chance.sample(range(groups), groups))
        moved.merge(part.rows(0, groups), order, groups)
        merged.merge(sent(moved.rows(0, groups)), np.argsort(order), groups)
    return merged.rows(0, groups)


@dataclass(eq=False)
class Made:
    """An aggregate, and the elements that come to it."""

    op: Op
    dtype: DType
    policy: NanPolicy
    case: Case
    bits: list[int]
    chance: random.Random

    def __post_init__(self) -> None:
        self.omit = self.policy is NanPolicy.OMIT
        self.aggregate = aggregate_of(self.op, self.dtype, omit=self.omit)
        self.array = array_of_bits(self.bits, self.dtype)
        self.nans = np.array([reference.element(pattern, self.dtype).nan for pattern in self.bits])

    def update(self, under_way: UnderWay, start: int, stop: int) -> None:
        """Take in the elements start … stop − 1. A whole array leaves NaNs out before an aggregate gets them."""
        part = np.ascontiguousarray(self.array[start:stop])
        for layout in self.case.layouts(start, stop):
            if isinstance(layout, One) and self.omit:
                kept = np.flatnonzero(~self.nans[start:stop])
                under_way.update((part[kept],), One(places=start + kept))
            else:
                under_way.update((part,), layout, self.case.groups)

    def pieces(self) -> list[tuple[int, int]]:
        cuts = sorted({0, COUNT, *(self.chance.randrange(COUNT) for _ in range(5))})
        return self.chance.sample(list(pairwise(cuts)), len(cuts) - 1)

    def members(self, group: int, start: int = 0, stop: int = COUNT) -> list[int]:
        """The patterns of a group in the order of their places."""
        return [self.bits[at] for at in self.case.in_order(group) if start <= at < stop]

    def place(self, group: int, start: int = 0, stop: int = COUNT) -> int:
        """The place that argmin or argmax gives; 0 where there is none."""
        places = [place for of, place in self.case.belongs[start:stop] if of == group]
        answer = self.answer(group, start=start, stop=stop)
        return 0 if answer is None else sorted(places)[int(answer.value)]

    def answer(self, group: int, op: Op | None = None, **between: int) -> reference.Answer | None:
        answer = reference.reduce(op or self.op, self.dtype, self.members(group, **between), self.policy)
        return answer if isinstance(answer, reference.Answer) else None

    @cached_property
    def wanted(self) -> list[tuple[Value | None, int]]:
        """The value and the count of each group, by definition."""
        answers = [self.answer(group) for group in range(self.case.groups)]
        if self.op.places:
            return [(self.place(group), 0 if each is None else each.count) for group, each in enumerate(answers)]
        return [(None, 0) if each is None else (each.value, each.count) for each in answers]

    @property
    def counts(self) -> Index:
        return np.array([count for _, count in self.wanted])

    def check(self, values: NDArray[Any]) -> None:
        for group, (value, (wanted, count)) in enumerate(zip(values.tolist(), self.wanted, strict=True)):
            if count:  # else the value is arbitrary
                assert wanted is not None
                assert same(value, wanted), (self.op.name, self.dtype.name, self.policy, group, value, wanted)


def made_of(op: Op, dtype: DType, cases: Sequence[str] = tuple(CASES)) -> Sequence[Made]:
    policies = (NanPolicy.PROPAGATE, NanPolicy.OMIT) if dtype.is_float else (NanPolicy.PROPAGATE,)
    chance = random.Random(f"{op.name} {dtype.name}")
    return [
        Made(op, dtype, policy, CASES[case], any_bits(dtype, COUNT, chance), chance)
        for policy in policies
        for case in cases
    ]


PAIRS = [
    pytest.param(op, dtype, id=f"{op.name}-{dtype.name}")
    for op in SELECTING
    for dtype in DTYPES.values()
    if not (op.multiplies and dtype.is_float)
]


@pytest.mark.parametrize(("op", "dtype"), PAIRS)
def test_the_values_are_those_of_the_definition(op: Op, dtype: DType) -> None:
    for made in made_of(op, dtype):
        for layout_name in (whole, in_pieces):
            made.check(made.aggregate.finish(layout_name(made), made.counts))


@pytest.mark.parametrize("method", METHODS)
def test_quantiles_are_those_of_the_definition(method: str) -> None:
    chance = random.Random(method)
    for dtype in DTYPES.values():
        q = chance.choice([0.0, 1.0, 0.1, 0.25, 0.3, 1 / 3, 0.5, chance.random()])
        op = QUANTILE.having(Parameters(q=q, method=method))
        for made in made_of(op, dtype, chance.sample(sorted(CASES), 3)):
            made.check(made.aggregate.finish(chance.choice((whole, in_pieces))(made), made.counts))


SEVERAL = [
    *(OPS[name].having(Parameters(k=3)) for name in ("top_k", "bottom_k", "argtop_k", "argbottom_k")),
    *(OPS["nth"].having(Parameters(n=n)) for n in (2, -1, -4)),
    OPS["histogram"].having(Parameters(bins=(-math.inf, -2.5, -0.0, 0.0, 1.0, 1.0, 1e300))),
    OPS["histogram"].having(Parameters(bins=(-1e300, 300.25, 1e30, 1e300, 1e301))),
    OPS["histogram"].having(Parameters(bins=5, range=(0.1, 100))),
]


@pytest.mark.parametrize("op", SEVERAL, ids=lambda op: f"{op.name} {op.parameters}")
def test_each_of_several_values_is_that_of_the_definition(op: Op) -> None:
    chance = random.Random(repr(op.parameters))
    for dtype in DTYPES.values():
        for made in made_of(op, dtype, chance.sample(sorted(CASES), 3)):
            state, groups, singles = chance.choice((whole, in_pieces))(made), made.case.groups, op.singles()
            counts = np.array([len(made.members(group)) for group in range(groups)])
            together = made.aggregate.finish(state, counts).reshape(groups, len(singles))
            for at, single in enumerate(singles):
                each = replace(made, op=single)
                each.check(together[:, at])
                np.testing.assert_array_equal(each.aggregate.finish(state, counts), together[:, at])


def test_a_list_of_quantiles_has_the_values_of_each() -> None:
    chance = random.Random(5)
    several = tuple(chance.choice([0.5, chance.random()]) for _ in range(7))
    for method, dtype in product(("linear", "lower"), (DTYPES["float32"], DTYPES["int64"])):
        asked: list[float | tuple[float, ...]] = [several, *several]
        listed, *single = (QUANTILE.having(Parameters(q=q, method=method)) for q in asked)
        for made in made_of(listed, dtype)[: len(CASES)]:  # where NaNs are not left out
            state, groups = whole(made), made.case.groups
            counts = np.array([len(made.members(group)) for group in range(groups)])
            together = aggregate_of(listed, dtype).finish(state, counts).reshape(groups, len(several))
            for at, op in enumerate(single):
                np.testing.assert_array_equal(together[:, at], aggregate_of(op, dtype).finish(state, counts))


@pytest.mark.parametrize("method", ["linear", "lower"])
def test_there_may_be_no_groups(method: str) -> None:
    op, none = QUANTILE.having(Parameters(q=(0.1, 0.5), method=method)), np.zeros(0, np.int64)
    aggregate = aggregate_of(op, DTYPES["float32"])
    assert aggregate.finish(aggregate.begun().rows(0, 0), none).tolist() == []


def test_partitions_of_two_dtypes_are_refused() -> None:
    merged, group = Merged([OPS["max"]]), np.zeros(1, np.int64)
    for name in ("int32", "float32"):
        column = PartialColumn.selected(OPS["max"], (name,), group + 1, np.ones(1), None)
        if name == "int32":
            merged.add(PartialTable(group, (column,)))
    with pytest.raises(InvalidInput, match="a partition has float32, and another int32: all partitions need one dtype"):
        merged.add(PartialTable(group, (column,)))
