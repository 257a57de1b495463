"""Records of groups within flox hold exact sums, or say that they do not."""

from fractions import Fraction
from typing import Any

import dask.array as da
import flox
import numpy as np
import pytest
from numpy.typing import NDArray

from warpfold.engines import flox as exact
from warpfold.engines import flox_records, flox_values
from warpfold.engines.flox_parts import count_of, state
from warpfold.engines.flox_records import RECORD
from warpfold.kernels.cpu.grouped.partial import PartialResults
from warpfold.kernels.dtypes import DTYPES, dtype_of
from warpfold.kernels.ops import Terms

Array = NDArray[Any]


def records_of(array: Array, op: str = "sum") -> Array | None:
    """The sums of the rows; None where records do not hold them."""
    made = np.zeros(len(array), RECORD)
    counts = np.full(len(array), array.shape[1])
    sums = PartialResults.of(array, (1,), op).sums[0]
    return made if flox_records.put(made, sums, counts, dtype_of(array.dtype)) else None


def values_of(records: Array) -> list[Fraction]:
    """The sums, by the Python integers that they are beside others."""
    units = [state(part, Terms.VALUES).units if part else 0 for part in flox_values.as_integers(records).ravel()]
    return [Fraction(unit) / 2**1074 for unit in units]


def exactly(array: Array) -> list[Fraction]:
    return [sum(map(Fraction, row.tolist()), Fraction(0)) for row in array]


def rows_of(seed: int, dtype: str, binades: int, rows: int = 40, length: int = 7) -> Array:
    """Rows of elements whose exponents differ by up to `binades`."""
    random = np.random.default_rng(seed)
    scaled = random.standard_normal((rows, length)) * 2.0 ** random.integers(-binades, 1, (rows, length))
    return scaled.astype(dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("binades", [0, 10, 24])
def test_records_are_exact_sums(dtype: str, binades: int) -> None:
    array = rows_of(binades, dtype, binades)
    records = records_of(array)
    assert records is not None
    assert values_of(records) == exactly(array)
    assert {count_of(part) for part in flox_values.as_integers(records)} == {7}


def test_sums_of_exponents_that_are_far_apart_have_no_records() -> None:
    array = np.array([[1.0, 2.0**-200]] * 3)
    assert records_of(array) is None


@pytest.mark.parametrize(
    ("scales", "held"),
    [((0, 0), True), ((0, -6), True), ((-200, -190), True), ((0, -40), False), ((30, -20), False), ((0, -60), False)],
)
def test_records_of_any_windows_are_merged_exactly_or_not_at_all(scales: tuple[int, int], held: bool) -> None:
    arrays = [rows_of(at, "float64", 3) * 2.0**scale for at, scale in enumerate(scales)]
    parts = [records_of(array) for array in arrays]
    assert all(part is not None for part in parts)
    stacked = np.stack([part for part in parts if part is not None])
    wanted = exactly(np.concatenate(arrays, axis=1))
    merged = flox_records.merged(stacked, 0, keepdims=False)
    if merged is not None:
        assert values_of(merged) == wanted
    assert (merged is not None) == held
    together = flox_values.as_integers(stacked).sum(axis=0)
    assert [Fraction(state(part, Terms.VALUES).units) / 2**1074 for part in together] == wanted


@pytest.mark.parametrize("apart", [1, 16, 30, 51])
def test_records_of_windows_that_are_near_each_other_are_moved_to_the_lower_one(apart: int) -> None:
    random = np.random.default_rng(11)
    records = np.zeros((3, 50), RECORD)
    records["upper"] = random.integers(-(1 << 7), 1 << 7, (3, 50))
    records["lower"], records["count"] = random.integers(0, 1 << 51, (3, 50)), 1
    records["flags"] = 8  # some element is not −0
    records["unit"] = random.choice([-apart, 0], (3, 50))
    records[1, :20] = np.zeros((), RECORD)
    merged = flox_records.merged(records, 0, keepdims=False)
    assert merged is not None
    values = values_of(records)
    assert values_of(merged) == [values[at] + values[50 + at] + values[100 + at] for at in range(50)]
    assert ((merged["lower"] >= 0) & (merged["lower"] < 1 << 51)).all()


def test_records_of_groups_are_merged_and_those_without_elements_add_nothing() -> None:
    array, numbers = rows_of(5, "float64", 9), np.random.default_rng(6).integers(0, 5, 40)
    records = records_of(array)
    assert records is not None
    records[3] = np.zeros((), RECORD)
    merged = flox_records.merged_groups(numbers, records, 6)
    assert merged is not None
    sums = exactly(array)
    sums[3] = Fraction(0)
    wanted = [
        sum((value for value, at in zip(sums, numbers, strict=True) if at == group), Fraction(0)) for group in range(6)
    ]
    assert values_of(merged) == wanted
    assert merged["count"].tolist() == [
        7 * int(((numbers == group) & (np.arange(40) != 3)).sum()) for group in range(6)
    ]
    assert merged[5] == np.zeros((), RECORD)


def test_upper_sums_that_may_leave_64_bits_are_not_merged() -> None:
    records = np.zeros(600, RECORD)
    records["upper"], records["count"] = (1 << 60) - 1, 1
    assert flox_records.merged(records[:1], 0, keepdims=False) is not None
    assert flox_records.merged(records, 0, keepdims=False) is None
    assert flox_records.merged_groups(np.zeros(600, np.intp), records, 1) is None


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
@pytest.mark.parametrize("counts", ["one", "many"])
def test_sums_and_means_are_rounded_once(dtype: str, counts: str) -> None:
    row = DTYPES[dtype]
    array = rows_of(7, "float64", 12, rows=400, length=5)
    records = records_of(array)
    assert records is not None
    if counts == "many":
        records["count"] = 1 + np.arange(400) % 37
    for mean in (False, True):
        values = flox_values.rounded(records, row, np.nan, mean=mean)
        assert values is not None
        for value, total, count in zip(values.tolist(), exactly(array), records["count"].tolist(), strict=True):
            wanted = total / count if mean else total
            near = row.numpy.type(value)
            steps = [np.nextafter(near, row.numpy.type(towards)) for towards in (-np.inf, np.inf)]
            distance = abs(Fraction(value) - wanted)
            assert all(distance <= abs(Fraction(float(step)) - wanted) for step in steps)


def test_integers_fit_their_dtype_or_are_left_to_others() -> None:
    for dtype, most in (("int64", np.iinfo(np.int64).max), ("uint64", np.iinfo(np.uint64).max)):
        array = np.array([[most, 0], [most - 1, 1], [1, 2]], dtype)
        records = records_of(array)
        assert records is not None
        values = flox_values.whole(records, np.dtype(dtype))
        assert values is not None
        assert values.tolist() == [most, most, 3]
        too_large = records_of(np.array([[most, 1]], dtype))
        assert too_large is not None
        assert flox_values.whole(too_large, np.dtype(dtype)) is None
    least = records_of(np.array([[np.iinfo(np.int64).min, 0]]))
    assert least is not None
    values = flox_values.whole(least, np.dtype(np.int64))
    assert values is not None
    assert values.tolist() == [np.iinfo(np.int64).min]


@pytest.mark.parametrize("method", ["map-reduce", "cohorts"])
@pytest.mark.parametrize("rows", [2, 40])
@pytest.mark.parametrize("func", ["sum", "nansum", "mean", "norm1"])
def test_blocks_with_and_without_records_are_merged(func: str, rows: int, method: Any) -> None:
    array = np.random.default_rng(8).standard_normal((rows, 90))
    array[1, 31] = 1e-300
    array[0, 61] = np.inf
    by = np.random.default_rng(9).integers(0, 30, 90).astype(float)
    by[:10] = np.nan  # a block without labels
    whole = flox.groupby_reduce(array, by, func=getattr(exact, func))[0]
    for size in (10, 30):
        cut = da.from_array(array, chunks=(rows, size))
        lazy = flox.groupby_reduce(cut, by, func=getattr(exact, func), method=method)[0]
        assert lazy.compute(scheduler="synchronous").tobytes() == whole.tobytes()


def test_one_element_a_group_and_block_keeps_its_bits() -> None:
    array = np.random.default_rng(10).standard_normal((50, 24)).astype(np.float32)
    array[7, 5] = -0.0
    by = np.arange(24) % 12
    for size in (1, 12):
        cut = da.from_array(array[:, :12], chunks=(50, size))
        values = flox.groupby_reduce(cut, by[:12], func=exact.sum)[0].compute(scheduler="synchronous")
        assert values.tobytes() == array[:, :12].tobytes()
