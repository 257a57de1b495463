"""Ranges of keys: in the order of the keys, about equally many rows each, and only where they are worth it."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from warpfold.kernels.cpu.keyed import range_loops
from warpfold.kernels.cpu.keyed.ranges import KeyRanges, ranges_for
from warpfold.kernels.formats.keyed_arrays import keyed_arrays
from warpfold.kernels.ops import OPS, NanPolicy
from warpfold.kernels.parts.keyed import Aggregation, GroupPlan, KeyedSource
from warpfold.kernels.source import ArraySource

ROWS = 1 << 20
SUM = (Aggregation(OPS["sum"], 0, "sum"),)


def numbered(keys: NDArray[Any], ranges: KeyRanges) -> NDArray[np.uint8]:
    numbers, counts = np.empty(keys.size, np.uint8), np.zeros(ranges.count, np.int64)
    keys = keys.copy()
    keys.flags.writeable = False
    range_loops.number_ranges(keys, ranges.least, ranges.shift, ranges.cells, numbers, counts)
    assert counts.tolist() == np.bincount(numbers, minlength=ranges.count).tolist()
    return numbers


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(["int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"]),
    st.integers(0, 1 << 32), st.integers(1, 256), st.integers(0, 63),
)  # fmt: skip
def test_ranges_follow_the_order_of_all_keys(dtype: str, seed: int, count: int, narrower: int) -> None:
    """Keys that no sample has, and the least and the largest of the dtype, too."""
    chance, bounds = np.random.default_rng(seed), np.iinfo(dtype)
    keys = chance.integers(bounds.min, bounds.max, 3000, dtype, endpoint=True)
    sample: NDArray[Any] = keys[:1000] >> np.array(min(narrower, bounds.bits - 1), dtype)
    ranges = KeyRanges.of_sample(sample, count)
    keys[:2] = bounds.min, bounds.max
    numbers = numbered(np.sort(keys), ranges)
    assert (np.diff(numbers.astype(int)) >= 0).all()


def test_ranges_have_about_equally_many_rows_where_keys_do_not_lie_evenly() -> None:
    keys = (np.random.default_rng(1).random(50_000) ** 2 * 2**40).astype(np.int64)
    counts = np.bincount(numbered(keys, KeyRanges.of_sample(keys[:8000], 32)), minlength=32)
    assert counts.max() < 3 * keys.size / 32


def source_of(keys: NDArray[Any]) -> KeyedSource:
    values = np.ones(keys.size, np.float32)
    return keyed_arrays([("k", ArraySource(keys), "by")], [("v", ArraySource(values), "column")])


def keys_of(kind: str) -> NDArray[Any]:
    chance = np.random.default_rng(2)
    many = chance.integers(0, 1 << 20, ROWS)
    kinds: dict[str, NDArray[Any]] = {
        "many": many,
        "few groups": many % 1000,
        "few rows": many[:-1],
        "sorted": np.arange(ROWS) // 8,
        "one key of half of the rows": np.where(chance.random(ROWS) < 0.5, 7, many),
        "one key far from all": np.append(many[:-1], 1 << 60),
        "truth values": many < 0,
    }
    return kinds[kind]


@pytest.mark.parametrize(
    "kind", ["few groups", "few rows", "sorted", "one key of half of the rows", "one key far from all", "truth values"]
)
def test_other_keys_have_no_ranges(kind: str) -> None:
    assert ranges_for(source_of(keys_of(kind)), GroupPlan(SUM)) is None


def test_many_groups_have_ranges_unless_the_plan_needs_the_order_of_the_rows() -> None:
    source = source_of(keys_of("many"))
    assert ranges_for(source, GroupPlan(SUM)) is not None
    for plan in (
        GroupPlan(SUM, sort=False),
        GroupPlan(SUM, nan_policy=NanPolicy.RAISE),
        GroupPlan((*SUM, Aggregation(OPS["argmin"], 0, "where"))),
    ):
        assert ranges_for(source, plan) is None


def test_fewer_groups_have_ranges_where_each_has_more_sums() -> None:
    source = source_of(np.random.default_rng(3).integers(0, 100_000, ROWS))
    assert ranges_for(source, GroupPlan(SUM)) is None
    assert ranges_for(source, GroupPlan((Aggregation(OPS["std"], 0, "std"),))) is not None
