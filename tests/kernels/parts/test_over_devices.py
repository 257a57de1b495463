"""Reductions to many values in blocks, by one device or several at once: the bits of the whole array."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from warpfold.kernels.backend import GroupedReduction, Progress
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.driver import Backend
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import ExactState
from warpfold.kernels.formats.npy import open_array, read_head
from warpfold.kernels.ops import NanPolicy, Parameters, Terms, op_named
from warpfold.kernels.parts.grouping import AlongAxes, Grouping, Segments
from warpfold.kernels.parts.over_devices import fitting, reduce_spread
from warpfold.kernels.query import Answer, Query, Shaped
from warpfold.kernels.source import ArraySource, GeneratedSource, extents_of
from warpfold.kernels.sources.sequential import Elements, SequentialSource

SHAPE = (5, 4, 7)
COUNT = prod(SHAPE)


class Limited(CpuBackend):
    """A device that refuses more than `most` elements at a time, unless they make one value, and counts its blocks."""

    def __init__(self, most: int) -> None:
        self.long = 0
        super().__init__(8 << 20)
        self.most, self.blocks, self.long = most, 0, 0

    def aggregate(self, query: Query[Answer], progress: Progress | None = None) -> Answer:
        if isinstance(query, Shaped):
            assert prod(query.shape) <= self.most, f"{query.shape} has more than {self.most} elements"
            self.blocks += 1
        else:
            self.long += 1
        return super().aggregate(query, progress)


def spread(  # noqa: PLR0917
    members: Sequence[Backend], source: Elements, shape: tuple[int, ...], grouping: Grouping, op: str, most: int,
    progress: Progress | None = None, **options: Any,
) -> GroupedReduction:  # fmt: skip
    query = Shaped(source=source, shape=shape, grouping=grouping, op=op_named(op), **options)
    return reduce_spread(members, query, most, progress)


def hostile(seed: int, dtype: str = "float64") -> NDArray[Any]:
    """Elements over many exponents, of both signs, a few of them equal."""
    random = np.random.default_rng(seed)
    wide = np.ldexp(random.standard_normal(COUNT), random.integers(-60, 60, COUNT))
    wide[::9] = -wide[::9][0]
    return wide.astype(dtype).reshape(SHAPE)


GROUPINGS: list[Grouping] = [
    *(AlongAxes(axes) for count in (1, 2) for axes in combinations(range(3), count)),
    Segments(length=9),
    Segments((0, 0, 3, 50, 50, 51, 139)),
]


@pytest.mark.parametrize("grouping", GROUPINGS, ids=str)
@pytest.mark.parametrize("op", ["sum", "mean", "std", "argmin", "max", "any"])
def test_blocks_devices_and_layouts_do_not_show(grouping: Grouping, op: str) -> None:
    array = hostile(1)
    whole = CpuBackend().reduce_groups(ArraySource(array), SHAPE, grouping, op)
    fortran = ArraySource(np.asfortranarray(array))
    for most, devices in ((1, 1), (8, 1), (40, 3), (COUNT, 2)):
        in_order = SequentialSource(DTYPES["float64"], lambda: iter([array.reshape(-1)]), COUNT, shape=SHAPE)
        for source in (ArraySource(array), fortran, in_order):
            members: list[Backend] = [Limited(most) for _ in range(devices)]
            made = spread(members, source, SHAPE, grouping, op, most)
            assert list(map(repr, made.listed())) == list(map(repr, whole.listed()))
            assert (made.shape, made.dtype, made.counted()) == (whole.shape, whole.dtype, whole.counted())


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_any_shape_in_blocks_has_the_sums_of_rationals(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    axes = tuple(data.draw(st.sets(st.integers(0, len(shape) - 1), min_size=1)))
    numbers = st.floats(-(2.0**90), 2.0**90, width=32)
    flat = data.draw(st.lists(numbers, min_size=prod(shape), max_size=prod(shape)))
    array = np.array(flat, np.float32).reshape(shape)
    most = data.draw(st.integers(1, array.size))
    members: list[Backend] = [Limited(most) for _ in range(data.draw(st.integers(1, 3)))]
    made = spread(members, ArraySource(array), shape, AlongAxes(axes), "sum", most)
    behind = np.moveaxis(array, axes, tuple(range(-len(axes), 0))).reshape(len(made.listed()), -1)
    for value, row in zip(made.listed(), behind, strict=True):
        exact = sum(map(Fraction, row.astype(float).tolist()), Fraction())
        distance = abs(Fraction(float(value or 0.0)) - exact)
        around = [np.nextafter(np.float32(value), np.float32(end)) for end in (np.inf, -np.inf)]
        assert all(distance <= abs(Fraction(float(other)) - exact) for other in around)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=3).map(tuple),
    st.sampled_from(["sum", "mean", "var", "max", "argmin", "count_nonzero"]),
    st.sampled_from([NanPolicy.PROPAGATE, NanPolicy.OMIT]),
    st.integers(1, 3),
    st.data(),
)
def test_any_value_in_blocks_is_that_of_the_whole_or_missing_as_there(
    shape: tuple[int, ...], op: str, policy: NanPolicy, devices: int, data: st.DataObject
) -> None:
    elements = st.lists(st.sampled_from([np.nan, np.nan, -0.0, 1.5, 1e300]), min_size=prod(shape), max_size=prod(shape))
    array = np.array(data.draw(elements), np.float64).reshape(shape)
    axes = st.sets(st.integers(0, len(shape) - 1), min_size=1).map(lambda axes: AlongAxes(tuple(axes)))
    grouping = data.draw(axes | st.integers(1, 9).map(lambda length: Segments(length=length)))
    most = data.draw(st.integers(1, array.size + 1))
    options: dict[str, Any] = {"nan_policy": policy, "ddof": 1 if op == "var" else 0}
    members: list[Backend] = [Limited(most) for _ in range(devices)]
    made = spread(members, ArraySource(array), shape, grouping, op, most, **options)
    whole = CpuBackend(8 << 20).reduce_groups(ArraySource(array), shape, grouping, op, **options)
    assert list(map(repr, made.listed())) == list(map(repr, whole.listed()))
    assert (made.shape, list(made.counted())) == (whole.shape, list(whole.counted()))


def test_a_value_that_is_longer_than_a_device_goes_through_it_in_pieces() -> None:
    array = hostile(2)
    member = Limited(10)
    made = spread([member], ArraySource(array), SHAPE, AlongAxes((0, 1)), "sum", 10)
    assert (member.blocks, member.long) == (0, 7)
    whole = CpuBackend().reduce_groups(ArraySource(array), SHAPE, AlongAxes((0, 1)), "sum")
    assert made.listed() == whole.listed()
    assert made.correctly_rounded


def test_a_long_value_of_nans_alone_that_are_left_out_is_missing() -> None:
    array = np.full((2, 30), np.nan)
    array[1, 3] = 2.5
    made = spread([Limited(10)], ArraySource(array), (2, 30), AlongAxes((1,)), "mean", 10, nan_policy=NanPolicy.OMIT)
    assert (made.listed(), made.counted()) == ((None, 2.5), (0, 1))


@pytest.mark.parametrize("states", [False, True])
def test_a_long_value_of_too_few_elements_for_its_variance_is_missing(states: bool) -> None:
    array = np.full((3, 30), np.nan)
    array[1, :2], array[2, :3] = 2.5, (1.0, 2.0, 3.0)
    options: dict[str, Any] = {"nan_policy": NanPolicy.OMIT, "ddof": 2, "states": states}
    made = spread([Limited(10)], ArraySource(array), (3, 30), AlongAxes((1,)), "var", 10, **options)
    whole = CpuBackend().reduce_groups(ArraySource(array), (3, 30), AlongAxes((1,)), "var", **options)
    assert (made.listed(), made.counted()) == (whole.listed(), whole.counted()) == ((None, None, 2.0), (0, 2, 3))
    for mine, wanted in zip(made.states, whole.states, strict=True):
        assert [mine[at] for at in range(3)] == [wanted[at] for at in range(3)]


@pytest.mark.parametrize("grouping", [Segments(length=4), AlongAxes((1,))], ids=str)
def test_no_elements_make_no_values(grouping: Grouping) -> None:
    made = spread([Limited(10), Limited(10)], ArraySource(np.zeros((0, 4))), (0, 4), grouping, "sum", 10)
    assert (list(made.listed()), made.shape) == ([], (0,))


@pytest.mark.parametrize("grouping", GROUPINGS, ids=str)
@pytest.mark.parametrize("op", ["sum", "norm1", "mean", "norm2", "var"])
def test_neither_blocks_nor_pieces_show_in_states(grouping: Grouping, op: str) -> None:
    array = hostile(7)
    array.reshape(-1)[::11] = np.nan
    whole = CpuBackend().reduce_groups(ArraySource(array), SHAPE, grouping, op, nan_policy=NanPolicy.OMIT, states=True)
    for most, devices in ((1, 1), (8, 2), (COUNT, 3)):
        members: list[Backend] = [Limited(most) for _ in range(devices)]
        made = spread(members, ArraySource(array), SHAPE, grouping, op, most, nan_policy=NanPolicy.OMIT, states=True)
        assert len(made.states) == (2 if op == "var" else 1)
        for mine, wanted in zip(made.states, whole.states, strict=True):
            assert [mine[at] for at in range(len(mine))] == [wanted[at] for at in range(len(wanted))], most


def test_a_long_value_of_no_elements_has_the_state_of_nothing() -> None:
    made = spread(
        [Limited(10)], ArraySource(np.full((1, 30), np.nan)), (1, 30), AlongAxes((1,)), "std", 10,
        nan_policy=NanPolicy.OMIT, states=True,
    )  # fmt: skip
    empty = [ExactState.empty(terms).to_bytes() for terms in (Terms.VALUES, Terms.PRODUCTS)]
    assert [column[0] for column in made.states] == empty


def test_several_devices_share_what_would_fit_one() -> None:
    members = [Limited(COUNT) for _ in range(3)]
    spread(list[Backend](members), ArraySource(hostile(3)), SHAPE, AlongAxes((2,)), "sum", COUNT)
    blocks = list(fitting([ArraySource(hostile(3))], SHAPE, AlongAxes((2,)), COUNT, parts=3))
    assert len(blocks) >= 3
    assert sum(member.blocks for member in members) == len(blocks)


def test_progress_grows_to_the_whole() -> None:
    reports: list[tuple[int, int]] = []
    members: list[Backend] = [Limited(20)]
    made = GeneratedSource("normal", 4000, 1, DTYPES["float32"])
    spread(members, made, (200, 20), AlongAxes((1,)), "sum", 20, progress=lambda *now: reports.append(now))
    assert [done for done, _ in reports] == sorted(done for done, _ in reports)
    assert reports[-1] == (4000, 4000)
    assert {of for _, of in reports} == {4000}


def test_an_error_of_a_block_ends_all_and_names_its_field() -> None:
    array = hostile(4)
    array[4, 3, 2] = np.nan
    for devices in (1, 3):
        members: list[Backend] = [Limited(30) for _ in range(devices)]
        with pytest.raises(InvalidInput, match="an element is NaN, and nan_policy is raise") as refused:
            spread(members, ArraySource(array), SHAPE, AlongAxes((2,)), "sum", 30, nan_policy=NanPolicy.RAISE)
        assert refused.value.field == "nan_policy"


def test_segments_are_cut_by_their_elements() -> None:
    blocks = list(fitting([ArraySource(hostile(5))], (COUNT,), Segments((0, 1, 2, 3, 100, 101, 140)), 10))
    assert [(block.values, block.shape) for block in blocks] == [(3, (3,)), (1, (97,)), (1, (1,)), (1, (39,))]
    assert [block.sources[0].count for block in blocks] == [3, 97, 1, 39]


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_file_is_reduced_in_blocks_as_it_lies(tmp_path: Path, order: Any) -> None:
    array = np.asarray(hostile(6), order=order)
    np.save(tmp_path / "x.npy", array)
    with (tmp_path / "x.npy").open("rb") as file:
        source = open_array(file, read_head(file))
    rows = list(fitting([source], SHAPE, AlongAxes((1, 2)), 12, 2))
    lying = [extents_of(block.sources[0]) is not None for block in rows]
    assert len(rows) > 1
    assert lying == [order == "C"] * len(rows), "threads read the rows of a file without Python"
    for grouping in GROUPINGS:
        whole = CpuBackend().reduce_groups(ArraySource(array), SHAPE, grouping, "sum")
        made = spread([Limited(12)], source, SHAPE, grouping, "sum", 12)
        assert made.listed() == whole.listed(), grouping


def test_devices_share_rows_of_a_file_and_leave_columns_to_one(tmp_path: Path) -> None:
    array = hostile(8)
    np.save(tmp_path / "x.npy", array)
    with (tmp_path / "x.npy").open("rb") as file:
        source = open_array(file, read_head(file))
    made = GeneratedSource("normal", COUNT, 3, DTYPES["float64"])
    for each, axes, most, blocks in (
        (source, (1, 2), COUNT, 3),
        (source, (0,), COUNT, 1),
        (source, (0,), COUNT - 1, 4),
        (made, (0,), COUNT, 4),
    ):
        members = [Limited(most) for _ in range(3)]
        spread(members, each, SHAPE, AlongAxes(axes), "sum", most)
        assert sum(member.blocks for member in members) == blocks, (each, axes, most)


def test_a_long_value_is_asked_for_once_whatever_it_has_several_of() -> None:
    class Piecewise(CpuBackend):
        """A device that takes a value of an op of ranks in pieces, and keeps what it was asked."""

        def __init__(self) -> None:
            self.asked: list[str] = []
            super().__init__(8 << 20)

        def aggregate(self, query: Query[Answer], progress: Progress | None = None) -> Answer:
            self.asked.append(type(query).__name__)
            return super().aggregate(query, progress)

    array = hostile(3)
    for name, chosen in (("quantile", Parameters(q=(0.1, 0.5, 0.9))), ("top_k", Parameters(k=4))):
        op, device = op_named(name).having(chosen), Piecewise()
        query = Shaped(source=ArraySource(array), shape=SHAPE, grouping=AlongAxes(None), op=op)
        made, wanted = reduce_spread([device], query, 7), CpuBackend().answer(query)
        assert (made.listed(), made.shape, device.asked) == (wanted.listed(), wanted.shape, ["Shaped"])
