"""The conformance vectors of tests/data/exact as checks of a backend: every op, dtype, NaN policy and ddof."""

import json
import math
from typing import Any

import pytest

from tests.data.exact.make_vectors import FOLDER
from tests.support.kernels.patterns import array_of_bits
from warpfold.kernels.catalog import backends_for
from warpfold.kernels.driver import Backend
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import ORIGIN
from warpfold.kernels.ops import OPS, NanPolicy, Value
from warpfold.kernels.source import ArraySource


def source(bits: list[int], dtype: DType) -> ArraySource:
    """The elements with these bits."""
    return ArraySource(array_of_bits(bits, dtype))


def same(value: Value, wanted: Value) -> bool:
    """Equal in type, value and sign."""
    if isinstance(wanted, float):
        assert isinstance(value, float)
        both_nan = math.isnan(value) and math.isnan(wanted)
        return both_nan or (value == wanted and math.copysign(1, value) == math.copysign(1, wanted))
    return type(value) is type(wanted) and value == wanted


def read(written: dict[str, Any], result: str) -> Value:
    """A vector's value as a Python one."""
    value = written["value"]
    if isinstance(value, bool):
        return value
    return float.fromhex(value) if result in DTYPES and DTYPES[result].is_float else int(value)


def check_ops(backend: Backend, name: str) -> None:
    """Every op of one array of a dtype: value, count, and the bytes of its state."""
    dtype = DTYPES[name]
    for case in json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))["cases"]:
        data = source([int(pattern, 16) for pattern in case["inputs"]], dtype)
        for policy, results in case["results"].items():
            for op, wanted in results.items():
                if op == "prod" and dtype.is_float:
                    continue  # rounded at every step: no exact strategy
                if backend.device.backend not in backends_for(OPS[op], dtype, "exact"):
                    continue  # integers of any size are the CPU's, and so are quantiles
                where = (case["name"], policy, op)
                if "undefined" in wanted:
                    with pytest.raises(InvalidInput):
                        backend.reduce(data, op, strategy="exact", nan_policy=NanPolicy(policy))
                    continue
                reduction = backend.reduce(data, op, strategy="exact", nan_policy=NanPolicy(policy))
                assert same(reduction.value, read(wanted, reduction.dtype)), (where, reduction.value)
                assert reduction.count == wanted["count"], where
                assert reduction.correctly_rounded
                if OPS[op].terms in ORIGIN and policy == "propagate":
                    kind = "magnitudes" if OPS[op].magnitudes else OPS[op].terms.value
                    assert reduction.state is not None
                    assert reduction.state.hex() == case["states"][kind]["bytes"], where
                assert (reduction.state is None) == (OPS[op].terms not in ORIGIN), where


def check_degrees_of_freedom(backend: Backend, name: str) -> None:
    """var and std of a dtype with ddof 1."""
    dtype = DTYPES[name]
    for case in json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))["cases"]:
        data = source([int(pattern, 16) for pattern in case["inputs"]], dtype)
        for policy, results in case["ddof 1"].items():
            for op, wanted in results.items():
                if "undefined" in wanted:
                    with pytest.raises(InvalidInput):
                        backend.reduce(data, op, nan_policy=NanPolicy(policy), ddof=1)
                    continue
                reduction = backend.reduce(data, op, nan_policy=NanPolicy(policy), ddof=1)
                assert same(reduction.value, read(wanted, reduction.dtype)), (case["name"], policy, op, reduction.value)
                assert reduction.count == wanted["count"]


def check_dots(backend: Backend) -> None:
    """dot of two arrays, of one dtype or of two."""
    for case in json.loads((FOLDER / "dots.json").read_text(encoding="utf-8"))["dots"]:
        dtypes = [DTYPES[case[side]] for side in ("left", "right")]
        left, right = (
            source([int(pattern, 16) for pattern in bits], dtype)
            for bits, dtype in zip(case["inputs"], dtypes, strict=True)
        )
        for policy, wanted in case["results"].items():
            if "undefined" in wanted:
                with pytest.raises(InvalidInput, match="NaN"):
                    backend.reduce(left, "dot", other=right, nan_policy=NanPolicy(policy))
                continue
            reduction = backend.reduce(left, "dot", other=right, nan_policy=NanPolicy(policy))
            assert same(reduction.value, read(wanted, reduction.dtype)), (case, policy, reduction.value)
            assert reduction.count == wanted["count"]
            assert reduction.correctly_rounded
            assert reduction.state is not None
            if policy == "propagate":
                assert reduction.state.hex() == case["state"]["bytes"], case
