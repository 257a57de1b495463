"""Group-by specs: what goes together, and which field an error names."""

from typing import Any

import pytest
from pydantic import ValidationError

from warpfold.contract.jobs import brief_of, job_spec, summary_of
from warpfold.contract.kinds.groupby import BriefGroupbySpec, GroupbySpec
from warpfold.contract.kinds.spec import Changes
from warpfold.kernels.errors import InvalidInput

TABLE = {"type": "table", "path": "sales.parquet"}
VALUES = {"type": "values", "values": [1.0, 2.0]}
WORDS = {"type": "values", "values": ["a", "b"]}
SUM = {"op": "sum", "column": "price"}


def spec(**fields: Any) -> GroupbySpec:
    made = job_spec.validate_python({"kind": "groupby", "by": ["region"], "aggregations": [SUM], **fields})
    assert isinstance(made, GroupbySpec)
    return made


def test_a_name_is_short_for_a_column_and_results_are_called_by_column_and_op() -> None:
    made = spec(source=TABLE, by=["region", {"column": "year", "name": "y"}])
    assert [key.label for key in made.by] == ["region", "y"]
    assert [asked.label for asked in made.aggregations] == ["price_sum"]
    assert (made.needs(), made.small(), made.dropna, made.sort) == ("cpu", False, True, True)
    assert summary_of("groupby", made.model_dump(mode="json")) == "sum of price by region, year · table sales.parquet"


def test_a_gpu_takes_what_it_computes_and_unasked_only_many_rows_that_it_makes() -> None:
    def of(n: int, dtype: str = "int32", **fields: Any) -> GroupbySpec:
        key = {"type": "generate", "distribution": "modulo", "n": n, "dtype": dtype}
        made = {"source": {"type": "generate", "distribution": "normal", "n": n}}
        return spec(by=[{"source": key}], **{"aggregations": [made], **fields})

    assert spec(source=TABLE, backend="cuda").needs() == "cuda"
    assert [of(n).needs() for n in (1 << 23, 1 << 24)] == ["cpu", "gpu_first"]
    assert of(1 << 24, backend="cpu").needs() == "cpu"
    assert of(1 << 24, sort=False).needs() == "cpu"
    aggregation = {"source": {"type": "values", "values": [1.0, 2.0]}}
    assert of(2, aggregations=[aggregation]).needs() == "cpu"
    assert of(9).changed(Changes(backend="cuda")).needs() == "cuda"
    product = {"source": {"type": "generate", "distribution": "modulo", "n": 9, "dtype": "int64"}, "op": "prod"}
    with pytest.raises(ValidationError, match=r"by key a GPU computes .*: prod of int64 needs the backend cpu"):
        of(9, aggregations=[product], backend="cuda")
    assert of(9, aggregations=[product]).needs() == "cpu"
    assert of(9, aggregations=[{**product, "op": "var"}], backend="cuda").needs() == "cuda"
    for dtype in ("bfloat16", "float32", "float64"):
        short = {"source": {"type": "generate", "distribution": "normal", "n": 9, "dtype": dtype}}
        assert of(9, aggregations=[short], states=True, backend="cuda").needs() == "cuda"
    assert of(1 << 24, states=True).needs() == "cpu"


def test_a_gang_takes_groups_where_it_is_named() -> None:
    whole = {"source": VALUES, "op": "sum"}
    made = spec(by=[{"source": WORDS}], aggregations=[whole], backend="gang")
    assert (made.needs(), made.small()) == ("gang", False)
    numbers = {"type": "values", "values": [1, 2], "dtype": "int64"}
    with pytest.raises(ValidationError, match=r"by key a GPU computes every op but .* and products of numbers"):
        spec(by=[{"source": WORDS}], aggregations=[{"source": numbers, "op": "prod"}], backend="gang")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "by.0.source"),
        ({"source": TABLE, "by": [{"name": "x"}]}, "by.0.column"),
        ({"source": TABLE, "by": [], "backend": "dask"}, "by"),
        ({"source": TABLE, "by": [], "states": True}, "by"),
        ({"source": TABLE, "aggregations": []}, "aggregations"),
        ({"source": TABLE, "aggregations": [{**SUM, "source": VALUES}]}, "aggregations.0.column"),
        ({"source": TABLE, "aggregations": [{"op": "dot", "column": "x"}]}, "aggregations.0.op"),
        ({"source": TABLE, "aggregations": [{**SUM, "ddof": 1}]}, "aggregations.0.ddof"),
        ({"source": TABLE, "aggregations": [SUM, SUM]}, "aggregations.1.name"),
        ({"source": TABLE, "aggregations": [{**SUM, "name": "region"}]}, "aggregations.0.name"),
        ({"source": TABLE, "backend": "cuda", "aggregations": [{"op": "prod", "column": "x"}]}, "backend"),
        ({"by": [{"source": WORDS}], "aggregations": [{"source": {**VALUES, "values": [1]}}]}, "aggregations.0.source"),
        ({"by": [{"source": WORDS}], "aggregations": [{"op": "prod", "source": VALUES}]}, "aggregations.0.op"),
        (
            {
                "by": [{"source": {"type": "generate", "distribution": "normal", "n": 2, "dtype": "float16"}}],
                "aggregations": [{"source": VALUES}],
            },
            "by.0.source",
        ),
        ({"by": [{"source": {**WORDS, "values": ["a", 1]}}], "aggregations": [{"source": VALUES}]}, "values"),
        ({"by": [{"source": {**WORDS, "values": ["a", 1.5]}}], "aggregations": [{"source": VALUES}]}, "values"),
    ],
)
def test_what_does_not_go_together_names_its_field(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        spec(**fields)
    error = caught.value.errors()[0]
    cause = error.get("ctx", {}).get("error")
    named = cause.field if isinstance(cause, InvalidInput) else ".".join(map(str, error["loc"]))
    assert words in str(named)


def test_many_given_values_are_shown_in_brief() -> None:
    many = list(range(100))
    made = spec(
        by=[{"source": {"type": "values", "values": many}}],
        aggregations=[{"source": {"type": "values", "values": many}}],
    )
    assert made.small()
    brief = brief_of(made)
    assert brief is not None
    shown = BriefGroupbySpec.model_validate_json(brief)
    assert (shown.by, shown.aggregations, shown.rows) == (("key",), ("sum of sum",), 100)
    assert summary_of("groupby", shown.model_dump(mode="json")) == "sum of sum by key · 100 rows"
