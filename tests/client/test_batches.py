"""Many jobs by one call of the client, and reductions of as many arrays as an iterator has."""

import asyncio
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.support.service import Service
from warpfold.client import AsyncClient, Client, JobFailed, NotHandedIn, ReduceResult, Refused, WaitedTooLong
from warpfold.client.batches import Batch

LONG = {"kind": "reduce", "source": {"type": "generate", "distribution": "normal", "n": 1 << 36}}


def of(*values: float, op: str = "sum") -> dict[str, object]:
    return {"kind": "reduce", "op": op, "source": {"type": "values", "values": list(values), "dtype": "float64"}}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows of three reductions."""
    monkeypatch.setattr("warpfold.client.mapping.WINDOW", 3)


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


@pytest.mark.usefixtures("small")
def test_map_gives_the_results_in_order_and_reads_no_further_ahead_than_two_windows(client: Client) -> None:
    read: list[int] = []

    def arrays() -> Iterator[object]:
        for number in range(20):
            read.append(number)
            yield np.array([1e16, number, -1e16])

    results = client.map("sum", arrays())
    assert value(next(results)) == 0
    assert read == list(range(6))
    assert [value(result) for result in results] == list(range(1, 20))


@pytest.mark.usefixtures("small")
def test_map_takes_files_and_large_arrays(client: Client, tmp_path: Path) -> None:
    large = np.random.default_rng(8).standard_normal(20_000)
    np.save(tmp_path / "a.npy", large)
    values = [value(result) for result in client.map("sum", [tmp_path / "a.npy", large * 2, [1, 2]])]
    assert values == [math.fsum(large), math.fsum(large * 2), 3]
    assert list(client.map("sum", [])) == []


@pytest.mark.usefixtures("small")
def test_a_reduction_that_fails_is_raised_in_its_place_or_stands_there(client: Client) -> None:
    arrays: list[list[int]] = [[1], [], [2], [3]]
    results = list(client.map("max", arrays, failures="yield"))
    assert [isinstance(result, JobFailed) for result in results] == [False, True, False, False]
    raising = client.map("max", arrays)
    assert value(next(raising)) == 1
    with pytest.raises(JobFailed, match="max of no elements"):
        next(raising)


@pytest.mark.usefixtures("small")
def test_a_reduction_that_cannot_be_handed_in_raises_why_or_stands_in_its_place(client: Client, tmp_path: Path) -> None:
    (tmp_path / "text.npy").write_text("no array")
    gone = tmp_path / "gone.npy"
    arrays: list[object] = [[1], gone, [2], ["a"], [2**64], {}, tmp_path / "text.npy", [3], [], [4]]
    results = list(client.map("max", arrays, failures="yield"))
    assert [value(each) if isinstance(each, ReduceResult) else type(each).__name__ for each in results] == [
        1, "NotHandedIn", 2, *["NotHandedIn"] * 4, 3, "JobFailed", 4,
    ]  # fmt: skip
    assert isinstance(results[1], NotHandedIn)
    assert results[1].reason == "invalid_input"
    assert isinstance(results[1].__cause__, FileNotFoundError)
    raising = client.map("max", arrays)
    assert value(next(raising)) == 1
    with pytest.raises(FileNotFoundError):
        next(raising)


@pytest.mark.usefixtures("small")
def test_what_the_service_refuses_of_a_window_does_not_hold_up_the_others(client: Client) -> None:
    arrays: list[object] = [np.array([number], "int8" if number % 2 else "float32") for number in range(8)]
    results = list(client.map("norm2", arrays, failures="yield", select=[]))
    assert all(isinstance(each, NotHandedIn) for each in results)
    results = list(client.map("total", arrays, failures="yield"))
    assert [str(each.__cause__) for each in results if isinstance(each, NotHandedIn) and "unknown op" in str(each)]
    assert len(results) == 8


@pytest.mark.usefixtures("small")
def test_who_stops_early_cancels_what_is_in_hand(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    results = client.map("sum", ([number] for number in range(100)))
    next(results)
    latest = client.batches(limit=2)
    cancelled: list[str] = []

    def cancel(batch_id: str) -> Iterator[object]:
        cancelled.append(batch_id)
        yield from ()

    monkeypatch.setattr("warpfold.client.batches.cancel", cancel)
    results.close()  # type: ignore[attr-defined]
    assert sorted(cancelled) == sorted(batch.id for batch in latest)


@pytest.mark.usefixtures("small")
def test_the_asynchronous_client_does_the_same(service: Service) -> None:
    async def use() -> None:
        async with AsyncClient(service.url, service.token) as client:
            batch = await client.submit_many([of(1, 2), of(3)])
            assert [value(result) for result in await batch.results(timeout_s=60)] == [3, 3]
            assert (await batch.refresh()).succeeded
            values = [value(result) async for result in client.map("max", ([1, n] for n in range(8)))]
            assert values == [1, 1, 2, 3, 4, 5, 6, 7]
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
