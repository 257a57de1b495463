"""Numbers as people write them, by every way in: in Python, as text, in YAML and JSON, over HTTP, in a form.

By each way they come to the sum by `fractions.Fraction`, rounded once, of the same dtype, or are refused. Most examples
are read and reduced in this process, as the api and a worker do it; some go through a service.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas
import polars
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pydantic import ValidationError

from tests.support.service import Service
from warpfold.app.dashboard.forms.reading import form_for, spec_of
from warpfold.client import ExactState, local
from warpfold.client.arrays import as_numpy
from warpfold.client.cli.spec_files import read_yaml
from warpfold.client.cli.submitting import _source
from warpfold.client.sources import source as source_sent
from warpfold.contract.folders import Folders
from warpfold.contract.jobs import job_spec
from warpfold.contract.json_text import read_json
from warpfold.contract.kinds.reduce import ReduceSpec
from warpfold.kernels.dtypes import DTYPES, dtype_of
from warpfold.kernels.sources.sequential import gathered

Number = bool | int | float
Sum = tuple[str, str]
"""The dtype of the elements, and the `repr` of their sum, which tells 0 from 0.0 from −0.0."""

REFUSED: Sum = ("refused", "")

_WHOLE = st.one_of(
    st.integers(-9, 9),
    st.builds(
        lambda sign, power, beside: sign * 2**power + beside,
        st.sampled_from([1, -1]),
        st.sampled_from([24, 53, 54, 62, 63, 64, 100]),
        st.integers(-2, 2),
    ),
)
_REAL = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, 0.1, 2.0**53, -(2.0**63), 5e-324, 1.7e308]), st.floats(width=64)
).filter(np.isfinite)
_WRITTEN = st.one_of(
    st.lists(_WHOLE, max_size=5),
    st.lists(_REAL, max_size=5),
    st.lists(st.one_of(_WHOLE, _REAL, st.booleans()), max_size=5),
    st.lists(st.booleans(), max_size=3),
)


def rounded(total: Fraction) -> float:
    """The float64 nearest to `total`, by Python itself."""
    try:
        return float(total)
    except OverflowError:
        return float("inf") if total > 0 else float("-inf")


def expected(values: Sequence[Number]) -> Sum:
    """What numbers that are written without a dtype come to, by the rule in docs/client.md."""
    whole = [value for value in values if not isinstance(value, float)]
    if values and len(whole) == len(values):
        if all(isinstance(value, bool) for value in values):
            return "bool", repr(sum(values))
        for dtype in ("int64", "uint64"):
            low, high = DTYPES[dtype].bounds
            if all(low <= value <= high for value in values):
                return dtype, repr(int(sum(values)))
        return REFUSED
    if any(Fraction(rounded(Fraction(value))) != value for value in whole if abs(value) < 2**1000):
        return REFUSED
    if values and all(repr(value) == "-0.0" for value in values):
        return "float64", "-0.0"
    return "float64", repr(rounded(sum(map(Fraction, values), Fraction())))


def of_object(data: object) -> Sum:
    """What the client makes of a Python object."""
    try:
        array = as_numpy(data)
    except TypeError:
        return REFUSED
    return dtype_of(array.dtype).name, repr(local.reduce(array).value)


def of_spec(text: str) -> Sum:
    """What the service makes of a spec on the wire: the api validates and keeps it, a worker reads what was kept."""
    try:
        kept = job_spec.validate_json(job_spec.validate_json(text).model_dump_json())
    except ValidationError:
        return REFUSED
    assert isinstance(kept, ReduceSpec)
    source = gathered(kept.source.open(Folders((), Path())))
    return source.dtype.name, repr(local.reduce(source.read(0, source.count)).value)


def spec(values: object) -> str:
    return json.dumps({"kind": "reduce", "source": {"type": "values", "values": values}})


def as_text(values: Sequence[Number]) -> str:
    return " ".join("01"[value] if isinstance(value, bool) else repr(value) for value in values)


def in_form(values: Sequence[Number]) -> str:
    texts = (repr(value).lower() for value in values)
    typed = {"kind": ["reduce"], "op": ["sum"], "source.type": ["values"], "source.values": [", ".join(texts)]}
    return json.dumps(spec_of(form_for("reduce", typed), typed))


def numpy_scalars(values: Sequence[Number]) -> list[object]:
    """Each number as the first scalar of NumPy that holds it, else itself."""

    def scalar(value: Number) -> object:
        if isinstance(value, bool | float):
            return np.bool_(value) if isinstance(value, bool) else np.float64(value)
        fits = (name for name in ("int64", "uint64") if DTYPES[name].bounds[0] <= value <= DTYPES[name].bounds[1])
        return next((DTYPES[name].numpy.type(value) for name in fits), value)

    return [scalar(value) for value in values]


def object_array(values: Sequence[Number]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def sent(values: Sequence[Number]) -> str:
    """A spec of the client, which names the dtype of each array."""
    try:
        source_sent(list(values)).send(None)
    except StopIteration as end:
        return json.dumps({"kind": "reduce", "source": end.value})
    except TypeError:
        return "refused"
    raise AssertionError("so few values are not uploaded")


WRITTEN: Mapping[str, Callable[[list[Number]], Sum]] = {
    "list": of_object,
    "tuple in a list": lambda values: of_object([tuple(values)]),
    "list of NumPy scalars": lambda values: of_object(numpy_scalars(values)),
    "JSON": lambda values: of_spec(spec(values)),
    "YAML": lambda values: of_spec(json.dumps(read_yaml(spec(values)))),
    "form": lambda values: of_spec(in_form(values)),
    "what the client sends": lambda values: of_spec(sent(values)),
}


@pytest.mark.parametrize("entry", WRITTEN)
@given(values=_WRITTEN)
@settings(max_examples=120, deadline=None)
def test_numbers_without_a_dtype_come_to_the_true_sum_or_are_refused(entry: str, values: list[Number]) -> None:
    if entry == "form" and not values:
        return  # an empty field is a missing one
    assert WRITTEN[entry](values) == expected(values)


@given(values=_WRITTEN.filter(bool))
@settings(max_examples=120, deadline=None)
def test_text_and_columns_of_objects_do_too(values: list[Number]) -> None:
    numbers = [int(value) if isinstance(value, bool) else value for value in values]
    source = _source(values=as_text(values), generate=None, path=None, dataset=None, dtype=None)
    assert of_spec(json.dumps({"kind": "reduce", "source": source})) == expected(numbers)
    for data in (object_array(values), pandas.Series(object_array(values)), polars.Series(values, dtype=polars.Object)):
        assert of_object(data) == expected(values)


@given(values=st.lists(st.one_of(_WHOLE, _REAL), min_size=1, max_size=4), dtype=st.sampled_from(sorted(DTYPES)))
@settings(max_examples=120, deadline=None)
def test_with_a_dtype_an_integer_is_held_or_refused_and_a_float_is_rounded_to_a_float(
    values: list[Number], dtype: str
) -> None:
    row = DTYPES[dtype]
    text = json.dumps({"kind": "reduce", "source": {"type": "values", "values": values, "dtype": dtype}})
    for written in (of_spec(text), typed_sum(values, dtype)):
        if written == REFUSED:
            continue
        if row.is_float:
            with np.errstate(over="ignore"):
                wide = [
                    float(np.array(value).astype(row.numpy)) if isinstance(value, float) else value for value in values
                ]
        else:
            wide = list(values)
        if row.name == "bfloat16" and any(isinstance(value, float) for value in values):
            continue  # ml_dtypes rounds twice; tests/kernels/sources/test_values.py has its roundings
        total = sum(map(Fraction, wide), Fraction())
        state = ExactState.of(as_numpy(values, dtype)) if row.is_float else None
        assert written[0] == dtype
        if state is None:
            assert written[1] == repr(int(total))
        else:
            assert Fraction(state.units, 2**1074) == total
            assert written[1] == repr(state.round_to(row))


def typed_sum(values: Sequence[Number], dtype: str) -> Sum:
    try:
        array = as_numpy(list(values), dtype)
    except TypeError:
        return REFUSED
    return dtype_of(array.dtype).name, repr(local.reduce(array).value)


def test_the_examples_that_were_wrong_once() -> None:
    large = [9007199254740993, -9007199254740992]
    for entry, read in WRITTEN.items():
        assert read(list(large)) == ("int64", "1"), entry
    for values in ([2**63 + 1, -(2**63)], [2**53 + 1, 0.5], [2**64]):
        assert {read(list(values)) for read in WRITTEN.values()} == {REFUSED}
    for text in ("1e400", '"1e400"', '"-0x1p5000"', "9" * 60):
        assert of_spec(spec([0]).replace("[0]", f"[{text}]")) == REFUSED
    assert of_spec(spec([0]).replace("[0]", "[1.0, 1]")) == ("float64", "2.0")
    assert of_spec(spec([0]).replace("[0]", "[-0.0]")) == ("float64", "-0.0")
    assert of_spec(spec(["nan", 1])) == ("float64", "nan")
    assert of_spec(spec(["Infinity", 1])) == ("float64", "inf")
    assert of_object([Decimal("0.1")]) == of_object([Fraction(1, 3)]) == REFUSED


@pytest.mark.parametrize(
    "written", ["1e-400", "-1.0e-400", "4503599627370497.4", "9007199254740993.0", "0.99999999999999999"]
)
def test_a_number_that_only_float64_makes_whole_is_no_integer_in_any_text(written: str) -> None:
    def sums(dtype: str) -> set[Sum]:
        of_values = spec([0]).replace("[0]", f'[{written}], "dtype": "{dtype}"')
        typed = {"kind": ["reduce"], "op": ["sum"], "source.type": ["values"], "source.dtype": [dtype]}
        in_option = _source(values=written, generate=None, path=None, dataset=None, dtype=dtype)
        texts = (
            json.dumps(read_json(of_values.encode())),
            json.dumps(read_yaml(of_values)),
            json.dumps({"kind": "reduce", "source": in_option}),
            json.dumps(spec_of(form_for("reduce", typed), {**typed, "source.values": [written]})),
        )
        return {of_spec(text) for text in texts}

    assert sums("int64") == {REFUSED}
    assert sums("float64") == {("float64", repr(float(written)))}


@pytest.mark.parametrize("text", ["op: sum\nop: max\n", '{"op": "sum", "op": "max"}', "source: {n: 1, n: 2}"])
def test_a_name_that_stands_twice_in_yaml_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(yaml.YAMLError, match=r"(?s)'(op|n)' is written twice in one object.*line \d"):
        read_yaml(text)


def test_yaml_that_takes_over_another_mapping_may_change_what_it_took() -> None:
    assert read_yaml("a: &a {n: 1, m: 2}\nb: {<<: *a, n: 3}") == {"a": {"n": 1, "m": 2}, "b": {"n": 3, "m": 2}}


_FEW = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@given(several=st.lists(_WRITTEN.filter(bool), min_size=4, max_size=4))
@_FEW
def test_numbers_come_through_http_unharmed(service: Service, several: list[list[Number]]) -> None:
    http = httpx.Client(base_url=service.url, headers={"Authorization": f"Bearer {service.token}"})
    with http, service.client() as client:
        answers = [
            http.post("/v1/jobs", content=spec(values), headers={"Content-Type": "application/json"})
            for values in several
        ]
        for values, answer in zip(several, answers, strict=True):
            dtype, total = expected(values)
            assert (answer.status_code == 422) == (dtype == "refused"), answer.text
            if dtype == "refused":
                assert answer.json()["errors"][0]["field"].startswith("source.values")
                continue
            job = client.job(answer.json()["id"])
            assert job.spec["source"]["dtype"] == dtype
            assert repr(client.reduction(job).value) == total


def test_the_form_of_the_dashboard_sums_what_is_typed(service: Service) -> None:
    with httpx.Client(base_url=service.url, headers={"Origin": service.url}) as window, service.client() as client:
        assert window.post("/sign-in", data={"token": service.token}).status_code == 303
        typed = {
            "kind": "reduce",
            "op": "sum",
            "source.type": "values",
            "source.values": "9007199254740993, -9007199254740992",
        }
        answer = window.post("/jobs/new", data=typed)
        assert client.reduction(client.job(answer.headers["Location"].rpartition("/")[2])).value == 1
        refused = window.post("/jobs/new", data={**typed, "source.values": "9007199254740993, 0.5"})
        assert (refused.status_code, "float64 does not hold 9007199254740993" in refused.text) == (422, True)
