"""The results of a batch come as one stream, a few jobs in memory at a time."""

import io
import json

import httpx
import pyarrow.parquet
import pytest

from tests.support.api import RESULT, Api
from tests.support.batches import batch_of
from warpfold.app.batches import results
from warpfold.app.jobs import leases
from warpfold.contract.states import Reason


@pytest.fixture
def batch_id(api: Api) -> str:
    """A batch of which a job succeeded, one failed, one gave a long integer, and one waits."""
    batch = batch_of(api, 4)
    first, second, third, _ = batch["jobs"]
    api.finish(api.claim(first), {**RESULT, "value": -0.0})
    api.database.run(leases.fail, api.claim(second), Reason.INVALID_INPUT, "max of no elements has no value")
    api.finish(api.claim(third), {**RESULT, "value": 2**64 + 1})
    return str(batch["id"])


def lines_of(answer: httpx.Response) -> list[dict[str, object]]:
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("application/x-ndjson")
    return [json.loads(line) for line in answer.text.splitlines()]


def test_a_line_says_what_became_of_a_job(http: httpx.Client, batch_id: str) -> None:
    answer = http.get(f"/v1/batches/{batch_id}/results")
    lines = lines_of(answer)
    assert [line["index"] for line in lines] == [0, 1, 2, 3]
    assert [line["status"] for line in lines] == ["succeeded", "failed", "succeeded", "queued"]
    assert [line["value"] for line in lines] == [0.0, None, 2**64 + 1, None]
    assert '"value": -0.0' in answer.text
    assert (lines[1]["reason"], lines[1]["error"]) == ("invalid_input", "max of no elements has no value")
    job = http.get(f"/v1/jobs/{lines[0]['id']}").json()
    assert (lines[0]["spec"], lines[0]["result"]) == (job["spec"], job["result"])


def test_more_jobs_than_are_read_at_a_time_all_come_in_order(
    api: Api, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "_AT_A_TIME", 3)
    monkeypatch.setattr(results, "_GROUP", 4)
    for count in (6, 7):
        batch = batch_of(api, count)
        path = f"/v1/batches/{batch['id']}/results"
        assert [line["id"] for line in lines_of(http.get(path))] == batch["jobs"]
        table = pyarrow.parquet.ParquetFile(io.BytesIO(http.get(path, params={"format": "parquet"}).content))
        assert table.metadata.num_row_groups == 2
        assert table.read()["id"].to_pylist() == batch["jobs"]


def test_the_large_result_of_a_study_is_there_too(api: Api, http: httpx.Client) -> None:
    batch = batch_of(api, 1)
    lease = api.claim(batch["jobs"][0])
    with api.database._engine.begin() as connection:
        connection.exec_driver_sql("update jobs set kind = 'benchmark' where id = %(id)s", {"id": batch["jobs"][0]})
    api.finish(lease, {"cases": 7})
    assert lines_of(http.get(f"/v1/batches/{batch['id']}/results"))[0]["result"] == {"cases": 7}


@pytest.mark.parametrize("how", [{"params": {"format": "parquet"}}, {"headers": {"Accept": results.PARQUET}}])
def test_parquet_has_the_same_and_never_rounds(
    http: httpx.Client, batch_id: str, how: dict[str, dict[str, str]]
) -> None:
    answer = http.get(f"/v1/batches/{batch_id}/results", **how)  # type: ignore[arg-type]
    assert answer.headers["Content-Type"] == results.PARQUET
    table = pyarrow.parquet.read_table(io.BytesIO(answer.content))
    lines = lines_of(http.get(f"/v1/batches/{batch_id}/results"))
    for name in ("index", "id", "kind", "status", "reason", "error"):
        assert table[name].to_pylist() == [line[name] for line in lines], name
    for name in ("spec", "result"):
        assert [text and json.loads(text) for text in table[name].to_pylist()] == [line[name] for line in lines]
    assert table["value_text"].to_pylist() == ["-0.0", None, str(2**64 + 1), None]
    assert [str(value) for value in table["value"].to_pylist()] == ["-0.0", "None", "None", "None"]


def test_another_format_is_refused(refusing: httpx.Client, batch_id: str) -> None:
    path = f"/v1/batches/{batch_id}/results"
    assert refusing.get(path, headers={"Accept": "text/html"}).status_code == 406
    assert refusing.get(path, params={"format": "csv"}).status_code == 422
