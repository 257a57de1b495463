"""Packed arrays: a value is that of the exact elements, stored · scale + offset, rounded once."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest

from tests.support.array_files import opened
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import round_ratio, round_sqrt
from warpfold.kernels.lowering.packed import Packed
from warpfold.kernels.ops import OPS
from warpfold.kernels.parts.grouping import AlongAxes, Segments
from warpfold.kernels.sources.sequential import shaped

h5py: Any = pytest.importorskip("h5py")

PACKINGS: dict[str, dict[str, Any]] = {
    "a scale": {"scale_factor": 0.01},
    "a scale of float32": {"scale_factor": np.float32(0.01)},
    "a negative scale": {"scale_factor": -0.1},
    "a scale that is an integer": {"scale_factor": np.int32(3)},
    "a tiny scale": {"scale_factor": 5e-324},
    "an offset": {"add_offset": 273.15},
    "both": {"scale_factor": 0.1, "add_offset": -273.15},
    "both, of two dtypes": {"scale_factor": np.float32(-0.3), "add_offset": np.float64(1e5)},
    "an array of one": {"scale_factor": np.array([0.25]), "add_offset": np.array([1e300])},
}
STORED = {
    "int16": np.array([[3, -7, 32767], [-32768, 0, 11]], "i2"),
    "uint8": np.array([[3, 7, 255], [0, 254, 11]], "u1"),
    "int64": np.array([[3, -7, (1 << 63) - 1], [-(1 << 63), 0, 11]], "i8"),
    "float32": np.array([[3.5, -7e-20, 1e30], [-1e30, 0, 0.1]], "f4"),
    "float64, big-endian": np.array([[3.5, -7e-20, 1e30], [-1e30, 0, 0.1]], ">f8"),
}

Exactly = Callable[[list[Fraction]], float]


def _near(true: Fraction) -> float:
    return round_ratio(true.numerator, true.denominator, 0, DTYPES["float64"])


def _root(true: Fraction) -> float:
    return round_sqrt(true.numerator, true.denominator, 0, DTYPES["float64"])


def _var(elements: list[Fraction]) -> Fraction:
    mean = sum(elements, Fraction()) / len(elements)
    return sum(((each - mean) ** 2 for each in elements), Fraction()) / len(elements)


def _squares(elements: list[Fraction]) -> Fraction:
    return sum((each * each for each in elements), Fraction())


TRUE: dict[str, Exactly] = {
    "sum": lambda elements: _near(sum(elements, Fraction())),
    "mean": lambda elements: _near(sum(elements, Fraction()) / len(elements)),
    "min": lambda elements: _near(min(elements)),
    "max": lambda elements: _near(max(elements)),
    "median": lambda elements: _near(median(elements)),
    "argmin": lambda elements: elements.index(min(elements)),
    "argmax": lambda elements: elements.index(max(elements)),
    "sum_squares": lambda elements: _near(_squares(elements)),
    "norm2": lambda elements: _root(_squares(elements)),
    "var": lambda elements: _near(_var(elements)),
    "std": lambda elements: _root(_var(elements)),
    "norm_inf": lambda elements: _near(max(map(abs, elements))),
    "norm1": lambda elements: _near(sum(map(abs, elements), Fraction())),
    "count_nonzero": lambda elements: sum(each != 0 for each in elements),
    "any": lambda elements: any(each != 0 for each in elements),
    "nunique": lambda elements: len(set(elements)),
    "all": lambda elements: all(each != 0 for each in elements),
}
OF_NO_OFFSET = ("norm1", "count_nonzero", "any", "all")


@pytest.fixture(scope="module")
def backend() -> CpuBackend:
    return CpuBackend()


def _written(root: Path, stored: Any, attributes: dict[str, Any], **how: Any) -> None:
    with h5py.File(root / "x.h5", "w") as file:
        file.create_dataset("x", data=stored, **how).attrs.update(attributes)


def _exact(stored: Any, attributes: dict[str, Any]) -> list[Fraction]:
    scale, offset = (np.ravel(attributes.get(name, default))[0] for name, default in _NEUTRAL.items())
    return [Fraction(each) * Fraction(float(scale)) + Fraction(float(offset)) for each in stored.ravel().tolist()]


_NEUTRAL = {"scale_factor": 1, "add_offset": 0}


@pytest.mark.parametrize("stored", STORED.values(), ids=STORED)
@pytest.mark.parametrize("attributes", PACKINGS.values(), ids=PACKINGS)
def test_every_op_is_that_of_the_exact_elements(
    data_root: Path, backend: CpuBackend, stored: Any, attributes: dict[str, Any]
) -> None:
    _written(data_root, stored, attributes, chunks=(1, 2))
    elements = _exact(stored, attributes)
    for op, true in TRUE.items():
        if op in OF_NO_OFFSET and "add_offset" in attributes:
            continue
        result = backend.reduce(opened(data_root, "x.h5"), op)
        assert (result.value, result.count, result.correctly_rounded) == (true(elements), 6, True), op
        assert result.dtype == OPS[op].result_dtype(DTYPES["float64"])


@pytest.mark.parametrize("stored", STORED.values(), ids=STORED)
@pytest.mark.parametrize("op", ["sum", "mean", "min", "argmin", "sum_squares", "std", "median"])
def test_values_along_axes_and_by_segments_are_those_of_the_exact_elements(
    data_root: Path, backend: CpuBackend, stored: Any, op: str
) -> None:
    attributes = PACKINGS["both, of two dtypes"]
    _written(data_root, stored, attributes)
    elements = np.array(_exact(stored, attributes), object).reshape(stored.shape)
    for axis in (0, 1):
        result = backend.reduce_groups(opened(data_root, "x.h5"), stored.shape, AlongAxes((axis,)), op)
        assert result.listed() == tuple(
            TRUE[op](list(run)) for run in np.moveaxis(elements, axis, -1).reshape(-1, stored.shape[axis])
        )
    source, shape = shaped(opened(data_root, "x.h5"), None)
    by_segments = backend.reduce_groups(source, shape, Segments((0, 4, 6), None), op)
    assert by_segments.listed() == tuple(TRUE[op](list(run)) for run in (elements.ravel()[:4], elements.ravel()[4:]))


def test_degrees_of_freedom_count_elements_that_are_not_null(data_root: Path, backend: CpuBackend) -> None:
    stored = np.array([1, 2, -9, 4], "i2")
    _written(data_root, stored, {"scale_factor": 0.1, "add_offset": 5.0, "_FillValue": np.int16(-9)})
    elements = _exact(np.delete(stored, 2), {"scale_factor": 0.1, "add_offset": 5.0})
    result = backend.reduce(opened(data_root, "x.h5"), "var", ddof=1)
    assert (result.value, result.count) == (_near(_var(elements) * 3 / 2), 3)
    with pytest.raises(InvalidInput, match="divides by n − ddof = 0") as caught:
        backend.reduce(opened(data_root, "x.h5"), "var", ddof=3)
    assert caught.value.field == "ddof"
    source = opened(data_root, "x.h5", null_policy="propagate")
    assert backend.reduce_groups(source, (4,), Segments((0, 1, 4), None), "var", ddof=1).listed()[0] is None
    with pytest.raises(InvalidInput, match="takes no ddof"):
        backend.reduce(opened(data_root, "x.h5"), "sum", ddof=1)


@pytest.mark.parametrize("op", ["prod", *OF_NO_OFFSET])
def test_ops_that_do_not_follow_from_totals_are_refused(data_root: Path, backend: CpuBackend, op: str) -> None:
    _written(data_root, np.array([1, 2], "i2"), {"add_offset": 5.0})
    with pytest.raises(InvalidInput, match=f"{op} takes no packed numbers so far; set stored") as caught:
        backend.reduce(opened(data_root, "x.h5"), op)
    assert caught.value.field == "op"
    assert backend.reduce(opened(data_root, "x.h5", stored=True), op).count == 2


def test_neutral_attributes_leave_integers_as_they_are(data_root: Path, backend: CpuBackend) -> None:
    _written(data_root, np.array([1, 1 << 62], "i8"), {"scale_factor": 1.0, "add_offset": np.int8(0)})
    assert backend.reduce(opened(data_root, "x.h5"), "sum").value == 1 + (1 << 62)


@pytest.mark.parametrize(
    ("stored", "op", "value"),
    [
        ([1.0, np.inf], "sum", "-inf"),
        ([1.0, np.inf, -np.inf], "sum", "nan"),
        ([1.0, np.nan], "mean", "nan"),
        ([1.0, -np.inf], "min", "0.5"),
        ([1.0, -np.inf], "max", "inf"),
        ([1.0, -np.inf], "norm_inf", "inf"),
        ([1.0, -np.inf], "norm2", "inf"),
        ([1.0, np.inf], "std", "nan"),
    ],
)
def test_stored_floats_that_are_not_finite_stay_so(
    data_root: Path, backend: CpuBackend, stored: list[float], op: str, value: str
) -> None:
    _written(data_root, np.array(stored), {"scale_factor": -0.5, "add_offset": 1.0})
    assert repr(backend.reduce(opened(data_root, "x.h5"), op).value) == value


def test_no_elements_have_the_sum_zero_and_no_mean(data_root: Path, backend: CpuBackend) -> None:
    _written(data_root, np.array([-9, -9], "i2"), {"add_offset": 5.0, "_FillValue": -9})
    assert backend.reduce(opened(data_root, "x.h5"), "sum").value == 0.0
    for op in ("mean", "var", "min"):
        with pytest.raises(InvalidInput, match=f"{op} of no elements is undefined"):
            backend.reduce(opened(data_root, "x.h5"), op)


def test_two_packings_are_equal_where_every_value_is() -> None:
    assert Packed.of(Fraction(1, 2), Fraction(0)) == Packed.of(Fraction(2, 4), Fraction(0))
    assert Packed.of(Fraction(1, 2), Fraction(0)) != Packed.of(Fraction(1, 2), Fraction(1))
    assert Packed.of(Fraction(1), Fraction(0)).is_identity


def test_stored_floats_need_the_exact_strategy(data_root: Path, backend: CpuBackend) -> None:
    _written(data_root, np.array([1.0, 2.0]), {"scale_factor": 0.1})
    with pytest.raises(InvalidInput, match="need the strategy exact") as caught:
        backend.reduce(opened(data_root, "x.h5"), "sum", strategy="numpy")
    assert caught.value.field == "strategy"
