"""Results by the client, at a whole service: lists, data frames, exports, comparisons and reports."""

import io

import pandas
import pyarrow
import pyarrow.parquet

from warpfold.client import (
    BenchmarkResult,
    Client,
)

QUICK = {"kind": "benchmark", "strategies": ["numpy"], "sizes": [1000], "backend": "cpu", "time_limit_s": 0.05}


def test_every_export_has_the_value_of_a_reduction(client: Client) -> None:
    job = client.submit_reduce([1e16, 1.0, -1e16], "sum").wait()
    (row,) = client.results(job_id=job.id)
    (csv,) = pandas.read_csv(io.BytesIO(client.export("csv", job_id=job.id)), dtype=str)["value"]
    (typed,) = pyarrow.parquet.read_table(io.BytesIO(client.export("parquet", job_id=job.id)))["value"].to_pylist()
    assert (row.value, csv, typed) == ("1.0", "1.0", "1.0")


def test_results_become_data_frames_like_the_export(client: Client) -> None:
    job = client.submit(QUICK).wait()
    assert isinstance(job.result, BenchmarkResult)
    points = client.results(job_id=job.id)
    assert len(points) == job.result.cases == 2
    assert {row.cache for row in points} == {"cold", "hot"}
    exported = pyarrow.parquet.read_table(io.BytesIO(client.export("parquet", job_id=job.id)))
    assert points.to_arrow().equals(exported)
    assert points.to_pandas()["kernel_ms"].tolist() == [row.kernel_ms for row in points]
    assert points[:1].to_arrow().num_rows == 1
    assert client.results(job_id="0" * 8 + "-0000-4000-8000-" + "0" * 12).to_arrow().schema == exported.schema


def test_a_benchmark_is_compared_and_reported(client: Client) -> None:
    first, second = client.submit(QUICK).wait(), client.submit(QUICK).wait()
    answer = client.compare(first.id, second.id)
    assert {item["case"]["cache"] for item in answer["items"]} == {"cold", "hot"}
    job = client.submit({"kind": "reduce", "source": {"type": "values", "values": [1, 2]}}).wait()
    assert "<table" in client.report(job.id, "text/html")
    assert client.report(job.id).startswith("#")
