"""Data frames that the service groups by their keys."""

import asyncio
import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.support.service import Service
from warpfold.client import AsyncClient, Client, GroupbyResult
from warpfold.kernels.errors import InvalidInput

SALES: dict[str, list[Any]] = {
    "region": ["south", "north", "south", "north"],
    "price": [1e16, 2.5, 1.0, -2.5],
    "sold": [3, 1, 5, 1],
}
PICKED = {
    "sold_top_k_0": [1, 5], "sold_top_k_1": [1, 3], "sold_histogram_0": [0, 0], "sold_histogram_1": [2, 2],
    "sold_first": [1, 3], "sold_nth": [1, 5],
}  # fmt: skip
NOON = dt.datetime(2026, 1, 2, 12, tzinfo=dt.UTC)
SUMS = {"region": ["north", "south"], "price": [0.0, 1e16 + 1], "sold": [2, 8]}


def test_a_frame_comes_back_as_a_frame_of_its_library(client: Client) -> None:
    in_pandas = client.groupby(pd.DataFrame(SALES), "region").sum()
    assert isinstance(in_pandas, pd.DataFrame)
    assert in_pandas.to_dict("list") == SUMS
    in_polars = client.groupby(pl.DataFrame(SALES).with_columns(pl.col("region").cast(pl.Categorical)), "region").sum(
        "price"
    )
    assert isinstance(in_polars, pl.DataFrame)
    assert in_polars.to_dict(as_series=False) == {"region": SUMS["region"], "price": SUMS["price"]}
    twice = client.groupby(pd.DataFrame(SALES), "region").agg(least=("price", "min"), most=("price", "max"))
    assert twice.to_dict("list") == {"region": ["north", "south"], "least": [-2.5, 1.0], "most": [2.5, 1e16]}
    middle = client.groupby(pd.DataFrame(SALES), "region").median("price")
    assert middle.to_dict("list") == {"region": ["north", "south"], "price": [0.0, (1e16 + 1) / 2]}
    assert client.groupby(pd.DataFrame(SALES), "region").nunique()["sold"].to_list() == [1, 2]
    several = client.groupby(pl.DataFrame(SALES), "region").quantile("sold", q=[0, 0.75], method="lower")
    assert several.to_dict(as_series=False) == {"region": ["north", "south"], "sold_0": [1, 3], "sold_0.75": [1, 3]}
    picked = client.groupby(pd.DataFrame(SALES), "region").agg(
        {"sold": ["top_k", "histogram", "first", "nth"]}, parameters={"k": 2, "bins": [0, 1, 5], "n": -1}
    )
    assert picked.drop(columns="region").to_dict("list") == PICKED
    table = client.groupby(SALES, ["region"]).agg(
        {"price": "sum", "sold": ["sum", "max"]}, n=("price", "count_nonzero")
    )
    assert isinstance(table, pa.Table)
    assert table.to_pydict() == {
        "region": ["north", "south"], "price_sum": [0.0, 1e16 + 1], "sold_sum": [2, 8], "sold_max": [1, 5], "n": [2, 2],
    }  # fmt: skip


MOST = 2**63 - 1


@pytest.mark.parametrize(
    ("column", "op", "value"),
    [
        (pl.Series([MOST] * 2), "sum", 2 * MOST),
        (pl.Series([MOST] * 2), "sum_squares", str(2 * MOST**2)),
        (pl.Series([6 * 10**18 + 1] * 2), "sum_squares", Decimal(2 * (6 * 10**18 + 1) ** 2)),
        (pl.Series([2**64 - 1] * 2, dtype=pl.UInt64), "sum_squares", str(2 * (2**64 - 1) ** 2)),
        (pl.Series([MOST] * 3), "prod", str(MOST**3)),
        (pl.Series([MOST] * 5), "prod", str(MOST**5)),
        (pl.Series([Decimal("9" * 38)] * 2), "sum", str(2 * int("9" * 38))),
        (pl.Series([Decimal("9" * 38)] * 2), "max", Decimal("9" * 38)),
        (pl.Series([Decimal(f"0.{'9' * 38}")] * 2, dtype=pl.Decimal(38, 38)), "sum", f"1.{'9' * 37}8"),
        (pl.Series([Decimal("-1e-9")] * 2, dtype=pl.Decimal(38, 9)), "sum", Decimal("-2e-9")),
        (pl.Series([None] * 2, dtype=pl.Decimal(38, 9)), "max", None),
    ],
)
def test_values_of_any_length_come_back_as_a_frame_of_polars(
    client: Client, column: pl.Series, op: str, value: object
) -> None:
    """Its decimals have 38 digits, so longer values are strings."""
    frame = pl.DataFrame({"k": [1] * len(column), "x": column})
    made = client.groupby(frame, "k").agg(x=("x", op))
    assert isinstance(made, pl.DataFrame)
    assert made["x"].to_list() == [value]
    assert client.groupby(frame.to_arrow(), "k").agg(x=("x", op))["x"].to_pylist() == [
        value if value is None else Decimal(str(value)) if len(str(value)) <= 77 else value
    ]


@pytest.mark.parametrize(
    ("numbers", "total"),
    [
        ([2**63], 2**63),
        ([2**63, 1], 2**63 + 1),
        ([2**64 - 1, None], 2**64 - 1),
        ([2**64], 2**64),
        ([-(2**63) - 1, 1], -(2**63)),
        ([2**63, -1], 2**63 - 1),
        ([2**200, -(2**200), 5], 5),
        ([10**75, 1], 10**75 + 1),
        ([1, 2], 3),
        ([None, 4], 4),
    ],
)
def test_integers_of_a_list_are_grouped_whatever_their_size(
    client: Client, numbers: list[int | None], total: int
) -> None:
    made = client.groupby({"k": ["a"] * len(numbers), "x": numbers}, "k").sum("x")
    assert int(made["x"][0].as_py()) == total


def test_integers_that_no_type_holds_are_refused(client: Client) -> None:
    for data in ({"k": [1], "x": [2**300]}, pd.DataFrame({"k": [1], "x": [2**300]})):
        with pytest.raises(TypeError, match="is not a table of columns"):
            client.groupby(data, "k").sum("x")


def test_nulls_files_and_many_groups(client: Client, tmp_path: Path) -> None:
    frame = pd.DataFrame({"k": [2, 1, None, 2], "x": [0.1, None, 0.3, 0.2]}).astype({"k": "Int64", "x": "Float64"})
    kept = client.groupby(frame, "k", dropna=False, sort=False).sum("x")
    assert kept["x"].tolist() == [0.30000000000000004, 0.0, 0.3]
    many = pa.table({"k": np.arange(10_001), "x": np.ones(10_001, np.float32)})
    parquet.write_table(many, tmp_path / "many.parquet")
    deviations = client.groupby(tmp_path / "many.parquet", "k", filter={"op": ">", "column": "k", "value": 9_998}).std(
        "x"
    )
    assert deviations.to_pydict() == {"k": [9_999, 10_000], "x": [0.0, 0.0]}
    summed = client.groupby(many, "k").sum("x")
    assert summed.num_rows == 10_001
    assert summed["x"].type == pa.float32()
    job = next(iter(client.jobs(limit=1)))
    assert isinstance(job.result, GroupbyResult)
    assert job.result.artefact is not None
    with pytest.raises(ValueError, match="stored in files"):
        job.result.to_arrow()


@pytest.mark.parametrize(
    ("keys", "groups"),
    [
        (pd.Series([NOON.date(), dt.date(2026, 1, 1), None, NOON.date()]), ["2026-01-01", "2026-01-02"]),
        (
            pd.Series([NOON, NOON.replace(year=1960), None, NOON]),
            ["1960-01-02 12:00:00+00:00", "2026-01-02 12:00:00+00:00"],
        ),
        (pd.Series([0.5, -0.0, np.nan, 0.5]), ["0.0", "0.5"]),
        (pd.Series([np.inf, -np.inf, np.nan, np.inf], dtype=np.float32), ["-inf", "inf"]),
    ],
)
def test_dates_timestamps_and_floats_are_keys(client: Client, keys: pd.Series, groups: list[str]) -> None:
    frame = pd.DataFrame({"k": keys, "x": [1.0, 2.0, 4.0, 8.0]})
    made = client.groupby(frame, "k").sum()
    assert [str(key) for key in made["k"]] == groups
    assert made["x"].tolist() == [2.0, 9.0]
    assert len(client.groupby(frame, ["k", "x"]).agg(n=("x", "count"))) == 3
    kept = client.groupby(frame, "k", dropna=False).sum()
    assert kept["x"].tolist() == [2.0, 9.0, 4.0]
    assert kept["k"].isna().tolist() == [False, False, True]


def test_groups_have_sizes_counts_and_descriptions(client: Client, tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"k": ["a", "b", "a", None], "x": [1.0, np.nan, 3.0, 5.0], "n": [1, 2, 3, 4], "word": list("wxyz")}
    )
    groups = client.groupby(frame, "k")
    assert groups.size().to_dict("list") == {"k": ["a", "b"], "size": [2, 1]}
    assert client.groupby(frame, "k", dropna=False).size()["size"].tolist() == [2, 1, 1]
    assert groups.count("x").to_dict("list") == {"k": ["a", "b"], "x": [2, 1]}
    assert groups.max().columns.tolist() == ["k", "x", "n"], "columns of numbers alone"
    described = groups.describe("n", q=[0.5])
    want = frame.groupby("k")["n"].describe(percentiles=[0.5])
    for ours, theirs in (("count", "count"), ("mean", "mean"), ("std", "std"), ("quantile_0.5", "50%"), ("max", "max")):
        assert np.array_equal(described[f"n_{ours}"].to_numpy(float), want[theirs].to_numpy(), equal_nan=True)
    frame.to_csv(tmp_path / "x.csv", index=False)
    assert client.groupby(tmp_path / "x.csv", "k").size().to_pydict() == {"k": ["a", "b"], "size": [2, 1]}
    with pytest.raises(ValueError, match="no column of numbers"):
        client.groupby(frame[["k", "word"]], "k").sum()


def test_a_nan_is_a_number_wherever_it_comes_from(client: Client) -> None:
    """A column of pandas of one of NumPy's dtypes has no nulls, in `reduce` as well as in `groupby`."""
    frame = pd.DataFrame({"k": [1, 1], "x": [1.5, np.nan]})
    plain = {"k": [1, 1], "x": [1.5, float("nan")]}
    for data in (frame, {"k": [1, 1], "x": frame["x"]}, plain, pl.DataFrame(plain)):
        (total,) = list(client.groupby(data, "k").sum("x")["x"])
        (without,) = list(client.groupby(data, "k", nan_policy="omit").sum("x")["x"])
        assert np.isnan(float(str(total)))
        assert float(str(without)) == 1.5
    assert np.isnan(float(str(client.reduce(frame["x"]).value)))
    assert client.reduce(frame["x"], nan_policy="omit").value == 1.5


def test_what_is_wrong_names_the_column(client: Client) -> None:
    with pytest.raises(KeyError, match=r"no column 'prize'; did you mean 'price'\?"):
        client.groupby(SALES, "region").sum("prize")
    with pytest.raises(KeyError, match="no column 'cost of it'; there are 'region', 'price', 'sold'"):
        client.groupby(SALES, "region").sum("cost of it")
    with pytest.raises(KeyError, match=r"no column 'regoin'; did you mean 'region'\?"):
        client.groupby(pd.DataFrame(SALES), "regoin").sum("price")
    with pytest.raises(InvalidInput, match=r"holds 'tags' as list<.*: keys are integers, .* and dates"):
        client.groupby({**SALES, "tags": [["a"]] * 4}, "tags").sum("sold")
    with pytest.raises(InvalidInput, match="holds column 'region' as string, which is not reduced"):
        client.groupby(SALES, "sold").sum("region")
    with pytest.raises(TypeError, match="not a table of columns"):
        client.groupby([1, 2], "region").sum("price")
    with pytest.raises(ValueError, match="name a column"):
        client.groupby(SALES, "region").agg()


def test_asyncio_gives_the_same(service: Service) -> None:
    async def use() -> Any:
        async with AsyncClient(service.url, service.token) as client:
            return await client.groupby(pl.DataFrame(SALES), "region").mean("sold")

    assert asyncio.run(use()).to_dict(as_series=False) == {"region": ["north", "south"], "sold": [1.0, 4.0]}
