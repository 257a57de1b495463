import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.api import WORKER, Api
from tests.support.window import Window
from warpfold import Client
from warpfold.app.dashboard.forms.contents import look_for
from warpfold.app.dashboard.forms.reading import blank, carried_over, form_for, integer, spec_of, typed_from
from warpfold.app.dashboard.forms.schema import kinds
from warpfold.app.dashboard.forms.submission import python_of
from warpfold.app.jobs import workers
from warpfold.contract.jobs import KINDS, job_spec

SPECS: list[Mapping[str, Any]] = [
    {"kind": "reduce", "op": "sum", "source": {"type": "values", "values": [1e8, 1, -1e8, "0x1p-3", "nan"]}},
    {
        "kind": "reduce",
        "op": "dot",
        "nan_policy": "omit",
        "source": {"type": "generate", "distribution": "lognormal", "n": 1000, "parameters": {"sigma": 3}},
        "other": {"type": "generate", "distribution": "normal", "n": 1000, "seed": 7, "dtype": "float64"},
        "tags": {"course": "p05", "empty": ""},
    },
    {
        "kind": "reduce",
        "source": {
            "type": "table",
            "path": "sales.parquet",
            "column": "price",
            "filter": {"op": "not", "of": {"op": "in", "column": "region", "values": ["EU", "US"]}},
        },
    },
    {"kind": "reduce", "source": {"type": "array", "path": "x.h5", "array": "a/b", "select": [0, None, {"stop": 10}]}},
    {"kind": "reduce", "source": {"type": "files", "glob": "run-*/*.csv", "column": "x", "null_policy": "raise"}},
    {
        "kind": "benchmark",
        "strategies": ["exact", "numpy"],
        "ops": ["sum", "max"],
        "sizes": [1000, 1 << 20],
        "caches": ["hot"],
        "distribution": "uniform",
        "parameters": {"low": -1, "high": 0.5},
        "time_limit_s": 0.25,
        "priority": "high",
    },
    {"kind": "benchmark", "strategies": ["exact", "numpy"], "rows": [10, 20], "columns": [3], "axis": [0, 1]},
    {"kind": "benchmark", "strategies": ["polars"], "rows": [10], "groups": [3], "key_order": ["sorted", "random"]},
    {"kind": "reduce", "source": {"type": "path", "path": "x.npy"}, "axis": [0], "backend": "gang"},
    {"kind": "reduce", "source": {"type": "array", "path": "x.nc"}, "axis": ["time", 1]},
    {
        "kind": "reduce",
        "source": {"type": "table", "path": "x.csv", "delimiter": ";", "header": False, "thousands": "."},
    },
    {
        "kind": "groupby",
        "source": {"type": "table", "path": "x.csv", "decimal": ","},
        "by": ["region", {"column": "day", "name": "date"}],
        "aggregations": [
            {"op": "quantile", "column": "price", "q": [0.5, 0.99]},
            {"op": "std", "column": "price", "ddof": 1},
            {"op": "sum", "column": "units, sold", "name": "units"},
        ],
    },
    {
        "kind": "groupby",
        "by": [{"source": {"type": "path", "path": "keys.npy"}}],
        "aggregations": [{"op": "max", "source": {"type": "path", "path": "x.npy"}}],
    },
]


def read_back(spec: Mapping[str, Any]) -> object:
    """What comes of a spec that is put into the form and submitted as it stands."""
    typed = typed_from(job_spec.validate_python(spec).model_dump(mode="json"))
    return job_spec.validate_json(json.dumps(spec_of(form_for(str(spec["kind"]), typed), typed)))


def test_every_kind_has_a_form_that_begins_with_something_acceptable() -> None:
    assert kinds() == KINDS
    for kind in KINDS:
        typed = blank(kind)
        spec = spec_of(form_for(kind, typed), typed)
        assert job_spec.validate_json(json.dumps(spec)).kind == kind


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec["kind"])
def test_a_spec_survives_the_form(spec: Mapping[str, Any]) -> None:
    assert read_back(spec) == job_spec.validate_python(spec)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=8))
def test_values_survive_the_form_to_the_last_bit(values: list[float]) -> None:
    spec = {"kind": "reduce", "source": {"type": "values", "values": values, "dtype": "float64"}}
    [elements] = [json.loads(job_spec.dump_json(read_back(spec)))["source"]["values"]]  # type: ignore[arg-type]
    assert [float(element).hex() for element in elements] == [value.hex() for value in values]


@pytest.mark.parametrize(
    ("values", "dtype"),
    [([1.0, 2.0], "float64"), ([-0.0], "float64"), ([2**53 + 1], "int64"), ([2**64 - 1], "uint64"), ([True], "bool")],
)
def test_values_keep_their_kind_in_the_form(values: list[float], dtype: str) -> None:
    typed = typed_from({"kind": "reduce", "op": "sum", "source": {"type": "values", "values": values}})
    spec = spec_of(form_for("reduce", typed), typed)
    assert repr(spec["source"]["values"]) == repr(values)
    assert json.loads(job_spec.dump_json(job_spec.validate_python(spec)))["source"]["dtype"] == dtype


def test_an_integer_of_many_digits_is_no_float() -> None:
    typed = {"kind": ["reduce"], "op": ["sum"], "source.type": ["values"], "source.values": [f"{10**40} 0.5"]}
    assert spec_of(form_for("reduce", typed), typed)["source"]["values"] == [str(10**40), 0.5]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1000", 1000),
        ("1_000_000", 10**6),
        ("1e6", 10**6),
        ("2.5E3", 2500),
        ("2^20", 1 << 20),
        ("2**30", 1 << 30),
        ("-7", -7),
        ("1.5", "1.5"),
        ("2.55e1", "2.55e1"),
        ("many", "many"),
        ("", ""),
    ],
)
def test_sizes_are_read_as_people_write_them(text: str, value: object) -> None:
    assert integer(text) == value


@given(st.text(max_size=40))
def test_any_text_is_a_number_or_stays_what_it_was(text: str) -> None:
    assert isinstance(integer(text), int | str)


def test_what_is_left_as_it_would_be_by_itself_is_left_out() -> None:
    typed = blank("reduce")
    spec = spec_of(form_for("reduce", typed), typed)
    assert set(spec) == {"kind", "source"}


def test_fields_follow_op_distribution_and_type() -> None:
    def names(**chosen: str) -> set[str]:
        typed = {name.replace("__", "."): [value] for name, value in chosen.items()}
        return {field.name for field in form_for("reduce", typed).flat()}

    assert "source.values" in names(source__type="values")
    assert "source.parameters.sigma" in names(source__type="generate", source__distribution="lognormal")
    assert "source.parameters.sigma" not in names(source__type="generate", source__distribution="uniform")
    assert "other.type" in names(op="dot")
    assert "other.type" not in names(op="sum")
    assert "ddof" in names(op="std")
    assert "ddof" not in names(op="sum")


def test_a_bad_value_marks_its_field_and_everything_stays(ann: Window, api: Api) -> None:
    answer = ann.post(
        "/jobs/new",
        data={"kind": "reduce", "op": "sum", "source.type": "generate", "source.distribution": "normal",
              "source.n": "many", "tags": "course=p05"},
    )  # fmt: skip
    assert answer.status_code == 422
    field = answer.text.partition('id="f-source-n"')[2].partition(">")[0]
    assert 'aria-invalid="true"' in field
    assert 'value="many"' in field
    assert "course=p05</textarea>" in answer.text
    assert api.client().get("/v1/jobs").json()["items"] == []


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        ({"source.type": "values", "source.values": "1, x"}, "source.values"),
        ({"source.type": "values"}, "source.values"),
        ({"source.type": "path", "source.path": "/etc/passwd"}, "source.path"),
        ({"source.type": "values", "source.values": "1", "tags": "=x"}, "tags"),
        ({"source.type": "values", "source.values": "1", "timeout_s": "-1"}, "timeout_s"),
        ({"source.type": "generate", "source.n": "-1"}, "source.n"),
        ({"source.type": "generate", "source.n": "9", "source.parameters.sigma": "-1"}, "source.parameters.sigma"),
    ],
)
def test_each_fault_is_shown_at_its_field(ann: Window, typed: dict[str, str], field: str) -> None:
    fields = {"kind": "reduce", "op": "sum", "source.distribution": "lognormal", **typed}
    answer = ann.post("/jobs/new", data=fields)
    assert answer.status_code == 422
    assert f'id="f-{field.replace(".", "-")}-error"' in answer.text


@pytest.mark.parametrize("kind", ["", "nonsense", "<script>"])
def test_an_unknown_kind_is_the_first(ann: Window, kind: str) -> None:
    assert ann.post("/jobs/new/preview", data={"kind": kind}).status_code == 200
    assert 'value="reduce"' in ann.get("/jobs/new", params={"kind": kind}).text


def test_the_preview_is_what_would_be_sent(ann: Window, api: Api) -> None:
    job = ann.post("/jobs/new", data={"kind": "cluster", "puzzle": "reduction", "nonce": "abc"})
    again = ann.post("/jobs/new", data={"kind": "cluster", "puzzle": "reduction", "nonce": "abc"})
    other = ann.post("/jobs/new", data={"kind": "cluster", "puzzle": "coordination", "nonce": "abc"})
    assert job.headers["Location"] == again.headers["Location"] != other.headers["Location"]
    text = ann.post("/jobs/new/preview", data={"kind": "cluster", "puzzle": "reduction"}).text
    assert "&#34;kind&#34;: &#34;cluster&#34;" in text
    assert "from warpfold import Client" in text
    assert "The server would accept this, but no slot takes it now." in text
    api.database.run(workers.report, WORKER, "idle", None, 60.0)
    typed = {"kind": "cluster", "puzzle": "reduction"}
    text = ann.post("/jobs/new/preview", data=typed).text
    assert "The server would accept this, and has a slot that can run it." in text
    text = ann.post("/jobs/new/preview", data={**typed, "backend": "cuda"}).text
    assert "but no slot takes it now." in text
    assert "No live worker serves a GPU" in text


def test_the_python_of_a_form_imports_what_there_is() -> None:
    script = python_of("http://here", {"kind": "three_numbers"})
    before, _, _ = script.partition("with Client")
    names: dict[str, Any] = {}
    exec(before, names)  # noqa: S102 - our own script, as far as it needs no service
    assert (names["Client"], names["spec"]) == (Client, {"kind": "three_numbers"})


def test_a_dtype_of_values_is_no_dtype_of_a_tables_text_and_a_path_stays_a_path() -> None:
    typed = {"kind": ["reduce"], "was.source": ["values"], "source.dtype": ["float32"], "timeout_s": ["9"]}
    of_table = carried_over("reduce", {**typed, "source.type": ["table"]})
    assert ("source.dtype" in of_table, of_table["timeout_s"]) == (False, ["9"])
    assert carried_over("reduce", {**typed, "source.type": ["values"]})["source.dtype"] == ["float32"]
    named = {"kind": ["reduce"], "was.source": ["array"], "source.type": ["table"], "source.path": ["x.parquet"]}
    assert carried_over("reduce", named) == named


def test_a_look_reads_text_as_the_form_says() -> None:
    text = {"delimiter": ";", "decimal": ",", "encoding": "latin-1", "header": False}
    source = {"type": "table", "path": "x.csv", "column": "y", **text}
    typed = typed_from(job_spec.validate_python({"kind": "reduce", "source": source}).model_dump(mode="json"))
    asked = look_for(form_for("reduce", typed), typed, "source").source.model_dump(exclude_unset=True)
    assert {name: asked.get(name) for name in text} == text
    assert "column" not in asked
