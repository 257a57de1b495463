"""The strategy `numpy` gives the values of NumPy."""

import math

import numpy as np
import pytest

from warpfold.kernels.cpu import memory
from warpfold.kernels.cpu.backend import CPU_STRATEGIES
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput, OutOfMemory
from warpfold.kernels.ops import OPS, NanPolicy, Value
from warpfold.kernels.ops.operands import Operands
from warpfold.kernels.source import ArraySource, GeneratedSource

NUMPY = CPU_STRATEGIES["numpy"]


def reduced(op: str, values: list[float], dtype: str, policy: NanPolicy = NanPolicy.PROPAGATE) -> Value:
    array = np.array(values).astype(DTYPES[dtype].numpy)
    return NUMPY.reduce(Operands(ArraySource(array)), OPS[op], policy, None).value


@pytest.mark.parametrize("dtype", list(DTYPES))
@pytest.mark.parametrize("op", sorted({op for op, _ in NUMPY.claims if OPS[op].sources == 1}))
def test_it_computes_every_op_that_it_claims_of_every_dtype(op: str, dtype: str) -> None:
    wanted: dict[str, Value] = {
        "sum": 2,
        "mean": 0.5,
        "prod": 0,
        "min": 0,
        "max": 1,
        "argmin": 1,
        "argmax": 0,
        "sum_squares": 2,
        "norm1": 2,
        "norm2": math.sqrt(2),
        "var": 0.25,
        "std": 0.5,
        "norm_inf": 1,
        "count_nonzero": 2,
        "any": True,
        "all": False,
        "median": 0.5,
        "quantile": 0.5,
        "nunique": 2,
        "count": 4,
        "ptp": 1,
        "histogram": 4,
    }
    value = reduced(op, [1, 0, 0, 1], dtype)
    assert value == pytest.approx(wanted[op], rel=0.01)
    result = OPS[op].result_dtype(DTYPES[dtype])
    kind = bool if result == "bool" else float if result in DTYPES and DTYPES[result].is_float else int
    assert type(value) is kind


def test_a_float32_sum_is_numpys_to_the_last_bit() -> None:
    source = GeneratedSource("mixed", 100_000, 1, DTYPES["float32"])
    reduction = NUMPY.reduce(Operands(source), OPS["sum"], NanPolicy.PROPAGATE, None)
    assert reduction.value == float(np.sum(source.read(0, source.count)))
    assert not reduction.correctly_rounded
    assert reduction.state is None


def test_integers_wrap_at_64_bits_as_the_error_bound_says() -> None:
    assert reduced("sum", [2**62, 2**62], "int64") == -(2**63)
    assert reduced("prod", [2**32, 2**32], "uint64") == 0
    assert "wrap at 64 bits" in NUMPY.error_bound


def test_narrow_integers_are_squared_in_64_bits() -> None:
    assert reduced("sum_squares", [-128, 127], "int8") == 128**2 + 127**2
    assert reduced("norm1", [-128, 127], "int8") == 255
    assert reduced("norm_inf", [-128, 127], "int8") == 128


def test_nan_is_propagated_omitted_or_refused() -> None:
    data = [math.nan, 3.0, math.nan, 1.0, 1.0]
    assert math.isnan(float(reduced("sum", data, "float32")))
    assert reduced("argmin", data, "float32") == 0
    assert reduced("sum", data, "float32", NanPolicy.OMIT) == 5.0
    assert reduced("argmin", data, "bfloat16", NanPolicy.OMIT) == 3
    assert reduced("mean", data, "float16", NanPolicy.OMIT) == pytest.approx(5 / 3, rel=0.01)
    with pytest.raises(InvalidInput, match="element 0 is NaN"):
        reduced("sum", data, "float64", NanPolicy.RAISE)


@pytest.mark.parametrize("values", [[], [math.nan]])
def test_nothing_has_a_sum_and_no_mean(values: list[float]) -> None:
    assert reduced("sum", values, "float32", NanPolicy.OMIT) == 0.0
    assert reduced("all", values, "float32", NanPolicy.OMIT) is True
    with pytest.raises(InvalidInput, match="mean of no elements"):
        reduced("mean", values, "float32", NanPolicy.OMIT)


def test_only_what_selects_or_counts_is_called_correctly_rounded() -> None:
    source = ArraySource(np.ones(3, dtype=np.float32))
    for op in (row for row in OPS.values() if row.sources == 1 and (row.name, "float32") in NUMPY.claims):
        reduction = NUMPY.reduce(Operands(source), op, NanPolicy.PROPAGATE, None)
        assert reduction.correctly_rounded == (not op.rounds)


def test_copies_on_the_way_count_as_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_bytes", lambda: 5_000)
    elements = ArraySource(np.ones(1000, dtype=np.float64))
    assert NUMPY.reduce(Operands(elements), OPS["sum"], NanPolicy.PROPAGATE, None).value == 1000.0
    with pytest.raises(OutOfMemory, match="8,000 bytes"):
        NUMPY.reduce(Operands(elements), OPS["norm2"], NanPolicy.PROPAGATE, None)


def test_progress_is_told_the_end() -> None:
    calls: list[tuple[int, int]] = []
    NUMPY.reduce(Operands(ArraySource(np.ones(7))), OPS["sum"], NanPolicy.PROPAGATE, lambda *call: calls.append(call))
    assert calls == [(7, 7)]


def test_each_strategy_has_a_name_of_its_own() -> None:
    assert [row.name for row in CPU_STRATEGIES.values()] == list(CPU_STRATEGIES)
    assert {row.backend for row in CPU_STRATEGIES.values()} == {"cpu"}
