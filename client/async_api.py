"""The Python client for asyncio: the methods of `client.api` are awaited."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, Unpack

from warpfold.client.api import Client
from warpfold.client.async_connection import AsyncConnection
from warpfold.client.errors import JobFailed, WarpfoldError
from warpfold.client.exchange import awaited
from warpfold.client.later import live_batches
from warpfold.client.live_jobs import AsyncLiveJob
from warpfold.client.tables import HandlesTables

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from warpfold.client.batches import Batch
    from warpfold.client.job_results import ReduceResult
    from warpfold.client.live_batches import AsyncLiveBatch
    from warpfold.client.mapping import Window
    from warpfold.client.models import Job
    from warpfold.client.reductions import Options


class AsyncClient(AsyncConnection, HandlesTables):
    """`client.Client` for asyncio: the same methods with the same arguments, errors and answers, to be awaited."""

    # --- jobs

    submit = awaited(Client.submit)
    job = awaited(Client.job)
    jobs = awaited(Client.jobs)
    count_jobs = awaited(Client.count_jobs)
    cancel = awaited(Client.cancel)
    wait = awaited(Client.wait)
    result = awaited(Client.result)
    reduction = awaited(Client.reduction)
    artefact = awaited(Client.artefact)
    array = awaited(Client.array)
    delete_artefact = awaited(Client.delete_artefact)

    # --- batches

    submit_many = awaited(Client.submit_many)
    sweep = awaited(Client.sweep)
    batch = awaited(Client.batch)
    batches = awaited(Client.batches)

    async def map(
        self,
        op: str,
        arrays: Iterable[object],
        *,
        failures: Literal["raise", "yield"] = "raise",
        rehash: bool = False,
        **options: Unpack[Options],
    ) -> AsyncIterator[ReduceResult | JobFailed]:
        """Reduce any number of arrays as `Client.map` does, and give their results in their order. A caller that stops
        early cancels the jobs in hand."""
        from warpfold.client.mapping import cancelled, reduced, window

        in_hand: deque[Window] = deque()
        left = iter(arrays)
        try:
            while True:
                following = await self._do(window(left, op, options, rehash=rehash))
                if following is not None:
                    in_hand.append(following)
                if not in_hand:
                    return
                if following is not None and len(in_hand) < 2:
                    continue
                for result in await self._do(reduced(in_hand[0])):
                    if isinstance(result, JobFailed) and failures == "raise":
                        raise result.__cause__ or result
                    yield result
                in_hand.popleft()
        finally:
            for each in in_hand:
                with suppress(WarpfoldError):
                    await self._do(cancelled(each))

    # --- arrays

    reduce = awaited(Client.reduce)
    submit_reduce = awaited(Client.submit_reduce)
    merge = awaited(Client.merge)
    upload = awaited(Client.upload)
    inspect = awaited(Client.inspect)
    datasets = awaited(Client.datasets)
    dataset = awaited(Client.dataset)
    rename_dataset = awaited(Client.rename_dataset)
    delete_dataset = awaited(Client.delete_dataset)

    # --- sharing

    sharing = awaited(Client.sharing)
    share = awaited(Client.share)
    unshare = awaited(Client.unshare)

    # --- results

    results = awaited(Client.results)
    compare = awaited(Client.compare)
    report = awaited(Client.report)
    picture = awaited(Client.picture)
    export = awaited(Client.export)

    # --- catalogue

    ops = awaited(Client.ops)
    strategies = awaited(Client.strategies)
    presets = awaited(Client.presets)
    devices = awaited(Client.devices)
    workers = awaited(Client.workers)
    whoami = awaited(Client.whoami)
    rotate_token = awaited(Client.rotate_token)
    audit = awaited(Client.audit)

    def _live(self, job: Job) -> AsyncLiveJob:
        return AsyncLiveJob.of(job, self)

    def _live_batch(self, batch: Batch) -> AsyncLiveBatch:
        return live_batches.AsyncLiveBatch.of(batch, self)

    _all_live, _all_live_batches = Client._all_live, Client._all_live_batches
