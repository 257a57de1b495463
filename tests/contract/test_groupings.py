"""Specs of reductions along axes and by segments: what they come to, and what is refused with which field."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from warpfold.app.http.error_handlers import spec_problem
from warpfold.contract.groupings import numbered
from warpfold.contract.jobs import job_spec, result_of, summary_of
from warpfold.contract.kinds.reduce import ReduceArrayResult, ReduceSpec
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.parts.grouping import AlongAxes, Segments
from warpfold.kernels.parts.rolling import Rolling, Window

MATRIX = {"type": "values", "values": [1, 2, 3, 4, 5, 6], "shape": [2, 3]}
MOST = {"type": "generate", "distribution": "normal", "n": 2**31 + 2}
CUBE = {"type": "values", "values": [0.5] * 8, "dtype": "float32", "shape": [2, 2, 2]}


def spec(**fields: Any) -> ReduceSpec:
    made = job_spec.validate_python({"kind": "reduce", "source": MATRIX, **fields})
    assert isinstance(made, ReduceSpec)
    return made


def test_an_axis_several_and_segments_become_groupings() -> None:
    assert spec(axis=-1).grouping() == AlongAxes((-1,))
    assert spec(axis=[0, 1], keepdims=True).grouping() == AlongAxes((0, 1), keepdims=True)
    assert spec(segments={"length": 4}).grouping() == Segments(None, 4)
    assert spec(segments={"offsets": [0, 0, 6]}).grouping() == Segments((0, 0, 6))
    assert spec().grouping() is None
    assert spec(window={"rows": 3}).grouping() == Rolling(Window(3, min_count=3))
    running = {"window": {"expanding": True, "min_count": 0}, "axis": 1, "op": "max"}
    assert spec(**running).grouping() == Rolling(Window(min_count=0), AlongAxes((1,)))
    centred = {"window": {"rows": 4, "centre": True, "min_count": 1}, "segments": {"length": 2}}
    assert spec(**centred).grouping() == Rolling(Window(4, True, 1), Segments(None, 2))


@pytest.mark.parametrize("fields", [{"axis": 0}, {"segments": {"length": 2}}, {"window": {"rows": 2}}])
def test_auto_sends_such_a_job_to_a_cpu_slot(fields: dict[str, Any]) -> None:
    assert (spec(**fields).needs(), spec().needs()) == ("cpu", "any")
    assert spec(**fields, backend="cpu").needs() == "cpu"


def test_a_spec_without_an_axis_is_stored_as_before() -> None:
    stored = json.loads(spec(source={"type": "values", "values": [1, 2]}).model_dump_json())
    assert not {"axis", "keepdims", "segments"} & stored.keys()
    assert "shape" not in stored["source"]
    assert spec(axis=[0]).axis == (0,)
    assert job_spec.validate_json(spec(axis=[0], keepdims=True).model_dump_json()) == spec(axis=[0], keepdims=True)


def test_a_line_names_the_axis() -> None:
    for fields, words in (
        ({"axis": -1}, "axis -1"),
        ({"axis": [0, 1]}, "axes 0, 1"),
        ({"segments": {"length": 4}}, "segments of 4"),
        ({"segments": {"offsets": [0, 2, 6]}}, "2 segments"),
        ({"window": {"rows": 2}}, "windows of 2"),
        ({"window": {"rows": 2, "centre": True}, "axis": 1}, "windows of 2 in the middle, axis 1"),
        ({"window": {"expanding": True}, "segments": {"length": 4}}, "expanding windows, segments of 4"),
        ({"window": {"width": "90s"}, "over": MATRIX}, "windows of the width 90s"),
    ):
        made = spec(**fields)
        assert summary_of("reduce", json.loads(made.model_dump_json())).endswith(f" · {words}")
        assert words in made.description()
    assert "of shape 2 × 3" in spec(axis=0).description()


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"axis": 2}, "axis", "there is no axis 2: the array has 2 axes"),
        ({"axis": [0, -2]}, "axis.1", "named twice"),
        ({"axis": []}, "axis", "the number or the name of an axis"),
        ({"axis": 0.5}, "axis", "the number or the name of an axis"),
        ({"axis": 0, "backend": "cuda", "op": "prod"}, "backend", "prod of int64 needs the backend cpu"),
        ({"backend": "gang"}, "backend", "name an axis or segments, or give cuda"),
        ({"axis": 0, "backend": "gang", "op": "prod"}, "backend", "prod of int64 needs the backend cpu"),
        ({"axis": 0, "backend": "cuda", "op": "max", "states": True}, "states", "max"),
        ({"axis": 0, "strategy": "numpy"}, "strategy", "known: auto, exact"),
        ({"axis": 0, "segments": {"length": 2}}, "segments", "cannot be combined"),
        ({"keepdims": True}, "keepdims", "keepdims needs an axis"),
        ({"segments": {}}, "segments", "offsets or a length"),
        ({"segments": {"length": 0}}, "segments.length", "greater than or equal to 1"),
        ({"segments": {"offsets": [0, 3, 2]}}, "segments.offsets.2", "2 is less than the offset 3 before it"),
        ({"segments": {"offsets": [0, 7]}}, "segments.offsets.1", "7 is beyond the 6 elements"),
        ({"segments": {"offsets": [-1, 2]}}, "segments.offsets.0", "greater than or equal to 0"),
        ({"source": {**MATRIX, "shape": [7]}}, "source.shape", "has 7 elements, not 6"),
        ({"axis": 1, "source": {**MOST, "shape": [2**30 + 1, 2]}}, "axis", "1,073,741,825 values"),
        ({"segments": {"length": 2}, "source": MOST}, "segments", "a stored result has at most 1,073,741,824"),
        ({"window": {}}, "window", "one of rows, width and expanding"),
        ({"window": {"rows": 2, "expanding": True}}, "window", "one of rows, width and expanding"),
        ({"window": {"width": 0}, "over": MATRIX}, "window.width", "a positive number of units"),
        ({"window": {"width": "2y"}, "over": MATRIX}, "window.width", "a duration such as 1.5h"),
        ({"window": {"width": 2}}, "over", "needs the times"),
        ({"window": {"rows": 2}, "over": MATRIX}, "over", "no other does"),
        ({"window": {"rows": 2, "closed": "left"}}, "window.closed", "only a window of some width"),
        ({"keys": MATRIX}, "keys", "for windows without an axis"),
        ({"window": {"rows": 2}, "keys": MATRIX, "axis": 0}, "keys", "for windows without an axis"),
        ({"window": {"rows": 0}}, "window.rows", "greater than or equal to 1"),
        ({"window": {"rows": 2, "min_count": 3}}, "window.min_count", "never has more"),
        ({"window": {"expanding": True, "centre": True}}, "window.centre", "only a window of rows"),
        ({"window": {"rows": 2}, "op": "argmax"}, "op", "windows have sum, mean"),
        ({"window": {"rows": 2}, "op": "quantile", "q": [0.5, 0.9]}, "op", "not quantile"),
        ({"window": {"rows": 2}, "axis": [0, 1]}, "axis", "along one axis"),
        ({"window": {"rows": 2}, "axis": 0, "keepdims": True}, "keepdims", "keeps all axes"),
        ({"window": {"rows": 2}, "axis": 2}, "axis", "there is no axis 2"),
        ({"window": {"rows": 2}, "segments": {"offsets": [0, 7]}}, "segments.offsets.1", "beyond the 6 elements"),
        ({"window": {"rows": 2}, "states": True}, "states", "do not take it"),
        ({"window": {"rows": 2}, "weights": MATRIX, "op": "mean"}, "weights", "do not take it"),
        ({"window": {"rows": 2}, "op": "var", "backend": "cuda"}, "backend", "windows of var need the backend cpu or"),
        ({"window": {"rows": 2}, "backend": "dask"}, "backend", "need the backend cpu, cuda or auto"),
        ({"window": {"rows": 2}, "source": MOST}, "window", "a stored result has at most"),
        ({"axis": 0, "op": "dot", "other": {**MATRIX, "shape": [3, 2]}}, "other", "two sources of one shape"),
    ],
)
def test_what_is_wrong_is_refused_with_its_field(fields: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(ValidationError) as refused:
        spec(**fields)
    problem = spec_problem(refused.value).errors[0]
    assert problem.field == field
    assert words in problem.message


def test_a_gang_takes_an_axis_or_segments_where_it_is_named() -> None:
    floats = {"type": "values", "values": [1.0, 2.0, 3.0, 4.0], "dtype": "float32", "shape": [2, 2]}
    for fields in ({"axis": 0}, {"segments": {"length": 3}}, {"axis": 1, "op": "var"}):
        asked = spec(**fields, source=floats, backend="gang")
        assert (asked.needs(), asked.small()) == ("gang", False)


def test_a_gpu_gives_states_where_it_is_named() -> None:
    made = {"type": "generate", "distribution": "normal", "dtype": "float32", "shape": [2**14, 2**14], "n": 2**28}
    assert spec(axis=0, source=made, states=True).needs() == "cpu"
    for backend in ("cuda", "gang"):
        assert spec(axis=0, source=made, states=True, backend=backend).needs() == backend


def test_a_gpu_is_chosen_where_it_is_named_or_many_elements_are_made_there() -> None:
    made = {"type": "generate", "distribution": "normal", "dtype": "float32", "shape": [2**14, 2**14], "n": 2**28}
    floats = {"type": "values", "values": [1.0, 2.0, 3.0, 4.0], "dtype": "float32", "shape": [2, 2]}
    assert spec(axis=0, source=made).backends() == ("cpu", "cuda")
    assert spec(axis=0, source=made, op="max").backends() == ("cpu", "cuda")
    for op in ("mean", "sum_squares", "norm2", "var", "std"):
        assert spec(axis=0, source=made, op=op).backends() == ("cpu", "cuda")
        assert spec(segments={"length": 100}, source={**made, "dtype": "float64"}, op=op).backends() == ("cpu", "cuda")
    assert spec(axis=0, source=floats).backends() == ("cpu",)
    assert spec(axis=0, source=floats, backend="cuda").needs() == "cuda"
    assert spec(axis=0, source={"type": "path", "path": "a.npy"}, backend="cuda").needs() == "cuda"
    assert spec(axis=0, source={"type": "path", "path": "a.npy"}).needs() == "cpu"


@pytest.mark.parametrize(
    ("op", "dtype"),
    [("norm1", "float32"), ("std", "float16"), ("sum", "bfloat16"), ("var", "int32"), ("norm2", "int8")],
)
def test_auto_keeps_values_from_a_gpu_that_it_makes_slowly(op: str, dtype: str) -> None:
    """A GPU has a block for each of these values, or leaves them to the host."""
    made = {"type": "generate", "distribution": "uniform", "dtype": dtype, "shape": [2**14, 2**14], "n": 2**28}
    assert spec(axis=0, source=made, op=op).backends() == ("cpu",)
    assert spec(axis=0, source=made, op=op, backend="cuda").needs() == "cuda"


def test_the_documented_array_is_a_result() -> None:
    example = ReduceArrayResult.model_json_schema()["examples"][0]
    result = result_of(json.dumps(example))
    assert isinstance(result, ReduceArrayResult)
    assert result.model_dump(mode="json") == example


@pytest.mark.parametrize(
    ("axis", "dimensions", "numbers"),
    [("time", ("time", "lat"), 0), (("lat", -1), ("time", "lat", ""), (1, -1)), (2, (), 2)],
)
def test_names_of_axes_become_their_numbers(axis: Any, dimensions: tuple[str, ...], numbers: Any) -> None:
    assert numbered(axis, dimensions) == numbers


@pytest.mark.parametrize(
    ("dimensions", "why"),
    [(("x", "x"), "several axes of the name 'x'"), (("",), "no axis 'x'; its axes have the names no name")],
)
def test_a_name_that_is_not_there_once_is_refused(dimensions: tuple[str, ...], why: str) -> None:
    with pytest.raises(InvalidInput, match=why) as refused:
        numbered(("x", 1), dimensions)
    assert refused.value.field == "axis"


def test_an_axis_by_its_name_is_a_grouping_along_as_many_axes() -> None:
    source = {"type": "array", "path": "x.nc"}
    asked = ReduceSpec.model_validate({"kind": "reduce", "op": "sum", "source": source, "axis": ["time", "lat"]})
    assert asked.grouping() == AlongAxes((0, 1))
    assert str(summary_of("reduce", asked.model_dump(mode="json"))).endswith("axes time, lat")
