"""Parameters of ops in specs: what is refused names its field, and quantiles go to slots that have them."""

from typing import Any

import pytest
from pydantic import ValidationError

from warpfold.contract.kinds.groupby import GroupbySpec
from warpfold.contract.kinds.reduce import ReduceSpec
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import Parameters

VALUES: dict[str, Any] = {"type": "values", "values": [1.0, 2.0, 4.0]}


def reduce(**fields: Any) -> ReduceSpec:
    return ReduceSpec.model_validate({"kind": "reduce", "op": "quantile", "source": VALUES, **fields})


def by_key(*asked: dict[str, Any], **fields: Any) -> GroupbySpec:
    table = {"type": "table", "path": "x.parquet"}
    return GroupbySpec.model_validate(
        {"kind": "groupby", "source": table, "by": ["k"], "aggregations": [{"column": "x", **each} for each in asked]}
        | fields
    )


def refused(make: Any) -> tuple[str, str]:
    """The field and the message of the first fault."""
    with pytest.raises(ValidationError) as caught:
        make()
    first = caught.value.errors(include_url=False)[0]
    error = first.get("ctx", {}).get("error")
    if isinstance(error, InvalidInput):
        return str(error.field), str(error)
    return ".".join(map(str, first["loc"])), first["msg"]


@pytest.mark.parametrize(
    ("fields", "field", "says"),
    [
        ({"q": 1.5}, "q", "q is 1.5; a quantile lies between 0 and 1"),
        ({"q": [0.5, -1]}, "q.1", "q is -1"),
        ({"q": float("nan")}, "q", "Should be a number from 0 to 1, or a list of 1 to 1,000 such numbers"),
        ({"q": "0.5"}, "q", "Should be a number from 0 to 1"),
        ({"q": True}, "q", "Should be a number from 0 to 1"),
        ({"q": []}, "q", "Should be a number from 0 to 1"),
        ({"q": [0.5] * 1001}, "q", "Should be a number from 0 to 1"),
        ({"method": "middle"}, "method", "unknown method 'middle'; known: inverted_cdf"),
        ({"op": "sum", "q": 0.5}, "q", "sum takes no q"),
        ({"op": "sum", "digits": 5}, "digits", "mean, median and quantile alone are rounded to digits"),
        ({"op": "mean", "digits": 0}, "digits", "greater than or equal to 1"),
        ({"op": "mean", "digits": 5}, "digits", "decimals and integers alone are rounded to digits: a float"),
        ({"op": "median", "method": "hazen"}, "method", "median takes no method"),
        ({"backend": "dask"}, "op", "quantile is not combined from partitions"),
        ({"op": "nth", "n": 1_000}, "n", "n is 1,000; it lies between -1,000 and 999"),
        ({"op": "nth", "n": 0.5}, "n", "valid integer"),
        ({"op": "first", "n": 1}, "n", "first takes no n"),
        ({"op": "top_k", "k": 0}, "k", "k is 0; it lies between 1 and 1,000"),
        ({"op": "max", "k": 2}, "k", "max takes no k"),
        ({"op": "top_k", "k": 2, "backend": "dask"}, "op", "top_k is not combined from partitions"),
        ({"op": "histogram", "bins": [0, 2, 1]}, "bins.2", "the edge 1 is less than 2 before it"),
        ({"op": "histogram", "bins": [0]}, "bins", "or a list of 2 to 1,001 edges"),
        ({"op": "histogram", "bins": 1_001, "range": [0, 1]}, "bins", "bins is 1,001"),
        ({"op": "histogram", "bins": 4}, "range", "a number of bins needs a range"),
        ({"op": "histogram", "range": [0, 1]}, "bins", "a range needs a number of bins"),
        ({"op": "histogram", "bins": [0, 1], "range": [0, 1]}, "range", "edges are no number of bins"),
        ({"op": "histogram", "bins": 4, "range": [1, 1]}, "range", "the range [1, 1] does not rise"),
        ({"states": True, "axis": 0}, "states", "values of quantile have no exact state"),
    ],
)
def test_what_a_reduction_has_not_is_refused_by_its_field(fields: dict[str, Any], field: str, says: str) -> None:
    named, message = refused(lambda: reduce(**fields))
    assert named == field
    assert says in message


@pytest.mark.parametrize(
    ("asked", "fields", "field", "says"),
    [
        ({"op": "quantile", "q": 2}, {}, "aggregations.1.q", "q is 2"),
        ({"op": "max", "method": "lower"}, {}, "aggregations.1.method", "max takes no method"),
        ({"op": "median"}, {"backend": "cuda"}, "backend", "median needs the backend cpu or auto"),
        ({"op": "top_k", "k": -1}, {}, "aggregations.1.k", "k is -1"),
        ({"op": "first"}, {"backend": "cuda"}, "backend", "first needs the backend cpu or auto"),
        ({"op": "quantile", "q": [0.5, 0.5]}, {}, "aggregations.1.name", "'x_quantile_0.5' is the name of"),
    ],
)
def test_what_groups_have_not_is_refused_by_its_field(
    asked: dict[str, Any], fields: dict[str, Any], field: str, says: str
) -> None:
    named, message = refused(lambda: by_key({"op": "sum"}, asked, **fields))
    assert named == field
    assert says in message


def test_quantiles_take_any_slot_but_by_key_and_say_what_they_are() -> None:
    assert reduce(q=0.25, backend="cuda").needs() == reduce(q=[0, 0.5], axis=0, backend="cuda").needs() == "cuda"
    assert reduce(q=0.25).needs() == "any"
    assert by_key({"op": "median"}).needs() == "cpu"
    assert (
        reduce(q=[0.25, 0.5])
        .summary({"op": "quantile", "q": [0.25, 0.5], "method": "hazen"})[0]
        .startswith("quantile 0.25, 0.5 (hazen) of")
    )
    assert "quantile 0.1 of" in reduce(q=0.1).description()
    assert "top_k 3 of" in reduce(op="top_k", k=3).description()
    assert "histogram 0…9 of" in reduce(op="histogram", bins=[0, 1, 9]).description()
    assert (reduce(op="nth", n=-2).needs(), reduce(op="bottom_k", k=2).needs()) == ("any", "cpu")


def test_a_spec_without_parameters_is_stored_as_before() -> None:
    stored = ReduceSpec.model_validate({"kind": "reduce", "op": "sum", "source": VALUES}).model_dump(mode="json")
    assert not {*Parameters.names()} & stored.keys()
    assert [name for name, _ in by_key({"op": "quantile", "q": [0, 0.75]}).aggregations[0].columns()] == [
        "x_quantile_0",
        "x_quantile_0.75",
    ]
    assert [name for name, _ in by_key({"op": "top_k", "k": 2}).aggregations[0].columns()] == ["x_top_k_0", "x_top_k_1"]
