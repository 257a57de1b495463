"""Exact sums by key on a GPU, against exact integers; memory that is not written first reads as all ones."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from tests.support.gpu.accumulators import on_device
from tests.support.gpu.adversarial import ADVERSARIAL, adversarial
from warpfold.kernels.catalog import keyed_backends
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.cuda.backend import CudaBackend
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.keyed import KeyedSums
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.exact.rounding import round_ratio
from warpfold.kernels.formats.keyed_arrays import keyed_arrays
from warpfold.kernels.ops import OPS, NanPolicy, op_named
from warpfold.kernels.parts.keyed import Aggregation, GroupPlan
from warpfold.kernels.source import ArraySource, GeneratedSource

Array = NDArray[Any]
ROWS = 120_007
CHECKED = 400  # groups, spread over all


def integers_of(array: Array) -> tuple[list[int], int]:
    """The finite elements as integers, others as 0, and the power of two that they count."""
    if array.dtype.kind != "f":
        return [int(x) for x in array.tolist()], 0
    fractions, exponents = np.frexp(np.where(np.isfinite(array), array, 0).astype(np.float64))
    unit = int(exponents.min(initial=0)) - 53
    pairs = zip(np.ldexp(fractions, 53).astype(np.int64).tolist(), (exponents - 53 - unit).tolist(), strict=True)
    return [significand << shift for significand, shift in pairs], unit


def value_of(members: Array, numbers: list[int], unit: int, *, mean: bool, dtype: DType) -> float:
    """The sum or the mean of members, whose finite elements are numbers · 2**unit."""
    if members.dtype.kind == "f" and not np.isfinite(members).all():
        with np.errstate(invalid="ignore"):
            return float(members[~np.isfinite(members)].astype(np.float64).sum())
    if (
        members.dtype.kind == "f"
        and (members.view(f"i{members.itemsize}") == np.iinfo(f"i{members.itemsize}").min).all()
    ):
        return -0.0
    return round_ratio(sum(numbers), members.size if mean else 1, unit, dtype)


def compare(gpu: Gpu, keys: Array, values: Array, *, omit_nan: bool = False, start: int = 0) -> KeyedSums:
    """The sums on the GPU, once all keys and counts, and every bit of many groups, were compared."""
    key, dtype = DTYPES[keys.dtype.name], DTYPES[values.dtype.name]
    made = KeyedSums(gpu, on_device(keys, start), key, on_device(values, start), dtype, omit_nan=omit_nan)
    made.add()
    groups = made.groups()
    order = np.argsort(keys, kind="stable")
    wanted, firsts, sizes = np.unique(keys[order], return_index=True, return_counts=True)
    assert np.array_equal(groups.keys.get(), wanted.astype(groups.keys.dtype)), made.strategy
    missing = np.isnan(values) if omit_nan else np.zeros(values.size, bool)
    omitted = np.add.reduceat(missing[order].astype(np.int64), firsts)
    assert np.array_equal(groups.counts.get(), sizes - omitted), made.strategy
    if groups.omitted is not None:
        assert np.array_equal(groups.omitted.get(), omitted), made.strategy
    numbers, unit = integers_of(values)
    for mean in (False, True):
        result = dtype if dtype.is_float else DTYPES["float64"]
        if dtype.is_float or mean:
            listed = made.values(mean=mean).get().tolist()
        else:
            low, high = made.values()
            listed = [int(a) + (int(b) << 64) for a, b in zip(low.get(), high.get(), strict=True)]
        for number in sorted({*np.linspace(0, wanted.size - 1, CHECKED).astype(int).tolist()}):
            rows = order[firsts[number] : firsts[number] + sizes[number]]
            rows = rows[~missing[rows]]
            if not rows.size:
                continue
            mine = [numbers[row] for row in rows.tolist()]
            if dtype.is_float or mean:
                value = value_of(values[rows], mine, unit, mean=mean, dtype=result)
                assert float(listed[number]).hex() == value.hex(), (made.strategy, made.levels, mean, number)
            else:
                assert listed[number] == sum(mine), (made.strategy, number)
    return made


@pytest.mark.parametrize("data", ADVERSARIAL)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_random_keys(gpu: Gpu, dtype: str, data: str) -> None:
    random = np.random.default_rng(len(data))
    for number, groups in enumerate((1, 5, 700, 9000, 50_000, 3_000_000)):
        keys = random.integers(-7, groups - 7, ROWS).astype(np.int32 if number % 2 else np.int64)
        array = adversarial(data, DTYPES[dtype], ROWS, number)
        made = compare(gpu, keys, array, omit_nan=number % 3 == 1, start=number % 4)
        if data == "normal":
            strategies = ("memory", "copies", "copies", "memory", "buckets", "buckets")
            assert number == 0 or strategies[number] in made.strategy or made.levels > 1, made.strategy


@pytest.mark.parametrize(
    "data", ["normal", "any finite", "special", "negative zeros", "cancelling", "as wide as a window"]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_keys_in_runs(gpu: Gpu, dtype: str, data: str) -> None:
    random = np.random.default_rng(3)
    array = adversarial(data, DTYPES[dtype], ROWS, 9)
    for groups in (1, 3, 500, 3000):
        keys = np.sort(random.integers(0, groups, ROWS)).astype(np.int32)
        made = compare(gpu, keys, array, omit_nan=groups == 3)
        assert made.strategy in ("runs", "stream", "sorted")
    keys[ROWS // 2] = 1  # no sample sees it
    compare(gpu, keys, array)
    giant = np.where(random.random(ROWS) < 0.999, 4, random.integers(0, 100_000, ROWS)).astype(np.int32)
    compare(gpu, giant, array)
    compare(gpu, np.sort(giant), array)


@pytest.mark.parametrize("data", ["normal", "any finite", "special", "negative zeros", "cancelling", "lognormal"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_many_sorted_groups(gpu: Gpu, dtype: str, data: str) -> None:
    random = np.random.default_rng(4)
    for number, each in enumerate((1, 2.7, 40, 400)):
        sizes = random.geometric(1 / each, int(ROWS / each)) if each > 1 else np.ones(ROWS, np.int64)
        sizes[sizes.size // 2] = 30_000  # in several tiles
        steps = random.integers(1, 9, sizes.size)
        keys = np.repeat(np.cumsum(steps) - 500, sizes).astype(np.int32 if number % 2 else np.int64)
        made = compare(
            gpu, keys, adversarial(data, DTYPES[dtype], keys.size, number), omit_nan=number == 3, start=number
        )
        assert data != "normal" or made.strategy == "stream"


def test_keys_that_only_look_sorted(gpu: Gpu) -> None:
    keys = np.arange(4 << 20, dtype=np.int32) // 16
    array = adversarial("normal", DTYPES["float32"], keys.size, 9)
    keys[12_345] = 7  # no sample sees it
    compare(gpu, keys, array)
    turned = np.where(np.arange(keys.size) % 64 < 2, keys, keys // 16 * 16 + np.arange(keys.size) % 2).astype(np.int32)
    compare(gpu, turned, array)  # more changes of keys than there can be groups


@pytest.mark.parametrize("key", [name for name, row in DTYPES.items() if not row.is_float])
def test_keys_of_every_dtype_reach_to_their_ends(gpu: Gpu, key: str) -> None:
    random = np.random.default_rng(5)
    dtype: Any = DTYPES[key].numpy
    array = adversarial("normal", DTYPES["float32"], 20_011, 9)
    if key == "bool":
        compare(gpu, random.random(array.size) < 0.3, array)
        return
    ends = np.iinfo(dtype)
    near = random.integers(0, 100, array.size)
    for keys in (ends.max - near.astype(dtype), ends.min + near.astype(dtype)):
        compare(gpu, keys.astype(dtype), array)
    compare(gpu, np.where(near % 2 == 0, dtype.type(ends.min), dtype.type(ends.max)), array)


@pytest.mark.parametrize("dtype", [name for name, row in DTYPES.items() if not row.is_float])
def test_integers(gpu: Gpu, dtype: str) -> None:
    random = np.random.default_rng(6)
    if dtype == "bool":
        array = random.random(ROWS) < 0.5
    else:
        held: Any = DTYPES[dtype].numpy
        ends = np.iinfo(held)
        array = random.integers(ends.min, ends.max, ROWS, held, endpoint=True)
        array[:50_000] = ends.max
    for groups in (1, 900, 60_000):
        keys = random.integers(0, groups, ROWS).astype(np.int32)
        compare(gpu, keys, array)
    compare(gpu, np.sort(keys % 1000), array)


def test_what_a_sample_does_not_show(gpu: Gpu) -> None:
    array = adversarial("normal", DTYPES["float32"], 1 << 20, 9)
    keys = np.zeros(array.size, np.int32)
    keys[1::2] = 3
    keys[77], keys[78] = 1_000_000, -5
    compare(gpu, keys, array)
    array[1001:1003] = 1e38, 1e-40
    compare(gpu, keys % 100, array)
    array[5_001:205_001] = adversarial("any finite", DTYPES["float32"], 200_000, 9)
    compare(gpu, keys % 100, array)


def test_no_order_shows(gpu: Gpu) -> None:
    random = np.random.default_rng(8)
    array = adversarial("lognormal", DTYPES["float32"], ROWS, 9)
    keys = random.integers(0, 2000, ROWS).astype(np.int32)
    order = random.permutation(ROWS)
    first, second = compare(gpu, keys, array), compare(gpu, keys[order], array[order])
    assert first.values().get().tobytes() == second.values().get().tobytes()


@pytest.mark.parametrize("policy", [NanPolicy.PROPAGATE, NanPolicy.OMIT])
def test_a_backend_makes_the_table_of_a_cpu(backend: CudaBackend, policy: NanPolicy) -> None:
    random = np.random.default_rng(9)
    array = adversarial("special", DTYPES["float32"], ROWS, 1)
    served = [op for op in OPS.values() if "cuda" in keyed_backends(op, DTYPES["float32"])]
    aggregations = tuple(Aggregation(op, 0, op.name) for op in served)
    numbers = random.integers(-7, 3000, ROWS).astype(np.int32)
    words = pa.array([None if number % 5 == 4 else f"w{number % 97}" for number in numbers.tolist()])
    for keys in (ArraySource(numbers), words):
        source = keyed_arrays([("k", keys, "by.0")], [("x", ArraySource(array), "aggregations.0")])
        plan = GroupPlan(aggregations, nan_policy=policy, sort=policy is NanPolicy.OMIT, min_count=2)
        made, wanted = (on.group_by(source, plan) for on in (backend, CpuBackend()))
        assert made.keys[0].to_pylist() == wanted.keys[0].to_pylist()
        assert (made.sizes.tolist(), made.dropped) == (wanted.sizes.tolist(), wanted.dropped)
        for mine, theirs in zip(made.columns, wanted.columns, strict=True):
            assert mine.counts.tolist() == theirs.counts.tolist(), mine.op
            assert list(map(repr, mine.listed())) == list(map(repr, theirs.listed())), mine.op


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32"])
def test_a_backend_gives_the_states_of_a_cpu(backend: CudaBackend, dtype: str) -> None:
    random = np.random.default_rng(10)
    row = DTYPES[dtype]
    array = adversarial("any finite", row, 20_011, 1) if row.is_float else random.integers(-(1 << 31), 1 << 31, 20_011)
    array = array.astype(row.numpy) if dtype == "int32" else array
    keys = ArraySource(np.sort(random.integers(-7, 900, array.size)).astype(np.int32))
    source = keyed_arrays([("k", keys, "by.0")], [("x", ArraySource(array), "aggregations.0")])
    asked = tuple(Aggregation(op_named(op), 0, op) for op in ("mean", "norm1", "norm2", "var"))
    plan = GroupPlan(asked, states=True)
    made, wanted = (on.group_by(source, plan) for on in (backend, CpuBackend()))
    assert made.described == wanted.described
    for mine, theirs in zip(made.columns, wanted.columns, strict=True):
        assert list(map(repr, mine.listed())) == list(map(repr, theirs.listed())), mine.op
        for state, their_state in zip(mine.states, theirs.states, strict=True):
            assert (state.data.tobytes(), state.offsets.tolist()) == (
                their_state.data.tobytes(),
                their_state.offsets.tolist(),
            )


def test_keys_and_elements_may_be_made_on_the_gpu(backend: CudaBackend) -> None:
    count = 1 << 20
    keys, elements = (
        GeneratedSource(name, count, 3, DTYPES[dtype]) for name, dtype in (("uniform", "int8"), ("normal", "float32"))
    )
    made = backend.group_by(
        keyed_arrays([("k", keys, "by.0")], [("x", elements, "aggregations.0")]),
        GroupPlan((Aggregation(op_named("sum"), 0, "x"),)),
    )
    read = keys.read(0, count), elements.read(0, count)
    for key, value in list(zip(made.keys[0].to_pylist(), made.columns[0].listed(), strict=True)):
        mine = read[1][read[0] == key]
        numbers, unit = integers_of(mine)
        assert value == round_ratio(sum(numbers), 1, unit, DTYPES["float32"])
