"""The Python client for asyncio: `client.api` with `await`.

What most callers do not need is imported by the methods that do: NumPy and the formats take longer to import than all
else here.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from warpfold.client import jobs
from warpfold.client.async_connection import AsyncConnection
from warpfold.client.errors import JobFailed, WarpfoldError
from warpfold.client.later import (
    artefacts,
    batches,
    catalogue,
    datasets,
    inspections,
    live_batches,
    reductions,
    results,
    sharing,
    uploads,
)
from warpfold.client.live_jobs import AsyncLiveJob
from warpfold.client.progress import bar
from warpfold.client.sending import watched
from warpfold.client.tables import HandlesTables

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from warpfold.client.artefacts import Format
    from warpfold.client.catalogue import Device, Op, Preset, Strategy, Worker
    from warpfold.client.exchange import Steps
    from warpfold.client.groups import Axis, Rolling, Segments
    from warpfold.client.job_results import ReduceResult, Result
    from warpfold.client.jobs import Follow, JobFilter
    from warpfold.client.live_batches import AsyncLiveBatch
    from warpfold.client.mapping import Window
    from warpfold.client.models import Dataset, Job, JobCount, Merged
    from warpfold.client.reductions import GroupOptions, Options, ReduceOptions
    from warpfold.client.results import Filter, Results
    from warpfold.client.sharing import Sharing, Thing
    from warpfold.contract.jobs import JobSpec
    from warpfold.contract.webhook import Webhook
    from warpfold.kernels.exact import ExactState


class AsyncClient(AsyncConnection, HandlesTables):
    """`client.Client` for asyncio: the same methods with the same arguments, errors and answers, to be awaited."""

    # --- jobs

    async def submit(self, spec: JobSpec | Mapping[str, Any], *, key: str | None = None) -> AsyncLiveJob:
        """Hand in a job: a spec of `warpfold.contract.jobs`, or the same as JSON values, which the service checks.

        With an idempotency `key` of your own, repeating the call in another process gives the first job again.
        """
        return await self._live(jobs.submit(spec, key))

    async def job(self, job_id: str) -> AsyncLiveJob:
        """A job as it is now, by its id or the beginning of it, of 4 characters or more."""
        return await self._live(jobs.named(job_id))

    async def jobs(self, *, limit: int = 50, **chosen: Unpack[JobFilter]) -> list[AsyncLiveJob]:
        """The newest jobs of all users, or those that fit a `JobFilter`."""
        return [AsyncLiveJob.of(job, self) for job in await self._do(jobs.find(chosen, limit))]

    async def count_jobs(self, **chosen: Unpack[JobFilter]) -> JobCount:
        """How many jobs fit a `JobFilter`, counted up to 1000 and as far as is cheap."""
        return await self._do(jobs.count(chosen))

    async def cancel(self, job_id: str) -> AsyncLiveJob:
        """Ask for a job's end; a job that has ended already is Refused with 409."""
        return await self._live(jobs.cancel(job_id))

    async def wait(self, job: Job, *, timeout_s: float | None = None, progress: Follow | None = None) -> AsyncLiveJob:
        """The job once it has ended, `progress` being called with each state on the way.

        Raises WaitedTooLong after `timeout_s` seconds; the job goes on.
        """
        return await self._live(jobs.wait(job, timeout_s, progress))

    async def result(self, job: Job) -> Result:
        """The result of a job, waiting for it. Raises JobFailed if the job has no result."""
        return jobs.result_of(await self.wait(job))

    async def reduction(self, job: Job) -> ReduceResult:
        """The result of a reduce job, waiting for it. Raises JobFailed without a result, TypeError for another kind."""
        return jobs.reduction_of(await self.wait(job))

    async def artefact(self, job: Job, path: str | Path, format: Format | None = None) -> Path:
        """`Client.artefact`."""
        return await self._do(artefacts.save(await self.wait(job), Path(path), format))

    async def array(self, job: Job) -> NDArray[Any]:
        """`Client.array`."""
        return await self._do(artefacts.array_of(jobs.array_result_of(await self.wait(job))))

    async def delete_artefact(self, job_id: str) -> None:
        """Delete the stored result of a job, which then counts towards the quota no more."""
        await self._do(artefacts.delete(job_id))

    # --- batches

    async def submit_many(
        self,
        specs: Iterable[JobSpec | Mapping[str, Any]],
        *,
        name: str = "",
        tags: Mapping[str, str] = MappingProxyType({}),
        key: str | None = None,
        webhook: Webhook | Mapping[str, Any] | None = None,
    ) -> AsyncLiveBatch:
        """Hand in up to 10,000 jobs as one batch: all of them are accepted, or none. Refused names the spec that is
        wrong (`specs[17].source.dtype`). `name`, `tags` and `webhook` are those of the batch."""
        return live_batches.AsyncLiveBatch.of(
            await self._do(batches.submit(specs, name=name, tags=tags, key=key, webhook=webhook)), self
        )

    async def sweep(
        self,
        spec: JobSpec | Mapping[str, Any],
        over: Mapping[str, Sequence[Any]],
        *,
        name: str = "",
        tags: Mapping[str, str] = MappingProxyType({}),
        key: str | None = None,
        webhook: Webhook | Mapping[str, Any] | None = None,
    ) -> AsyncLiveBatch:
        """Hand in a job for each combination of values, as one batch: `over` has the values of each field that differs
        ({"source.seed": [1, 2], "op": ["sum", "max"]}). The last field changes fastest."""
        return live_batches.AsyncLiveBatch.of(
            await self._do(batches.sweep(spec, over, name=name, tags=tags, key=key, webhook=webhook)), self
        )

    async def batch(self, batch_id: str) -> AsyncLiveBatch:
        """A batch as it is now."""
        return live_batches.AsyncLiveBatch.of(await self._do(batches.get(batch_id)), self)

    async def batches(
        self, *, owner: str | None = None, id: str | None = None, limit: int = 50
    ) -> list[AsyncLiveBatch]:
        """The newest batches of a user, by default your own; with `id` the batch with this id, or the batches whose ids
        begin with these 4 characters or more, of any user unless `owner` names one."""
        return [live_batches.AsyncLiveBatch.of(batch, self) for batch in await self._do(batches.find(owner, id, limit))]

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

    @overload
    async def reduce(self, data: object, op: str = "sum", **options: Unpack[ReduceOptions]) -> ReduceResult: ...

    @overload
    async def reduce(
        self, data: object, op: str = "sum", *, axis: Axis, keepdims: bool = False, **options: Unpack[ReduceOptions]
    ) -> NDArray[Any]: ...

    @overload
    async def reduce(
        self, data: object, op: str = "sum", *, segments: Segments, **options: Unpack[ReduceOptions]
    ) -> NDArray[Any]: ...

    @overload
    async def reduce(
        self,
        data: object,
        op: str = "sum",
        *,
        window: Rolling,
        axis: Axis | None = None,
        segments: Segments | None = None,
        **options: Unpack[ReduceOptions],
    ) -> NDArray[Any]: ...

    async def reduce(
        self,
        data: object,
        op: str = "sum",
        *,
        axis: Axis | None = None,
        keepdims: bool = False,
        segments: Segments | None = None,
        window: Rolling | None = None,
        other: object = None,
        weights: object = None,
        dtype: str | None = None,
        rehash: bool = False,
        show_progress: bool | None = None,
        **options: Unpack[Options],
    ) -> ReduceResult | NDArray[Any]:
        """Reduce as `Client.reduce` does: an array to its correctly rounded sum or another value or, with `axis`,
        `segments` or a `window`, to a NumPy array of values."""
        from warpfold.client.groups import fields_of

        fields = fields_of(axis, keepdims, segments, window)
        with bar(show_progress) as follow:
            steps = reductions.reduce_any(
                data, op, fields, other, dtype, weights=weights, options=options, rehash=rehash, follow=follow
            )
            return await self._do(watched(steps, follow))

    async def submit_reduce(
        self,
        data: object,
        op: str = "sum",
        *,
        other: object = None,
        weights: object = None,
        dtype: str | None = None,
        rehash: bool = False,
        show_progress: bool | None = None,
        **options: Unpack[GroupOptions],
    ) -> AsyncLiveJob:
        """Like `reduce`, without waiting for more than the upload. Raises TypeError for columns that no dtype holds
        together."""
        with bar(show_progress) as follow:
            steps = reductions.submit_any(
                data, op, other=other, weights=weights, dtype=dtype, rehash=rehash, options=options
            )
            return await self._live(watched(steps, follow))

    async def merge(
        self, states: Iterable[ExactState | bytes | str], op: str = "sum", dtype: str = "float64"
    ) -> Merged:
        """Add exact states, of results or of `ExactState.of(array)`, and round once: what one reduction of all their
        elements would have given, to the bit. `dtype` is that of the elements."""
        from warpfold.client.merging import merge_states

        return await self._do(merge_states(states, op, dtype))

    async def upload(self, data: object, name: str = "", *, dtype: str | None = None, rehash: bool = False) -> Dataset:
        """Have the service keep an array or a file for `dataset` sources, as `Client.upload` does."""
        return await self._do(uploads.upload(uploads.content_of(data, dtype, rehash=rehash), name))

    async def inspect(self, source: str | Mapping[str, Any], *, timeout_s: float = 10.0) -> inspections.Inspection:
        """The contents of a file of the server's, or of a source as a spec has it: names, dtypes, shapes."""
        return await self._do(inspections.inspect(source, timeout_s))

    async def datasets(self, *, owner: str | None = None, limit: int = 50) -> list[Dataset]:
        """The newest uploaded arrays that you may read."""
        return await self._do(datasets.find(owner, limit))

    async def dataset(self, dataset_id: str) -> Dataset:
        """An uploaded array."""
        return await self._do(datasets.get(dataset_id))

    async def delete_dataset(self, dataset_id: str) -> None:
        """Give up an uploaded array."""
        await self._do(datasets.delete(dataset_id))

    # --- sharing

    async def sharing(self, thing: Thing, id: str) -> Sharing:
        """Who sees a dataset, a job or a batch of yours, beside you and admins."""
        return await self._do(sharing.get(thing, id))

    async def share(self, thing: Thing, id: str, users: Sequence[str] = (), *, everyone: bool = False) -> Sharing:
        """Share a dataset, a job or a batch of yours with these users, or with everyone, and with nobody else. What
        belongs to a job is shared with it."""
        return await self._do(sharing.put(thing, id, users, everyone=everyone))

    async def unshare(self, thing: Thing, id: str) -> Sharing:
        """Make a dataset, a job or a batch of yours private."""
        return await self._do(sharing.put(thing, id, (), everyone=False))

    # --- results

    async def results(self, *, limit: int = 1000, **wanted: Unpack[Filter]) -> Results:
        """Measured points across jobs, newest first; `.to_pandas()` and `.to_arrow()` make data frames of them."""
        return await self._do(results.find(wanted, limit))

    async def compare(self, baseline: str, candidate: str, *, across: bool = False) -> dict[str, Any]:
        """How much faster a benchmark is than another, case by case (`GET /v1/results/compare`). A side is a job's id,
        or `job:strategy`; `across` compares what ran on different devices, too."""
        return await self._do(results.compare(baseline, candidate, across=across))

    async def report(self, job_id: str, media_type: str = "text/markdown") -> str:
        """The report of a job that has ended, as text/markdown, text/html or application/json. Markdown names its
        pictures by addresses of the service, for `picture`."""
        return await self._do(results.report(job_id, media_type))

    async def picture(self, address: str) -> bytes:
        """A picture that a report in Markdown names, as SVG."""
        return await self._do(results.picture(address))

    async def export(self, how: Literal["csv", "parquet"], *, limit: int = 10_000, **wanted: Unpack[Filter]) -> bytes:
        """Measurements as a CSV or Parquet file, 10,000 at most."""
        return await self._do(results.export(wanted, limit, how))

    # --- catalogue

    async def ops(self) -> list[Op]:
        """All reductions."""
        return await self._do(catalogue.ops())

    async def strategies(self) -> list[Strategy]:
        """All ways to reduce."""
        return await self._do(catalogue.strategies())

    async def presets(self) -> list[Preset]:
        """All studies that a job of kind "preset" can run."""
        return await self._do(catalogue.presets())

    async def devices(self) -> list[Device]:
        """All devices that workers hold."""
        return await self._do(catalogue.devices())

    async def workers(self) -> list[Worker]:
        """All workers with what they are doing."""
        return await self._do(catalogue.workers())

    async def whoami(self) -> catalogue.User:
        """Whom the token belongs to."""
        return await self._do(catalogue.whoami())

    async def rotate_token(self) -> str:
        """Replace the token by a new one, which is returned this once. This client's own is useless from then on."""
        return await self._do(catalogue.rotate_token())

    async def _live(self, steps: Steps[Job]) -> AsyncLiveJob:
        return AsyncLiveJob.of(await self._do(steps), self)
