"""Reductions of as many arrays as an iterator has."""

import asyncio
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.support.service import Service
from warpfold.client import AsyncClient, Client, JobFailed, NotHandedIn, ReduceResult


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows of three reductions."""
    monkeypatch.setattr("warpfold.client.mapping.WINDOW", 3)


def value(result: object) -> object:
    assert isinstance(result, ReduceResult)
    return result.value


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


def test_map_takes_files_and_large_arrays(client: Client, tmp_path: Path) -> None:
    large = np.random.default_rng(8).standard_normal(20_000)
    np.save(tmp_path / "a.npy", large)
    values = [value(result) for result in client.map("sum", [tmp_path / "a.npy", large * 2, [1, 2]])]
    assert values == [math.fsum(large), math.fsum(large * 2), 3]
    assert list(client.map("sum", [])) == []


def test_a_reduction_that_fails_is_raised_in_its_place_or_stands_there(client: Client) -> None:
    arrays: list[list[int]] = [[1], [], [2], [3]]
    results = list(client.map("max", arrays, failures="yield"))
    assert [isinstance(result, JobFailed) for result in results] == [False, True, False, False]
    raising = client.map("max", arrays)
    assert value(next(raising)) == 1
    with pytest.raises(JobFailed, match="max of no elements"):
        next(raising)


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


def test_what_the_service_refuses_of_a_window_does_not_hold_up_the_others(client: Client) -> None:
    arrays: list[object] = [np.array([number], "int8" if number % 2 else "float32") for number in range(8)]
    results = list(client.map("norm2", arrays, failures="yield", select=[]))
    assert all(isinstance(each, NotHandedIn) for each in results)
    results = list(client.map("total", arrays, failures="yield"))
    assert [str(each.__cause__) for each in results if isinstance(each, NotHandedIn) and "unknown op" in str(each)]
    assert len(results) == 8


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


def test_the_asynchronous_client_does_the_same(service: Service) -> None:
    async def use() -> None:
        async with AsyncClient(service.url, service.token) as client:
            values = [value(result) async for result in client.map("max", ([1, n] for n in range(8)))]
            assert values == [1, 1, 2, 3, 4, 5, 6, 7]

    asyncio.run(use())
