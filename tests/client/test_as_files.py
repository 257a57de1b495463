"""Arrays and columns of times, decimals and complex numbers give what the files of them give, by every client."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest

from warpfold.client import Client, JobFailed, ReduceResult, local
from warpfold.client.array_files import ArrayAsFile
from warpfold.client.as_files import as_file
from warpfold.kernels.errors import InvalidInput

INSTANTS = np.array(["2026-01-01T12:00", "NaT", "2026-01-02T12:00"], "M8[ms]")
DURATIONS = np.array([[3, 5], [2**62, 2**62]], "m8[s]")
NUMBERS = np.array([1e16 + 1j, 1.0, -1e16], "c16")
PRICES = [Decimal("0.10"), Decimal("0.20"), None]
MOMENTS = [datetime(2026, 1, 1, tzinfo=UTC), None, datetime(2026, 1, 3, tzinfo=UTC)]


def _facts(result: ReduceResult) -> object:
    names = ("value", "hex", "dtype", "count", "nulls", "decimal", "time", "correctly_rounded")
    return {name: getattr(result, name) for name in names}


@pytest.mark.parametrize(
    ("array", "op"),
    [
        (INSTANTS, "mean"),
        (INSTANTS.astype(">M8[ns]"), "max"),
        (DURATIONS, "sum"),
        (DURATIONS.T, "argmax"),
        (NUMBERS, "sum"),
        (NUMBERS.astype("c8"), "norm2"),
    ],
)
def test_an_array_gives_what_its_file_gives(
    client: Client, tmp_path: Path, array: np.ndarray[Any, Any], op: str
) -> None:
    np.save(tmp_path / "x.npy", np.ascontiguousarray(array))
    of_file = client.reduce(tmp_path / "x.npy", op)
    assert _facts(client.reduce(array, op)) == _facts(of_file)
    here = local.reduce(array, op)
    value = here.value if here.imaginary is None else complex(here.value, here.imaginary)
    assert (value, here.dtype, here.count) == (of_file.value, of_file.dtype, of_file.count)


@pytest.mark.parametrize(
    "column",
    [
        pyarrow.chunked_array([MOMENTS[:1], MOMENTS[1:]], pyarrow.timestamp("us", "UTC")),
        pandas.Series(MOMENTS, dtype="datetime64[us, UTC]"),
        polars.Series(MOMENTS, dtype=polars.Datetime("us", "UTC")),
    ],
)
def test_a_column_keeps_its_time_zone_and_its_nulls(client: Client, column: Any) -> None:
    result = client.reduce(column, "mean")
    assert (result.dtype, result.count, result.nulls) == ("timestamp[us, tz=UTC]", 2, 1)
    assert result.time is not None
    assert result.time.iso == "2026-01-02T00:00:00.000000+00:00"
    assert local.reduce(column, "mean").value == result.value
    assert client.reduce(column, "max", null_policy="propagate").value is None
    with pytest.raises(JobFailed, match="null"):
        client.reduce(column, "max", null_policy="raise")
    with pytest.raises(InvalidInput, match="null"):
        local.reduce(column, "max", null_policy="raise")


@pytest.mark.parametrize(
    "column",
    [
        pyarrow.array(PRICES, pyarrow.decimal128(9, 2)),
        pandas.Series(PRICES),
        pandas.DataFrame({"price": pandas.Series(PRICES, dtype=pandas.ArrowDtype(pyarrow.decimal128(9, 2)))}),
        polars.Series("price", PRICES, dtype=polars.Decimal(9, 2)),
    ],
)
def test_decimals_of_a_column_are_added_exactly(client: Client, column: Any) -> None:
    result = client.reduce(column)
    assert (result.value, result.decimal, result.count, result.nulls) == (0.3, "0.30", 2, 1)
    assert local.reduce(column).decimal == "0.30"


def test_columns_of_durations_and_dates(client: Client) -> None:
    days = polars.Series([timedelta(days=1), None, timedelta(days=2)])
    assert client.reduce(days).time == client.reduce(days.to_arrow()).time
    assert client.reduce(pandas.Series([timedelta(days=1), pandas.NaT, timedelta(days=2)])).nulls == 1
    assert client.reduce(pyarrow.array([19_000, 19_002], pyarrow.date32()), "mean").value == 19_001
    assert client.reduce(pandas.DatetimeIndex(["2026-01-01", "2026-01-03"]), "min").count == 2


def test_two_arrays_of_which_one_is_complex(client: Client) -> None:
    weights = [2, 3, 2]
    for first, second in ((NUMBERS, weights), (weights, NUMBERS), (NUMBERS, np.array(weights, "f4"))):
        result = client.reduce(first, "dot", other=second)
        assert (result.value, result.count) == (3 + 2j, 3)
    assert local.reduce(NUMBERS, "dot", other=NUMBERS).count == 3


def test_many_arrays_and_uploads_go_the_same_way(client: Client) -> None:
    results: list[Any] = list(client.map("max", [INSTANTS, INSTANTS[:1]]))
    assert [result.nulls for result in results] == [1, 0]
    kept = client.upload(DURATIONS)
    assert (kept.dtype, kept.count) == ("timedelta64[s]", 4)
    assert client.submit_reduce(INSTANTS, "min").wait().succeeded


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (np.array(["2026-01"], "M8[M]"), r"datetime64\[M\]"),
        (np.array([1], "m8[10s]"), r"timedelta64\[10s\]"),
        (np.array([1], np.clongdouble), "complex256|clongdouble"),
        (pyarrow.array([1], pyarrow.time32("s")), r"time32\[s\]"),
        (pandas.Series(pandas.period_range("2026", periods=1, freq="M")), "Period"),
        ([INSTANTS, INSTANTS], "reduce it by itself"),
        (np.ma.masked_array(INSTANTS, [True, False, False]), "masked"),
        (pandas.DataFrame({"t": [pandas.Timestamp(0)], "x": [1.0]}), r"column 't': datetime64.* reduce it by itself"),
    ],
)
def test_what_no_file_keeps_is_refused_by_its_dtype(client: Client, data: Any, named: str) -> None:
    for reduce in (client.reduce, local.reduce):
        with pytest.raises(TypeError, match=named):
            reduce(data, "max")


def test_options_that_make_no_sense_are_refused(client: Client) -> None:
    with pytest.raises(TypeError, match=r"datetime64\[ms\] is not converted to float64"):
        client.reduce(INSTANTS, "max", dtype="float64")
    with pytest.raises(TypeError, match="column are options of a file"):
        client.reduce(INSTANTS, "max", column="x")
    with pytest.raises(JobFailed, match="sum takes no timestamp"):
        client.reduce(INSTANTS)


def test_numbers_go_on_as_they_did() -> None:
    for data in ([1.5], np.ones(2), polars.Series([1]), Path("x.npy"), {"a": 1}, pandas.DataFrame({"type": ["date"]})):
        assert as_file(data) is data or isinstance(data, pandas.DataFrame)
    assert isinstance(as_file(as_file(NUMBERS)), ArrayAsFile)
