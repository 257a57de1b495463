"""The conformance vectors of tests/data/exact as checks of a backend: every op, dtype, NaN policy and ddof."""

import json
import math
from typing import Any

import pytest

from tests.data.exact.make_vectors import FOLDER
from tests.support.kernels.patterns import array_of_bits
from warpfold.kernels.backend import Backend
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import ORIGIN
from warpfold.kernels.ops import OPS, NanPolicy, Value
from warpfold.kernels.source import ArraySource


def source(bits: list[int], dtype: DType) -> ArraySource:
    """The elements with these bits."""
    return ArraySource(array_of_bits(bits, dtype))


def same(found: Value, wanted: Value) -> bool:
    """Equal in type, value and sign."""
    if isinstance(wanted, float):
        assert isinstance(found, float)
        both_nan = math.isnan(found) and math.isnan(wanted)
        return both_nan or (found == wanted and math.copysign(1, found) == math.copysign(1, wanted))
    return type(found) is type(wanted) and found == wanted


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
                if op == "prod" and backend.device.backend == "cuda" and dtype.name != "bool":
                    continue  # integers of any size are the CPU's
                where = (case["name"], policy, op)
                if "undefined" in wanted:
                    with pytest.raises(InvalidInput):
                        backend.reduce(data, op, strategy="exact", nan_policy=NanPolicy(policy))
                    continue
                found = backend.reduce(data, op, strategy="exact", nan_policy=NanPolicy(policy))
                assert same(found.value, read(wanted, found.dtype)), (where, found.value)
                assert found.count == wanted["count"], where
                assert found.correctly_rounded
                if OPS[op].terms in ORIGIN and policy == "propagate":
                    kind = {"norm1": "magnitudes", "sum": "values", "mean": "values"}.get(op, "products")
                    assert found.state is not None
                    assert found.state.hex() == case["states"][kind]["bytes"], where
                assert (found.state is None) == (OPS[op].terms not in ORIGIN), where


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
                found = backend.reduce(data, op, nan_policy=NanPolicy(policy), ddof=1)
                assert same(found.value, read(wanted, found.dtype)), (case["name"], policy, op, found.value)
                assert found.count == wanted["count"]


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
            found = backend.reduce(left, "dot", other=right, nan_policy=NanPolicy(policy))
            assert same(found.value, read(wanted, found.dtype)), (case, policy, found.value)
            assert found.count == wanted["count"]
            assert found.correctly_rounded
            assert found.state is not None
            if policy == "propagate":
                assert found.state.hex() == case["state"]["bytes"], case
