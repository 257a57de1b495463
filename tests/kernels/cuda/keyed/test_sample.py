"""What a sample says of keys and elements: the device code on the host, against exact integers."""

import ctypes
import math
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.kernels import on_host
from tests.support.kernels.grouped_on_host import host_array
from tests.support.kernels.keyed_on_host import HostKeyedGpu, keyed_cupy
from warpfold.kernels.cuda.keyed.sample import KeyedSample
from warpfold.kernels.cuda.keyed.shapes import PLACE_BINS
from warpfold.kernels.dtypes import DTYPES

Array = NDArray[Any]


@pytest.fixture(scope="module")
def libraries() -> tuple[ctypes.CDLL, ctypes.CDLL]:
    if on_host.COMPILER is None or sys.platform != "linux":
        pytest.skip("needs g++ to build the device code for the host")
    return on_host.build_keyed(), on_host.build_grouped()


def seen(libraries: tuple[ctypes.CDLL, ctypes.CDLL], keys: Array, values: Array) -> KeyedSample:
    gpu: Any = HostKeyedGpu(*libraries)
    return KeyedSample.of(gpu, host_array(keys), DTYPES[keys.dtype.name], host_array(values), DTYPES[values.dtype.name])


def places_of(values: Array) -> tuple[int, list[int]]:
    """The place above the highest bit of any finite element, and how many have their lowest bit in each eight."""
    top, bins = 0, [0] * PLACE_BINS
    for value in values[np.isfinite(values) & (values != 0)].tolist():
        whole = abs(int(Fraction(value) * 2**1074))
        top = max(top, whole.bit_length())
        bins[((whole & -whole).bit_length() - 1) // 8] += 1
    return top, bins


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", [1, 31, 33, 257, 1000])
def test_every_row_of_few_is_counted_once(
    libraries: tuple[ctypes.CDLL, ctypes.CDLL], monkeypatch: pytest.MonkeyPatch, rows: int, dtype: str
) -> None:
    """The last row is looked at a second time, as the end of any sample is."""
    monkeypatch.setitem(sys.modules, "cupy", keyed_cupy())
    random = np.random.default_rng(rows)
    values = (random.normal(size=rows) * 2.0 ** random.integers(-140, 120, rows)).astype(dtype)
    special = (0.0, -0.0, math.inf, math.nan, float(np.finfo(dtype).smallest_subnormal), float(np.finfo(dtype).max))
    values[: len(special)] = np.array(special, dtype)[:rows]
    keys = np.sort(random.integers(-(1 << 31), 1 << 31, rows)).astype(np.int32)
    sample = seen(libraries, keys, values)
    top, bins = places_of(np.append(values, values[-1]))
    assert sample.top == top
    assert sample.places.tolist() == bins
    assert (sample.reach.least, sample.reach.range) == (int(keys[0]), int(keys[-1]) - int(keys[0]) + 1)
    assert sample.reach.sorted


def test_one_fall_among_many_keys_is_noticed(
    libraries: tuple[ctypes.CDLL, ctypes.CDLL], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cupy", keyed_cupy())
    for at in (0, 31, 32, 255, 256, 998):
        keys = np.arange(1000, dtype=np.int64)
        keys[at], keys[at + 1] = keys[at + 1], keys[at]
        assert not seen(libraries, keys, np.ones(1000, np.float32)).reach.sorted, at
