"""The client for asyncio at the same service: it holds the same conversations."""

import asyncio
import inspect
import math

import numpy as np
import pytest

from tests.support.service import Service
from warpfold.client import AsyncClient, Client, ReduceResult, Refused, Unreachable, WaitedTooLong
from warpfold.client.knowing import KnowsService
from warpfold.client.live_batches import AsyncLiveBatch, LiveBatch
from warpfold.client.live_jobs import AsyncLiveJob, LiveJob

LARGE = np.random.default_rng(6).standard_normal(20_000)
LONG = {"kind": "reduce", "source": {"type": "generate", "distribution": "normal", "n": 1 << 36}}


def test_arrays_jobs_and_results(service: Service) -> None:
    async def use() -> None:
        async with AsyncClient(service.url, service.token) as client:
            sums = await asyncio.gather(*(client.reduce(LARGE * factor) for factor in (1, 2, 4)))
            assert [result.value for result in sums] == [math.fsum(LARGE * factor) for factor in (1, 2, 4)]
            job = await client.submit_reduce([1, 2, 3])
            assert await job.wait() is job
            result = await job.get()
            assert isinstance(result, ReduceResult)
            assert result.value == 6
            assert job == await client.job(job.id)
            assert len(await client.results(job_id=job.id)) == 1

    asyncio.run(use())


def test_waiting_and_cancelling(service: Service) -> None:
    async def use() -> str:
        async with AsyncClient(service.url, service.token) as client:
            job = await client.submit(LONG)
            with pytest.raises(WaitedTooLong):
                await job.wait(timeout_s=0.5)
            await job.cancel()
            return (await job.wait()).status

    assert asyncio.run(use()) == "cancelled"


def test_refusals_and_silence(service: Service) -> None:
    async def use() -> None:
        async with AsyncClient(service.url, "wf_wrong") as client:
            with pytest.raises(Refused, match="401"):
                await client.whoami()
        async with AsyncClient("http://127.0.0.1:9", "wf_x", patience_s=0.2) as client:
            with pytest.raises(Unreachable):
                await client.ops()

    asyncio.run(use())


def test_more_tasks_than_connections_may_wait_as_long_as_it_takes(service: Service) -> None:
    async def use() -> None:
        async with AsyncClient(service.url, service.token) as client:
            assert client._http.timeout.pool is None, "of 130 that waited 30 were told after 10 s that nobody answers"

    asyncio.run(use())


@pytest.mark.parametrize(
    ("sync", "other"), [(Client, AsyncClient), (LiveJob, AsyncLiveJob), (LiveBatch, AsyncLiveBatch)]
)
def test_both_clients_offer_the_same(sync: type, other: type) -> None:
    def methods(of: type) -> dict[str, list[str]]:
        owners = (of, KnowsService) if issubclass(of, KnowsService) else (of,)
        own = {
            name: method
            for owner in owners
            for name, method in vars(owner).items()
            if inspect.isfunction(method) and not name.startswith(("_", "model_"))
        }
        return {name: list(inspect.signature(method).parameters) for name, method in own.items()}

    assert methods(sync) == methods(other)
    own = {name: vars(other)[name] for name in methods(other)}
    assert all(map(inspect.iscoroutinefunction, (method for name, method in own.items() if name != "map")))
    shared = {name for name, method in own.items() if getattr(method, "__wrapped__", None) is getattr(sync, name)}
    assert own.keys() - shared <= {"map"}, "each conversation is written once"
