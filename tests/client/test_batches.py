"""Many jobs by one call of the client."""

import asyncio

import pytest

from tests.support.service import Service
from warpfold.client import AsyncClient, Client, JobFailed, ReduceResult, Refused, WaitedTooLong
from warpfold.client.batches import Batch

LONG = {"kind": "reduce", "source": {"type": "generate", "distribution": "normal", "n": 1 << 36}}


def of(*values: float, op: str = "sum") -> dict[str, object]:
    return {"kind": "reduce", "op": op, "source": {"type": "values", "values": list(values), "dtype": "float64"}}


def value(result: object) -> object:
    assert isinstance(result, ReduceResult)
    return result.value


def test_many_specs_are_one_batch_with_one_wait_and_one_list_of_results(client: Client) -> None:
    batch = client.submit_many([of(1e16, n, -1e16) for n in range(5)], name="five", tags={"course": "p05"})
    assert len(batch.jobs) == batch.count == 5
    assert [value(result) for result in batch.results(timeout_s=60)] == [0, 1, 2, 3, 4]
    assert batch.succeeded
    assert len(batch.jobs) == 5, "the ids are kept"
    assert [outcome.id for outcome in batch.outcomes()] == list(batch.jobs)
    assert client.job(batch.jobs[3]).tags == {"course": "p05"}
    assert client.batch(batch.id).name == "five"
    assert client.batches(limit=1)[0].id == batch.id
    assert [each.id for each in client.batches(id=batch.id[:13])] == [batch.id]
    assert batch.parquet()[:4] == b"PAR1"


def test_a_sweep_has_a_job_for_each_combination(client: Client) -> None:
    batch = client.sweep(of(1, 2, 3), {"op": ["sum", "max"], "source.dtype": ["float32", "float64", "int64"]})
    assert [value(result) for result in batch.results(timeout_s=60)] == [6, 6, 6, 3, 3, 3]


def test_one_wrong_spec_refuses_all_and_is_named(client: Client) -> None:
    with pytest.raises(Refused) as refused:
        client.submit_many([of(1), of(2, op="total")])
    assert refused.value.errors[0].field == "specs[1].op"


def test_the_same_key_is_the_same_batch(client: Client) -> None:
    first, second = (client.submit_many([of(1), of(2)], key="of my own") for _ in range(2))
    assert first.jobs == second.jobs


def test_a_batch_that_takes_longer_is_left_and_can_be_cancelled(client: Client) -> None:
    batch = client.submit_many([of(1), LONG])
    with pytest.raises(WaitedTooLong, match="of 2 jobs have ended"):
        batch.wait(timeout_s=0.2)
    batch.cancel()
    assert batch.wait(timeout_s=60).status == "cancelled"
    with pytest.raises(JobFailed):
        batch.results()


def test_the_asynchronous_client_does_the_same(service: Service) -> None:
    async def use() -> None:
        async with AsyncClient(service.url, service.token) as client:
            batch = await client.submit_many([of(1, 2), of(3)])
            assert [value(result) for result in await batch.results(timeout_s=60)] == [3, 3]
            assert (await batch.refresh()).succeeded
            swept = await client.sweep(of(1, 2), {"op": ["sum", "max"]})
            assert [value(result) for result in await swept.results()] == [3, 2]

    asyncio.run(use())


def test_a_batch_shows_itself() -> None:
    counts = {"total": 3, "done": 2, "queued": 0, "running": 1, "succeeded": 1, "failed": 1, "cancelled": 0}
    batch = Batch.model_validate(
        {"id": "5f0c", "owner": "ada", "status": "running", "count": 3, "progress": counts, "created_at": 0}
    )
    assert repr(batch) == "<Batch 5f0c: 2 of 3 jobs, running>"
    assert "2 of 3" in batch._repr_html_()
