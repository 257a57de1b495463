"""Reductions by the client, at a whole service: what it reduces, what it uploads, and what it refuses."""

import hashlib
import io
import math
import time
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest

from tests.support.service import Service
from warpfold.client import (
    Client,
    ExactState,
    JobFailed,
    ReduceArrayResult,
    ReduceResult,
    Refused,
)
from warpfold.kernels.errors import InvalidInput

LARGE = np.random.default_rng(5).standard_normal(30_000)


def test_the_column_of_an_uploaded_text_is_read_as_the_dtype_that_is_named(client: Client, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("x\n18446744073709551615\n")
    assert client.reduce(tmp_path / "x.csv", dtype="uint64").value == 2**64 - 1
    (tmp_path / "x.npy").write_bytes(b"")
    with pytest.raises(TypeError, match="is sent as it is"):
        client.reduce(tmp_path / "x.npy", dtype="uint64")


def test_a_list_is_reduced_exactly(client: Client) -> None:
    result = client.reduce([1e8, 1, -1e8], dtype="float32")
    assert (result.value, result.dtype, result.count) == (1.0, "float32", 3)
    assert result.correctly_rounded


def test_moments_correlations_and_weights_are_those_of_numpy(client: Client) -> None:
    x, y = LARGE, np.cos(LARGE)
    weights = np.arange(x.size) % 5
    assert client.reduce(x, "corr", other=y).value == pytest.approx(np.corrcoef(x, y)[0, 1], rel=1e-12)
    assert client.reduce(x, "mean", weights=weights).value == pytest.approx(np.average(x, weights=weights), rel=1e-12)
    rows = client.reduce(x.reshape(3, -1), "var", weights=weights.reshape(3, -1), axis=1)
    assert rows == pytest.approx(
        [float(np.cov(part, fweights=w, ddof=0)) for part, w in zip(np.split(x, 3), np.split(weights, 3), strict=True)]
    )
    by_key = client.groupby({"k": [1, 1, 2], "x": [1.0, 3.0, 5.0]}, "k").agg({"x": ["rms", "sem"]}, ddof=1)
    assert by_key["x_rms"].to_pylist() == [5**0.5, 5.0]
    assert by_key["x_sem"].to_pylist() == [1.0, None]
    with pytest.raises(JobFailed, match="weights"):
        client.reduce(x, "mean", weights=np.zeros(x.size))
    with pytest.raises(Refused, match="weights"):
        client.reduce([1.0, 2.0], "mean", weights=[1.0])


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (np.array([0.5, -0.0]), 0.5),
        (np.array([2**62, 2**62, 2**62]), 3 * 2**62),
        (np.array([[1, 2], [3, 4]], dtype=np.uint8), 10),
        (np.array([True, False, True]), 2),
        (pandas.Series([1.5, 2.5]), 4.0),
        (polars.Series([1, 2, 3]), 6),
        (range(5), 10),
        (np.float32(0.25), 0.25),
    ],
)
def test_whatever_holds_numbers_is_reduced(client: Client, data: object, expected: float) -> None:
    assert client.reduce(data).value == expected


@pytest.mark.parametrize("make", [pyarrow.array, polars.Series])
def test_nulls_of_a_column_are_left_out_and_counted(client: Client, make: Callable[[object], Any]) -> None:
    column = make([2**53 + 1, None, 5])
    result = client.reduce(column)
    assert (result.value, result.count, result.nulls) == (2**53 + 6, 2, 1)
    assert client.reduce(column, "max").value == 2**53 + 1
    assert client.submit_reduce(column).wait().status == "succeeded"
    with pytest.raises(TypeError, match="int64 has nulls"):
        client.reduce(column, null_policy="raise")
    with pytest.raises(TypeError, match="int64 has nulls"):
        client.reduce(column, "argmin")


@pytest.mark.parametrize("make", [pyarrow.array, polars.Series])
def test_a_null_of_a_column_propagates_where_the_policy_says_so(
    client: Client, make: Callable[[object], Any], tmp_path: Path
) -> None:
    for op in ("sum", "argmax"):
        result = client.reduce(make([1.5, None, 3.0]), op, null_policy="propagate")
        assert (result.value, result.hex, result.state, result.nulls) == (None, None, None, 1)
        assert result.count == 2
    assert client.reduce(make([1.5, 3.0]), "argmax", null_policy="propagate").value == 1
    with pytest.raises(TypeError, match="has nulls"):  # a job cannot be handed a null
        client.submit_reduce(make([1.5, None]), null_policy="propagate")
    pyarrow.parquet.write_table(pyarrow.table({"x": [1.5, None]}), tmp_path / "x.parquet")
    result = client.reduce(tmp_path / "x.parquet", null_policy="propagate")
    assert (result.value, result.nulls, result.count) == (None, 1, 1)


def test_an_array_of_zarr_is_reduced_as_it_lies(client: Client, tmp_path: Path) -> None:
    zarr: Any = pytest.importorskip("zarr")
    array = zarr.create_array(str(tmp_path / "x.zarr"), data=np.arange(12.0).reshape(3, 4), chunks=(2, 3))
    assert client.reduce(array).value == 66.0
    along: Any = client.reduce(array, axis=0)
    assert along.tolist() == [12.0, 15.0, 18.0, 21.0]


def test_a_reduction_goes_to_a_cluster_in_so_many_partitions(client: Client) -> None:
    for segments in (None, 100):
        job = client.submit_reduce(LARGE, backend="dask", partitions=3, segments=segments)
        assert (job.spec["backend"], job.spec["partitions"]) == ("dask", 3)
        job.cancel()
    with pytest.raises(Refused, match="partitions are for the backend dask"):
        client.reduce([1.5], backend="cpu", partitions=3)
    with pytest.raises(InvalidInput, match="partitions are for the backend dask"):
        client.groupby({"k": [1], "x": [1.5]}, "k", partitions=3).sum("x")


def test_times_of_a_file_have_words_beside_their_integers(client: Client, tmp_path: Path) -> None:
    np.save(tmp_path / "t.npy", np.array(["2026-01-01T12:00", "NaT", "2026-01-02T12:00"], "M8[ms]"))
    result = client.reduce(tmp_path / "t.npy", "mean")
    assert (result.value, result.dtype, result.nulls) == (1767312000000, "timestamp[ms]", 1)
    assert result.time is not None
    assert (result.time.iso, result.time.unit, result.time.exact) == ("2026-01-02T00:00:00.000", "ms", None)
    assert "2026-01-02T00:00:00.000" in result._repr_html_()


def test_complex_numbers_of_a_file_have_a_value_of_two_parts(client: Client, tmp_path: Path) -> None:
    np.save(tmp_path / "z.npy", np.array([1e16 + 1j, 1.0, -1e16], "c16"))
    result = client.reduce(tmp_path / "z.npy")
    assert (result.value, result.dtype) == (1 + 1j, "complex128")
    assert client.reduce(tmp_path / "z.npy", "dot", other=tmp_path / "z.npy").count == 3


def test_a_column_of_decimals_is_added_exactly(client: Client, tmp_path: Path) -> None:
    prices = pyarrow.array([Decimal("0.10"), Decimal("0.20"), None], pyarrow.decimal128(9, 2))
    pyarrow.parquet.write_table(pyarrow.table({"price": prices}), tmp_path / "sales.parquet")
    result = client.reduce(tmp_path / "sales.parquet", column="price")
    assert (result.value, result.decimal, result.dtype, result.nulls) == (0.3, "0.30", "float64", 1)
    assert result.fraction is None
    mean = client.reduce(tmp_path / "sales.parquet", "mean", column="price")
    assert (mean.fraction, mean.decimal) == (Fraction(3, 20), None)
    assert mean.model_dump(mode="json")["fraction"] == "3/20"
    assert client.reduce([1, 2, 4], "mean").fraction == Fraction(7, 3)
    assert client.reduce([1.0, 2.0, 4.0], "mean").fraction is None
    job = client.submit_reduce(tmp_path / "sales.parquet", "mean", column="price", segments=1, null_policy="propagate")
    rows = job.wait().result
    assert isinstance(rows, ReduceArrayResult)
    assert rows.fraction == (Fraction(1, 10), Fraction(1, 5), None)
    with pytest.raises(JobFailed, match="var takes no decimals so far"):
        client.reduce(tmp_path / "sales.parquet", "var", column="price")


EDGE = {"n": [2**53 + 1, -(2**53)], "x": [0.0, 0.25]}


@pytest.mark.parametrize("frame", [pandas.DataFrame, polars.DataFrame, pyarrow.table])
@pytest.mark.parametrize(("op", "expected"), [("sum", 1.25), ("mean", 0.3125), ("norm1", 2.0**54 + 1.25)])
def test_columns_that_no_dtype_holds_together_are_added_exactly(
    client: Client, frame: Callable[[object], object], op: str, expected: float
) -> None:
    result = client.reduce(frame(EDGE), op)
    assert (result.value, result.count, result.dtype, result.correctly_rounded) == (expected, 4, "float64", True)
    assert result.hex == expected.hex()


def test_integers_of_64_bits_of_both_kinds_are_added_as_integers(client: Client) -> None:
    frame = pandas.DataFrame({"u": np.array([2**64 - 1], dtype=np.uint64), "n": [-(2**63)]})
    result = client.reduce(frame)
    assert (result.value, result.dtype) == (2**63 - 1, "integer")
    assert client.merge([result.state or ""], dtype="int64").value == result.value
    for ask in (client.submit_reduce, client.upload, lambda data: client.reduce(data, "max")):
        with pytest.raises(TypeError, match="column 'u' of uint64 and column 'n' of int64"):
            ask(frame)


def test_integers_without_a_dtype_stay_integers(client: Client) -> None:
    values = [2**53 + 1, -(2**53)]
    job = client.submit({"kind": "reduce", "source": {"type": "values", "values": values}})
    result = job.get()
    assert isinstance(result, ReduceResult)
    assert (result.value, result.dtype, job.spec["source"]["dtype"]) == (1, "integer", "int64")
    assert client.reduce([0.5, 1.5], "dot", other=[1, 2]).value == 3.5


def test_values_that_json_cannot_say_arrive(client: Client) -> None:
    assert repr(client.reduce([1.0, math.nan]).value) == "nan"
    assert client.reduce([math.inf, 1.0]).value == math.inf
    assert repr(client.reduce([-0.0]).value) == "-0.0"


def test_a_large_array_is_uploaded_once(client: Client) -> None:
    first, again = client.submit_reduce(LARGE), client.submit_reduce(LARGE, "mean")
    assert first.spec["source"] == again.spec["source"]
    assert first.spec["source"]["type"] == "dataset"
    result = first.get()
    assert isinstance(result, ReduceResult)
    assert result.value == math.fsum(LARGE)
    [kept] = [dataset for dataset in client.datasets() if dataset.id == first.spec["source"]["id"]]
    buffer = io.BytesIO()
    np.save(buffer, LARGE)
    assert kept.id == hashlib.sha256(buffer.getvalue()).hexdigest()
    assert kept.count == LARGE.size


def test_a_view_in_another_order_and_byte_order_is_uploaded_as_it_reads(client: Client) -> None:
    view = np.arange(40_000, dtype=">f4").reshape(200, 200).T[::2]
    assert client.reduce(view, "argmax").value == int(view.argmax())
    assert client.reduce(view).value == math.fsum(view.ravel())


def test_a_deleted_dataset_fails_its_job_with_the_reason(client: Client, service: Service) -> None:
    array = np.arange(20_001.0)
    blocker = client.submit({"kind": "reduce", "source": {"type": "generate", "distribution": "normal", "n": 1 << 36}})
    while client.job(blocker.id).status != "running":
        time.sleep(0.02)
    job = client.submit_reduce(array)
    client.delete_dataset(job.spec["source"]["id"])
    blocker.cancel()
    with pytest.raises(JobFailed, match="deleted after the job was accepted") as failed:
        job.get()
    assert failed.value.reason == "invalid_input"


def test_two_arrays_make_a_dot_product(client: Client) -> None:
    assert client.reduce([1e16, 1, -1e16], "dot", other=[1.0, 2.0, 1.0]).value == 2.0


def test_a_text_is_no_array(client: Client) -> None:
    with pytest.raises(TypeError, match="cannot be reduced"):
        client.reduce(["a", "b"])
    with pytest.raises(TypeError, match="has none of the array protocols"):
        client.reduce(object())


def test_states_made_here_and_there_merge_to_the_same_bits(client: Client) -> None:
    remote = client.reduce(LARGE[:10_000])
    assert remote.state is not None
    merged = client.merge([remote.state, ExactState.of(LARGE[10_000:20_000]), ExactState.of(LARGE[20_000:]).to_bytes()])
    whole = client.reduce(LARGE)
    assert (merged.value, merged.state, merged.count) == (whole.value, whole.state, LARGE.size)
