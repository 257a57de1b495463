"""The bands in which squares are added, on the host: nothing rounds or overflows, inside and at their edges."""

import ctypes
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.support.gpu.adversarial import adversarial
from tests.support.kernels import on_host
from tests.support.kernels.exact_on_host import portable
from warpfold.kernels.cuda.exact import SumKind, limbs_of, states_of_limbs
from warpfold.kernels.dtypes import DTYPES, DType

Array = NDArray[Any]
Band = tuple[str, SumKind, int]
"""Dtype, terms and choice."""

LANES, BLOCKS = 32, 2
BANDS: dict[Band, int] = {  # how many exponent fields it has
    ("float32", SumKind.SQUARES, 1): 128,
    ("float32", SumKind.MOMENTS, 1): 72,
    ("float32", SumKind.MOMENTS, 2): 120,
    ("float64", SumKind.SQUARES, 0): 112,
    ("float64", SumKind.MOMENTS, 0): 88,
}


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    if on_host.COMPILER is None or sys.platform != "linux":
        pytest.skip("needs g++ to build the device code for the host")
    return on_host.build_exact()


def agree(library: ctypes.CDLL, band: Band, array: Array) -> bool:
    """Whether tiles of both lengths add up to what the portable definition says."""
    (dtype, kind, choice) = band
    name, expected = f"{dtype} {choice}", portable(kind, array)
    totals = [on_host.exact(library, name, kind, (array,), limbs_of(kind), ahead=ahead) for ahead in (False, True)]
    return all(states_of_limbs(kind, total) == expected for total in totals)


def of_fields(dtype: DType, fields: Array, random: np.random.Generator, *, full: bool = False) -> Array:
    """Elements of these exponent fields; their fractions are empty, full or random, or all full."""
    word, places = np.dtype(f"u{dtype.itemsize}"), dtype.precision - 1
    last = (1 << places) - 1
    fractions = np.where(
        random.random(fields.size) < 0.5,
        random.choice([0, 1, last - 1, last], fields.size),
        random.integers(0, last, fields.size),
    )
    signs = random.integers(0, 2, fields.size).astype(word) << word.type(8 * dtype.itemsize - 1)
    kept = np.full(fields.size, last) if full else fractions
    array: Array = (fields.astype(word) << word.type(places) | kept.astype(word) | signs).view(dtype.numpy)
    return array


@pytest.mark.parametrize("band", BANDS)
@pytest.mark.parametrize("by", [-1, 0, 1])
def test_a_band_holds_what_it_admits_wherever_it_lies(library: ctypes.CDLL, band: Band, by: int) -> None:
    row, width = DTYPES[band[0]], BANDS[band]
    most = 2 * row.max_exponent - 2  # the largest field of a finite number
    for lowest in {0, 1, 2, 7, most // 2, most - width - 13, most - width, most - width - by + 1}:
        random = np.random.default_rng(lowest)
        fields = random.integers(lowest, min(lowest + width + by, most + 1), 7001)
        fields[:2] = lowest, min(lowest + width + by - 1, most)
        assert agree(library, band, of_fields(row, fields, random)), lowest


@pytest.mark.parametrize("band", BANDS)
def test_buckets_are_emptied_before_they_overflow(library: ctypes.CDLL, band: Band) -> None:
    """All of a thread's elements go to one bucket, and are its largest."""
    row, width = DTYPES[band[0]], BANDS[band]
    size, random = LANES * BLOCKS * 5000, np.random.default_rng(3)
    first = row.max_exponent - 1 - width // 2  # of the band around 1
    for field in (first + 3, first + width - 1):
        fields = np.full(size, field)
        fields[: 4 * LANES * BLOCKS] = first + np.arange(4 * LANES * BLOCKS) % width  # the band's place
        assert agree(library, band, of_fields(row, fields, random, full=True)), field
        assert agree(library, band, np.abs(of_fields(row, fields, random, full=True))), field


@pytest.mark.parametrize("band", BANDS)
@pytest.mark.parametrize("step", [1, 40, 200])
def test_bands_follow_the_data(library: ctypes.CDLL, band: Band, step: int) -> None:
    row, random = DTYPES[band[0]], np.random.default_rng(step)
    most = 2 * row.max_exponent - 2
    centres = np.repeat(np.arange(0, 40) * step % most, 700)
    fields = np.clip(centres + random.integers(-8, 9, centres.size), 0, most)
    array = of_fields(row, fields, random)
    assert agree(library, band, array)
    assert agree(library, band, np.sort(array))


@settings(deadline=None, max_examples=60)
@given(
    band=st.sampled_from(list(BANDS)),
    far=st.sampled_from([0.0, 0.001, 0.05, 0.9]),
    marked=st.sampled_from(["zeros", "any bits", "subnormal", "largest"]),
    size=st.integers(1, 9000),
    seed=st.integers(0, 1 << 30),
)
def test_elements_outside_are_added_too(  # noqa: PLR0917
    library: ctypes.CDLL, band: Band, far: float, marked: str, size: int, seed: int
) -> None:
    row, random = DTYPES[band[0]], np.random.default_rng(seed)
    array = np.exp(5 * random.standard_normal(size)).astype(row.numpy) * random.choice([-1, 1], size).astype(row.numpy)
    outside = random.random(size) < far
    bits = random.integers(0, 256, int(outside.sum()) * row.itemsize, np.uint8).view(row.numpy)
    array[outside] = {
        "zeros": np.resize(np.array([0.0, -0.0], row.numpy), bits.size),
        "any bits": bits,
        "subnormal": np.full(bits.size, 2.0**row.min_exponent).astype(row.numpy),
        "largest": -np.abs(adversarial("all largest", row, bits.size)),
    }[marked]
    assert agree(library, band, array)
