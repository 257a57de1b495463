from typing import Any

import pytest
from pydantic import ValidationError

from warpfold.contract.brief_reduction import BriefReduceSpec
from warpfold.contract.jobs import brief_of, job_spec, summary_of
from warpfold.contract.sources import summary_of_source
from warpfold.contract.sources.values import BriefValues
from warpfold.kernels.errors import InvalidInput

VALUES = {"type": "values", "values": [1, 2], "dtype": "float32"}


def spec(**changes: Any) -> Any:
    return job_spec.validate_python({"kind": "reduce", "source": VALUES, **changes})


def test_a_spec_survives_its_own_json_to_the_bit() -> None:
    submitted = spec(source={"type": "values", "values": [-0.0, 5e-324, 2**70, True, "0x1.8p+1", "nan"]})
    read: Any = job_spec.validate_json(submitted.model_dump_json())
    assert read == submitted
    assert str(read.source.values[0]) == "-0.0"


def test_a_spec_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        spec().op = "mean"


@pytest.mark.parametrize(
    ("changes", "slots"),
    [
        ({"backend": "cpu"}, "cpu"),
        ({"backend": "cuda"}, "cuda"),
        ({}, "any"),
        ({"strategy": "numpy"}, "cpu"),
        ({"strategy": "cupy"}, "cuda"),
        ({"source": {"type": "path", "path": "x.npy"}, "strategy": "numpy"}, "cpu"),
        ({"source": {"type": "path", "path": "x.npy"}}, "any"),
        ({"op": "var"}, "any"),
        ({"op": "dot", "other": VALUES}, "any"),
        ({"op": "std", "source": {"type": "path", "path": "x.npy"}}, "any"),
        ({"op": "dot", "other": {"type": "path", "path": "x.npy"}}, "any"),
    ],
)
def test_the_slots_that_can_run_it_follow_from_backend_and_strategy(changes: dict[str, Any], slots: str) -> None:
    assert spec(**changes).needs() == slots


def test_a_fault_of_the_kernels_keeps_its_field() -> None:
    with pytest.raises(ValidationError) as caught:
        spec(source={"type": "values", "values": [1, 300], "dtype": "int8"})
    [error] = caught.value.errors()
    cause = error["ctx"]["error"]
    assert isinstance(cause, InvalidInput)
    assert cause.field == "source.values.1"


def values(*numbers: Any, dtype: str = "float32") -> dict[str, Any]:
    return {"type": "values", "values": numbers, "dtype": dtype}


FILE = {"type": "path", "path": "x.npy"}


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"op": "dot"}, "other", "dot needs a second source"),
        ({"op": "dot", "source": FILE}, "other", "dot needs a second source"),
        ({"op": "sum", "other": VALUES}, "other", "sum takes no second source"),
        ({"op": "sum", "source": FILE, "other": FILE}, "other", "sum takes no second source"),
        ({"op": "dot", "other": values(1)}, "other", "two sources of one length, not 2 and 1 elements"),
        ({"op": "dot", "other": values(1, 2, dtype="int8")}, "other", "dot of float32 with int8 is not defined"),
        ({"op": "sum", "ddof": 1}, "ddof", "sum takes no ddof"),
        ({"op": "var", "ddof": 2}, "ddof", "var of 2 elements with ddof 2 is undefined"),
        (
            {"op": "prod", "source": values(1, 2, dtype="int32"), "backend": "cuda"},
            "backend",
            "computes prod of int32 on cpu, not on cuda",
        ),
        (
            {"op": "var", "source": FILE, "strategy": "numpy", "backend": "cuda"},
            "backend",
            "computes var on cpu, not on cuda",
        ),
        ({"op": "std", "source": FILE, "strategy": "cupy"}, "strategy", "'cupy' does not compute std"),
    ],
)
def test_what_does_not_fit_the_op_is_refused_with_the_field(changes: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        spec(**changes)
    [error] = caught.value.errors()
    assert error["ctx"]["error"].field == field
    assert message in str(error["ctx"]["error"])


def test_dtypes_of_a_dot_product_may_differ_within_a_kind() -> None:
    assert spec(op="dot", other=values(1, 2, dtype="float64")).backends() == ("cpu", "cuda")
    assert spec(op="dot", other=FILE).backends() == ("cpu", "cuda")


def test_a_spec_from_before_second_sources_is_still_read() -> None:
    old = {"kind": "reduce", "op": "mean", "strategy": "auto", "backend": "auto", "source": VALUES}
    read: Any = job_spec.validate_python(old)
    assert (read.other, read.ddof) == (None, 0)


def test_long_values_of_a_second_source_are_brief_too() -> None:
    brief = brief_of(
        spec(op="dot", source=values(*range(17)), other=values(*range(17), dtype="float64"), tags={"a": "b"})
    )
    assert brief is not None
    shown = BriefReduceSpec.model_validate_json(brief)
    assert isinstance(shown.source, BriefValues)
    assert isinstance(shown.other, BriefValues)
    assert (shown.source.count, shown.other.dtype, len(shown.other.first)) == (17, "float64", 16)


def test_only_long_values_have_a_brief() -> None:
    assert brief_of(spec(source={"type": "values", "values": list(range(16))})) is None
    assert brief_of(spec(source={"type": "generate", "distribution": "zeros", "n": 10**9})) is None
    assert brief_of(spec(source={"type": "values", "values": list(range(17))})) is not None


def test_one_bad_value_of_many_is_one_error() -> None:
    with pytest.raises(ValidationError) as caught:
        spec(source={"type": "values", "values": [None] * 10_000})
    assert caught.value.error_count() == 1


@pytest.mark.parametrize(
    ("kind", "spec", "text"),
    [
        (
            "reduce",
            {"op": "sum", "source": {"type": "values", "dtype": "float32", "values": [1]}},
            "sum of 1 value as float32",
        ),
        (
            "reduce",
            {"op": "dot", "source": {"type": "path", "path": "a.npy"}, "other": {"type": "path", "path": "b"}},
            "dot of file a.npy · file b",
        ),
        (
            "benchmark",
            {"ops": ["sum"], "dtypes": ["a", "b", "c", "d"], "sizes": [1000, 1 << 30], "strategies": ["exact"]},
            "sum · a, b, c and 1 more · 10³–2³⁰ · exact",
        ),
        (
            "scaling",
            {"sizes": [10**6, 10**8], "sizes_per_rank": [1 << 24], "messages": [8, 4096], "ranks": [1, 2, 4]},
            "10⁶–10⁸ elements · 2²⁴ elements a rank · 8–2¹² bytes · ranks 1, 2, 4",
        ),
        (
            "three_numbers",
            {"a": 1e8, "b": 1.0, "c": -1e8, "dtype": "float32"},
            "1e8 + 1 + -1e8 in every order · float32",
        ),
        ("profile", {"ops": ["sum"], "dtypes": ["float32"], "strategies": ["exact"]}, "sum · float32 · exact"),
        ("preset", {"preset": "p05", "max_n": 100000}, "p05 · max n 10⁵"),
        ("later", {"kind": "later", "shape": "round", "deep": {"a": 1}}, 'shape round · deep {"a": 1}'),
        ("later", {}, "later"),
        ("reduce", {}, "None of nothing"),
    ],
)
def test_a_spec_of_any_version_has_one_line(kind: str, spec: dict[str, object], text: str) -> None:
    assert summary_of(kind, spec) == text


def test_a_brief_source_tells_its_count() -> None:
    assert summary_of_source({"type": "values", "dtype": "int8", "count": 5000, "first": [1]}) == "5,000 values as int8"
