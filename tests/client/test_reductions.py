"""The client at a whole service."""

import hashlib
import io
import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest

from tests.support.service import Service
from warpfold.client import (
    BenchmarkResult,
    Client,
    ExactState,
    JobFailed,
    ReduceResult,
    Refused,
    WaitedTooLong,
)
from warpfold.contract.kinds.reduce import ReduceSpec

LONG = {"kind": "reduce", "source": {"type": "generate", "distribution": "normal", "n": 1 << 36}}
QUICK = {"kind": "benchmark", "strategies": ["numpy"], "sizes": [1000], "backend": "cpu", "time_limit_s": 0.05}
LARGE = np.random.default_rng(5).standard_normal(30_000)


def test_a_list_is_reduced_exactly(client: Client) -> None:
    result = client.reduce([1e8, 1, -1e8], dtype="float32")
    assert (result.value, result.dtype, result.count) == (1.0, "float32", 3)
    assert result.correctly_rounded


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
    assert math.isnan(client.reduce([1.0, math.nan]).value)
    assert client.reduce([math.inf, 1.0]).value == math.inf
    assert math.copysign(1, client.reduce([-0.0]).value) == -1


def test_a_large_array_is_uploaded_once(client: Client) -> None:
    first, again = client.submit_reduce(LARGE), client.submit_reduce(LARGE, "mean")
    assert first.spec["source"] == again.spec["source"]
    assert first.spec["source"]["type"] == "dataset"
    result = first.get()
    assert isinstance(result, ReduceResult)
    assert result.value == math.fsum(LARGE)
    [kept] = [one for one in client.datasets() if one.id == first.spec["source"]["id"]]
    buffer = io.BytesIO()
    np.save(buffer, LARGE)
    assert kept.id == hashlib.sha256(buffer.getvalue()).hexdigest()
    assert kept.count == LARGE.size


def test_a_view_in_another_order_and_byte_order_is_uploaded_as_it_reads(client: Client) -> None:
    view = np.arange(40_000, dtype=">f4").reshape(200, 200).T[::2]
    assert client.reduce(view, "argmax").value == int(view.argmax())
    assert client.reduce(view).value == math.fsum(view.ravel())


def test_a_file_is_uploaded_as_it_is(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "large.npy"
    np.save(path, LARGE)
    assert client.reduce(path, "max").value == LARGE.max()
    for use in (client.reduce, client.upload):
        with pytest.raises(TypeError, match="is sent as it is"):
            use(path, dtype="float32")
    kept = client.upload(path, "by name")
    assert client.dataset(kept.id) == kept
    client.delete_dataset(kept.id)
    with pytest.raises(Refused) as refusal:
        client.dataset(kept.id)
    assert refusal.value.status == 404


def test_a_deleted_dataset_fails_its_job_with_the_reason(client: Client, service: Service) -> None:
    array = np.arange(20_001.0)
    blocker = client.submit(LONG)
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
    with pytest.raises(TypeError, match="offers none of the array protocols"):
        client.reduce(object())


def test_a_spec_of_ours_is_handed_in_as_it_is(client: Client) -> None:
    spec = ReduceSpec.model_validate({"kind": "reduce", "source": {"type": "values", "values": [1, 2]}})
    job = client.submit(spec)
    assert job.wait().result is not None
    kept = client.job(job.id).spec
    assert kept == {name: value for name, value in spec.model_dump(mode="json").items() if name in kept}
    assert kept["source"]["values"] == [1, 2]


def test_a_job_brings_itself_up_to_date(client: Client) -> None:
    job = client.submit({"kind": "reduce", "source": {"type": "values", "values": [1, 2]}})
    assert not job.ended
    assert job.wait() is job
    assert job.succeeded
    assert job == client.job(job.id)
    assert job == job.refresh()
    assert job.model_dump() == client.job(job.id).model_dump()


def test_the_same_key_gives_the_same_job(client: Client) -> None:
    spec = {"kind": "reduce", "source": {"type": "values", "values": [1, 2]}}
    assert client.submit(spec, key="once").id == client.submit(spec, key="once").id


def test_waiting_can_be_given_up_and_the_job_cancelled(client: Client) -> None:
    job = client.submit(LONG)
    with pytest.raises(WaitedTooLong, match=job.id):
        job.wait(timeout_s=0.5)
    states: list[str] = []
    job.cancel()
    ended = client.wait(job, progress=lambda seen: states.append(seen.status))
    assert ended.status == states[-1] == "cancelled"
    with pytest.raises(JobFailed, match="cancelled"):
        client.result(job)


def test_progress_is_told_as_it_comes(client: Client) -> None:
    done: list[int] = []
    job = client.submit({**LONG, "source": {**LONG["source"], "n": 1 << 29}})  # type: ignore[dict-item]
    client.wait(job, progress=lambda seen: done.append(seen.progress.done))
    assert done == sorted(done)
    assert len(set(done)) > 1


def test_a_refusal_names_every_field(client: Client) -> None:
    with pytest.raises(Refused) as refusal:
        client.submit({"kind": "reduce", "op": "sun", "source": {"type": "values", "values": ["x"]}})
    assert refusal.value.status == 422
    assert {one.field for one in refusal.value.errors} == {"op", "source.values.0"}


def test_jobs_are_found_by_tag_page_after_page(client: Client) -> None:
    spec = {"kind": "reduce", "source": {"type": "values", "values": [1]}, "tags": {"batch": "seven"}}
    ids = [client.submit(spec).id for _ in range(7)]
    assert [job.id for job in client.jobs(tags=["batch:seven"], limit=5)] == ids[:1:-1]
    assert [job.id for job in client.jobs(tags=["batch:seven"], kind="reduce", owner="ada")] == ids[::-1]


def test_a_study_of_a_list_brings_its_result_when_asked(client: Client) -> None:
    client.submit({**QUICK, "tags": {"listed": ""}}).wait()
    [listed] = client.jobs(tags=["listed"])
    assert listed.result is None
    assert isinstance(listed.get(), BenchmarkResult)


def test_states_made_here_and_there_merge_to_the_same_bits(client: Client) -> None:
    there = client.reduce(LARGE[:10_000])
    assert there.state is not None
    merged = client.merge([there.state, ExactState.of(LARGE[10_000:20_000]), ExactState.of(LARGE[20_000:]).to_bytes()])
    whole = client.reduce(LARGE)
    assert (merged.value, merged.state, merged.count) == (whole.value, whole.state, LARGE.size)


def test_every_export_has_the_value_of_a_reduction(client: Client) -> None:
    job = client.submit_reduce([1e16, 1.0, -1e16], "sum").wait()
    (row,) = client.results(job_id=job.id)
    (csv,) = pandas.read_csv(io.BytesIO(client.export("csv", job_id=job.id)), dtype=str)["value"]
    (typed,) = pyarrow.parquet.read_table(io.BytesIO(client.export("parquet", job_id=job.id)))["value"].to_pylist()
    assert (row.value, csv, typed) == ("1.0", "1.0", "1.0")


def test_results_become_data_frames_like_the_export(client: Client) -> None:
    job = client.submit(QUICK).wait()
    assert isinstance(job.result, BenchmarkResult)
    found = client.results(job_id=job.id)
    assert len(found) == job.result.cases == 2
    assert {row.cache for row in found} == {"cold", "hot"}
    exported = pyarrow.parquet.read_table(io.BytesIO(client.export("parquet", job_id=job.id)))
    assert found.to_arrow().equals(exported)
    assert found.to_pandas()["kernel_ms"].tolist() == [row.kernel_ms for row in found]
    assert found[:1].to_arrow().num_rows == 1
    assert client.results(job_id="0" * 8 + "-0000-4000-8000-" + "0" * 12).to_arrow().schema == exported.schema


def test_a_benchmark_is_compared_and_reported(client: Client) -> None:
    first, second = client.submit(QUICK).wait(), client.submit(QUICK).wait()
    answer = client.compare(first.id, second.id)
    assert {item["case"]["cache"] for item in answer["items"]} == {"cold", "hot"}
    job = client.submit({"kind": "reduce", "source": {"type": "values", "values": [1, 2]}}).wait()
    assert "<table" in client.report(job.id, "text/html")
    assert client.report(job.id).startswith("#")


def test_notebooks_show_tables(client: Client) -> None:
    job = client.submit({"kind": "reduce", "source": {"type": "values", "values": [1, 2]}}).wait()
    assert job.result is not None
    assert isinstance(job.result, ReduceResult)
    for shown in (job._repr_html_(), job.result._repr_html_(), client.results(limit=3)._repr_html_()):
        assert shown.startswith("<table>")
    assert "<td>3</td>" in job._repr_html_()


def test_the_catalogue_says_what_there_is(client: Client, service: Service) -> None:
    assert "norm2" in [op.name for op in client.ops()]
    assert "exact" in [one.name for one in client.strategies()]
    assert client.presets()[0].jobs >= 1
    [device] = client.devices()
    [worker] = client.workers()
    assert device.live
    assert worker.backend == device.device["backend"] == "cpu"
    assert client.whoami().name == "ada"
    assert repr(client) == f"Client('{service.url}')"
