"""Data frames that the service groups by their keys."""

import asyncio
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
from warpfold.client import AsyncClient, Client, GroupbyResult, JobFailed

SALES: dict[str, list[Any]] = {
    "region": ["south", "north", "south", "north"],
    "price": [1e16, 2.5, 1.0, -2.5],
    "sold": [3, 1, 5, 1],
}
PICKED = {
    "sold_top_k_0": [1, 5], "sold_top_k_1": [1, 3], "sold_histogram_0": [0, 0], "sold_histogram_1": [2, 2],
    "sold_first": [1, 3], "sold_nth": [1, 5],
}  # fmt: skip
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
    frame = pd.DataFrame({"k": [2, 1, None, 2], "x": [0.1, None, 0.3, 0.2]}).astype({"k": "Int64"})
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


def test_what_is_wrong_names_the_column(client: Client) -> None:
    with pytest.raises(KeyError, match=r"no column 'prize'; did you mean 'price'\?"):
        client.groupby(SALES, "region").sum("prize")
    with pytest.raises(KeyError, match="no column 'cost of it'; there are 'region', 'price', 'sold'"):
        client.groupby(SALES, "region").sum("cost of it")
    with pytest.raises(KeyError, match=r"no column 'regoin'; did you mean 'region'\?"):
        client.groupby(pd.DataFrame(SALES), "regoin").sum("price")
    with pytest.raises(JobFailed, match="floats are no keys"):
        client.groupby(SALES, "price").sum("sold")
    with pytest.raises(TypeError, match="not a table of columns"):
        client.groupby([1, 2], "region").sum("price")
    with pytest.raises(ValueError, match="name a column"):
        client.groupby(SALES, "region").agg()


def test_asyncio_gives_the_same(service: Service) -> None:
    async def use() -> Any:
        async with AsyncClient(service.url, service.token) as client:
            return await client.groupby(pl.DataFrame(SALES), "region").mean("sold")

    assert asyncio.run(use()).to_dict(as_series=False) == {"region": ["north", "south"], "sold": [1.0, 4.0]}
