"""Exact sums by key on the host: launches and device code, against exact states, group by group."""

import ctypes
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.gpu.adversarial import adversarial
from tests.support.kernels import on_host
from tests.support.kernels.grouped_on_host import host_array
from tests.support.kernels.keyed_on_host import SMALL_KEYED, HostKeyedGpu, keyed_cupy
from warpfold.kernels.cuda.keyed.sums import KeyedSums
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.exact.finish import value_of
from warpfold.kernels.exact.state import ExactState
from warpfold.kernels.ops import OPS, Terms

Array = NDArray[Any]
Add = Callable[..., KeyedSums]
ROWS = 700

# A GPU has all kinds (tests/gpu/test_keyed.py).
DATA = ("normal", "any finite", "special", "cancelling", "negative zeros", "all largest", "as wide as a window")


@pytest.fixture(scope="module")
def libraries() -> tuple[ctypes.CDLL, ctypes.CDLL]:
    if on_host.COMPILER is None or sys.platform != "linux":
        pytest.skip("needs g++ to build the device code for the host")
    return on_host.build_keyed(), on_host.build_grouped()


@pytest.fixture
def add(libraries: tuple[ctypes.CDLL, ctypes.CDLL], monkeypatch: pytest.MonkeyPatch) -> Add:
    """Sums of an array by keys."""
    monkeypatch.setitem(sys.modules, "cupy", keyed_cupy())

    def run(keys: Array, array: Array, *, omit_nan: bool = False) -> KeyedSums:
        gpu: Any = HostKeyedGpu(*libraries)
        key, dtype = DTYPES[keys.dtype.name], DTYPES[array.dtype.name]
        made = KeyedSums(gpu, host_array(keys), key, host_array(array), dtype, omit_nan=omit_nan, shapes=SMALL_KEYED)
        made.add()
        if made.strategy == "stream" and dtype.itemsize == 4 and made.levels == 1:
            used = "serial_sums" if key.itemsize == 4 else "stream_sums"  # where a block finds room, and where not
            assert any(name.startswith(used) for name in gpu.ran)
        return made

    return run


def check(made: KeyedSums, keys: Array, array: Array, *, omit_nan: bool = False) -> None:
    """Compare all keys and counts, and the bits of some groups."""
    groups = made.groups()
    known = np.unique(keys)
    assert groups.keys.get().tolist() == known.tolist()
    missing = np.isnan(array) if omit_nan else np.zeros(array.size, bool)
    assert groups.counts.get().tolist() == [int(((keys == key) & ~missing).sum()) for key in known]
    sums, means = (made.values(mean=mean).get() for mean in (False, True))
    for number in range(0, known.size, max(1, known.size // 4)):
        members = array[(keys == known[number]) & ~missing]
        if members.size:
            state = ExactState.empty(Terms.VALUES).add(np.ascontiguousarray(members))
            for op, values in (("sum", sums), ("mean", means)):
                wanted = float(value_of(OPS[op], [state], array.dtype.name))
                assert float(values[number]).hex() == wanted.hex(), (op, made.strategy, made.levels, number)


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_strategy_rounds_once(add: Add, dtype: str, data: str) -> None:
    random = np.random.default_rng(1)
    array = adversarial(data, DTYPES[dtype], ROWS, 1)
    strategies = set()
    for groups in (1, 7, 900, 20_000):
        keys = random.integers(-5, groups - 5, ROWS).astype(np.int32)
        for omit_nan, of in ((False, keys), (True, np.sort(keys))):
            made = add(of, array, omit_nan=omit_nan)
            check(made, of, array, omit_nan=omit_nan)
            strategies.add(re.sub(r"\d+_", "", made.strategy))
    if data == "normal":
        assert {"runs", "stream", "buckets", "by_buckets"} < strategies
        assert any("shared" in name for name in strategies)
    if data == "any finite":
        assert strategies <= {"sorted", "stream"}  # no levels hold them


def sizes_in_tiles() -> list[list[int]]:
    """Numbers of rows of groups, for tiles of 256 rows."""
    random = np.random.default_rng(5)
    return [
        [1] * 300,
        [256, 256, 1, 255, 1],  # groups end where tiles do
        [3, 1000, 2, 1],  # one lies in several tiles
        [700],
        [1],
        [255, 2, 255, 300],
        random.geometric(0.4, 300).tolist(),
    ]


@pytest.mark.parametrize("data", ["normal", "special", "negative zeros", "any finite", "cancelling"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sorted_groups_lie_in_tiles_as_they_please(add: Add, dtype: str, data: str) -> None:
    for number, sizes in enumerate(sizes_in_tiles()):
        keys = np.repeat(np.sort(np.random.default_rng(number).permutation(1 << 20)[: len(sizes)]), sizes) - 4000
        keys = keys.astype(np.int64 if dtype == "float32" and number % 2 else np.int32)
        array = adversarial(data, DTYPES[dtype], keys.size, number)
        made = add(keys, array)
        check(made, keys, array)
        if data == "normal":
            assert made.strategy == ("runs" if sizes == [700] else "stream"), sizes


@pytest.mark.parametrize("scale", [1e-45, 2.0**-126, 2.0**-100, 1.0, 1e37])
def test_sorted_groups_are_exact_at_both_ends_of_the_exponents(add: Add, scale: float) -> None:
    random = np.random.default_rng(6)
    whole = random.integers(-(1 << 20), 1 << 20, 1500).astype(np.float32)
    whole[::7] = 0.0
    whole[3::7] = -0.0
    array = np.clip(whole.astype(np.float64) * scale, -3.4e38, 3.4e38).astype(np.float32)
    for number, each in enumerate((1.3, 5, 90)):
        keys = np.cumsum(random.random(array.size) < 1 / each).astype(np.int64 if number == 1 else np.int32)
        made = add(keys, array)
        assert made.strategy == "stream" or each == 90
        check(made, keys, array)


def test_zeros_of_sorted_groups_keep_their_sign(add: Add) -> None:
    array = np.where(np.random.default_rng(7).random(1200) < 0.9, np.float32(-0.0), np.float32(0.0))
    keys = np.repeat(np.arange(300), 4).astype(np.int32)
    keys[500:620] = keys[500]  # in several threads
    keys = np.sort(keys)
    made = add(keys, array)
    assert made.strategy == "stream"
    signs = np.signbit(made.values().get())
    wanted = [bool(np.signbit(array[keys == key]).all()) for key in np.unique(keys)]
    assert signs.tolist() == wanted


def test_a_stream_that_holds_too_little_is_left_to_others(add: Add, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpfold.kernels.cuda.keyed.sample.SAMPLES", 7)
    keys = np.repeat(np.arange(300), 3).astype(np.int32)
    array = adversarial("normal", DTYPES["float32"], keys.size, 1)
    array[[5, 257, 511, 513, 898]] = np.inf, 1e30, -1e-40, np.nan, -0.0
    assert add(keys, array).strategy == "stream"
    check(add(keys, array), keys, array)
    made = add(keys, array, omit_nan=True)
    assert made.strategy == "runs"
    check(made, keys, array, omit_nan=True)
    monkeypatch.setattr("warpfold.kernels.cuda.keyed.stream.MOST_READ_AGAIN", 2)
    made = add(keys, array)
    assert made.strategy == "runs"
    check(made, keys, array)
    turned = np.where(np.arange(keys.size) % 128 < 2, keys, np.arange(keys.size) % 2).astype(np.int32)
    made = add(turned, array)  # more changes of keys than there can be groups
    assert made.strategy not in ("stream", "runs")
    check(made, turned, array)
    turned = keys.copy()
    turned[257] = 400
    made = add(turned, array)
    assert made.strategy not in ("stream", "runs")
    check(made, turned, array)


@pytest.mark.parametrize("key", ["int8", "uint32", "int64", "uint64", "bool"])
def test_keys_reach_to_the_ends_of_their_dtype(add: Add, key: str) -> None:
    array = adversarial("normal", DTYPES["float32"], ROWS, 1)
    random = np.random.default_rng(2)
    if key == "bool":
        keys = random.random(ROWS) < 0.3
        check(add(keys, array), keys, array)
        return
    dtype: Any = DTYPES[key].numpy
    ends = np.iinfo(dtype)
    near = random.integers(0, 9, ROWS)
    apart = np.where(near % 2, dtype.type(ends.max), dtype.type(0))
    for keys in (ends.max - near.astype(dtype), ends.min + near.astype(dtype), apart):
        check(add(keys, array), keys, array)


def test_keys_that_only_look_sorted_are_added_all_the_same(add: Add, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpfold.kernels.cuda.keyed.sample.SAMPLES", 7)
    array = adversarial("normal", DTYPES["float32"], ROWS, 1)
    keys = np.sort(np.random.default_rng(2).integers(0, 40, ROWS)).astype(np.int32)
    assert add(keys, array).strategy == "runs"
    for edge in (256, 301, 302):  # where warps meet, and elsewhere
        turned = np.concatenate([keys[edge:], keys[:edge]])
        turned[0], turned[-1] = 0, 40
        made = add(turned, array)
        assert made.strategy != "runs"
        check(made, turned, array)


def test_what_a_sample_does_not_show_is_added_all_the_same(add: Add, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpfold.kernels.cuda.keyed.sample.SAMPLES", 7)
    array = adversarial("normal", DTYPES["float32"], ROWS, 1)
    keys = np.zeros(ROWS, np.int32)
    keys[1::2] = 3
    keys[77], keys[78] = 4000, -50
    made = add(keys, array)
    check(made, keys, array)
    array[101:103] = 1e38, 1e-40
    made = add(keys % 3, array)
    check(made, keys % 3, array)


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint32", "uint64", "bool"])
def test_integers_are_added_in_128_bits(add: Add, dtype: str) -> None:
    random = np.random.default_rng(3)
    held: Any = DTYPES[dtype].numpy
    if dtype == "bool":
        array = random.random(ROWS) < 0.5
    else:
        ends = np.iinfo(held)
        array = random.integers(ends.min, ends.max, ROWS, held, endpoint=True)
        array[:300] = ends.max
    for groups in (1, 900):
        keys = random.integers(0, groups, ROWS).astype(np.int32)
        for of in (keys, np.sort(keys)):
            made = add(of, array)
            known = made.groups().keys.get()
            low, high = made.values()
            sums = [int(a) + (int(b) << 64) for a, b in zip(low.get(), high.get(), strict=True)]
            assert sums == [sum(map(int, array[of == key].tolist())) for key in known]


def test_no_rows_make_no_groups(add: Add) -> None:
    made = add(np.zeros(0, np.int32), np.zeros(0, np.float32))
    assert made.strategy == "none"
    assert not made.groups().keys.size
