"""Groups that are reduced in ranges of keys: the same table, to the bit, as groups that threads merge."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.cpu.keyed import range_groups, ranges, reducing
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.keyed_arrays import keyed_arrays
from warpfold.kernels.ops import OPS, NanPolicy, Op
from warpfold.kernels.parts.keyed import Aggregation, GroupPlan, GroupTable, KeyedSource
from warpfold.kernels.source import ArraySource

ROWS = 20_001
OPS_OF = {
    "float32": ("sum", "std", "norm2", "norm1", "max", "count_nonzero"),
    "float64": ("sum", "var", "mean", "min"),
    "int64": ("sum", "std", "mean", "max", "any"),
    "uint8": ("sum", "sum_squares", "prod"),
    "float16": ("sum", "std"),
}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few thousand rows have ranges."""
    monkeypatch.setattr(ranges, "_LEAST_ROWS", 1 << 10)
    monkeypatch.setattr(ranges, "_LEAST_BYTES", 1 << 10)
    monkeypatch.setattr("warpfold.kernels.parts.keyed.PART_ROWS", 3_000)


def keys_of(dtype: str) -> NDArray[Any]:
    chance, bounds = np.random.default_rng(len(dtype)), np.iinfo(dtype)
    distinct = chance.integers(bounds.min, bounds.max, 2000, dtype, endpoint=True)
    return chance.choice(distinct, ROWS)


def values_of(dtype: str) -> NDArray[Any]:
    chance = np.random.default_rng(5)
    if not dtype.startswith("float"):
        bounds = np.iinfo(dtype)
        return chance.integers(bounds.min, bounds.max, ROWS, dtype, endpoint=True)
    with np.errstate(over="ignore"):
        values = (chance.standard_normal(ROWS) * np.exp(4 * chance.standard_normal(ROWS))).astype(dtype)
    values[chance.integers(0, ROWS, 50)] = -0.0
    values[chance.integers(0, ROWS, 6)] = [np.nan, np.inf, -np.inf, 0.0, np.finfo(dtype).max, np.finfo(dtype).tiny]
    return values


def source_of(keys: NDArray[Any], *columns: NDArray[Any]) -> KeyedSource:
    named = [(f"v{at}", ArraySource(column), "column") for at, column in enumerate(columns)]
    return keyed_arrays([("k", ArraySource(keys), "by")], named)


def plan_of(names: tuple[str, ...], column: int = 0) -> tuple[Aggregation, ...]:
    def asked(op: Op) -> Aggregation:
        return Aggregation(op, column, f"{op.name} {column}", 1 if op.ddof else 0)

    return tuple(asked(OPS[name]) for name in names)


def both(source: KeyedSource, plan: GroupPlan) -> tuple[GroupTable, GroupTable]:
    """The table that is made in ranges, and that of threads whose groups are merged."""
    backend = CpuBackend(8 << 20)
    assert ranges.ranges_for(source, plan) is not None
    in_ranges = backend.group_by(source, plan)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reducing, "ranges_for", lambda *_: None)
        return in_ranges, backend.group_by(source, plan)


def words(values: NDArray[Any]) -> list[int]:
    """Integers, or the patterns of floats, of which NaNs differ in no bit."""
    listed: list[int] = (values.view(np.int64) if values.dtype == np.float64 else values).tolist()
    return listed


def check_same(source: KeyedSource, plan: GroupPlan) -> None:
    in_ranges, merged = both(source, plan)
    assert in_ranges.keys[0].equals(merged.keys[0])
    assert in_ranges.described == merged.described
    assert in_ranges.sizes.tolist() == merged.sizes.tolist()
    assert in_ranges.dropped == merged.dropped == 0
    for mine, theirs in zip(in_ranges.columns, merged.columns, strict=True):
        assert words(mine.values) == words(theirs.values)
        assert mine.missing.tolist() == theirs.missing.tolist()
        assert mine.counts.tolist() == theirs.counts.tolist()
        for states, others in zip(mine.states, theirs.states, strict=True):
            assert states.array().equals(others.array())


@pytest.mark.parametrize("dtype", OPS_OF)
@pytest.mark.parametrize("key", ["int32", "uint64"])
def test_ranges_and_merged_threads_give_the_same_table(dtype: str, key: str) -> None:
    source = source_of(keys_of(key), values_of(dtype))
    check_same(source, GroupPlan(plan_of(OPS_OF[dtype])))
    check_same(source, GroupPlan(plan_of(("sum",)), nan_policy=NanPolicy.OMIT, min_count=9, states=True))


def test_several_columns_are_reduced_in_batches_that_memory_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(range_groups, "_LEAST_BATCH", 1)
    monkeypatch.setattr(range_groups, "_MOST_BYTES", 20 * 7_000)
    source = source_of(keys_of("int64"), values_of("float64"), values_of("float32"))
    assert len(range_groups._batches(source.whole)) == 4  # type: ignore[arg-type]
    check_same(source, GroupPlan((*plan_of(("std", "max")), *plan_of(("sum", "mean"), 1))))


def test_progress_rises_to_all_rows_and_may_stop_the_work() -> None:
    source, plan = source_of(keys_of("int32"), values_of("float32")), GroupPlan(plan_of(("sum",)))
    seen: list[tuple[int, int]] = []
    CpuBackend(8 << 20).group_by(source, plan, lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen)
    assert seen[-1] == (ROWS, ROWS)

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        CpuBackend(8 << 20).group_by(source, plan, stop)


def test_groups_of_all_ranges_count_towards_the_most_that_are_allowed() -> None:
    keys = keys_of("int32")
    source, groups = source_of(keys, values_of("float32")), np.unique(keys).size
    assert CpuBackend(8 << 20).group_by(source, GroupPlan(plan_of(("sum",)), max_groups=groups)).sizes.size == groups
    for most in (groups - 1, groups // 2):
        with pytest.raises(InvalidInput, match="were reached; max_groups") as refused:
            CpuBackend(8 << 20).group_by(source, GroupPlan(plan_of(("sum",)), max_groups=most))
        assert refused.value.field == "max_groups"


def test_too_many_groups_are_noticed_before_all_batches_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(range_groups, "_LEAST_BATCH", 1)
    monkeypatch.setattr(range_groups, "_MOST_BYTES", 12 * 5_000)
    source, seen = source_of(np.random.default_rng(3).permutation(ROWS), values_of("float32")), [0]
    with pytest.raises(InvalidInput, match="were reached"):
        CpuBackend(8 << 20).group_by(
            source, GroupPlan(plan_of(("sum",)), max_groups=4_000), lambda done, _: seen.append(done)
        )
    assert max(seen) < ROWS // 2


def test_integers_that_some_ranges_have_beyond_64_bits_are_whole() -> None:
    keys = np.arange(ROWS) // 2
    np.random.default_rng(1).shuffle(keys)
    values = np.where(keys > ROWS // 3, (1 << 63) - 1, -5)
    in_ranges, merged = both(source_of(keys, values), GroupPlan(plan_of(("sum", "sum_squares"))))
    for mine, theirs in zip(in_ranges.columns, merged.columns, strict=True):
        assert mine.values.tolist() == theirs.values.tolist()
        assert mine.values.dtype == theirs.values.dtype
