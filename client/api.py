"""The Python client: submit jobs, wait for them, read results.

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
from warpfold.client.errors import JobFailed, WarpfoldError
from warpfold.client.exchange import mapped
from warpfold.client.knowing import KnowsService
from warpfold.client.later import (
    artefacts,
    batches,
    datasets,
    inspections,
    live_batches,
    reductions,
    sharing,
    uploads,
)
from warpfold.client.live_jobs import LiveJob
from warpfold.client.progress import shown
from warpfold.client.tables import HandlesTables

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from warpfold.client.artefacts import Format
    from warpfold.client.batches import Batch
    from warpfold.client.exchange import Steps
    from warpfold.client.groups import Axis, Rolling, Segments
    from warpfold.client.job_results import ReduceResult, Result
    from warpfold.client.jobs import Follow, JobFilter
    from warpfold.client.live_batches import LiveBatch
    from warpfold.client.mapping import Window
    from warpfold.client.models import Dataset, Job, JobCount, Merged
    from warpfold.client.reductions import GroupOptions, Options, ReduceOptions
    from warpfold.client.sharing import Sharing, Thing
    from warpfold.contract.jobs import JobSpec
    from warpfold.contract.webhook import Webhook
    from warpfold.kernels.exact import ExactState


class Client(KnowsService, HandlesTables):
    """A connection to one Warpfold service; `AsyncClient` is the same for asyncio.

    `url` is its address ("http://127.0.0.1:8080"), `token` the bearer token ("wf_…"). Left out, they are found in
    WARPFOLD_URL and WARPFOLD_TOKEN, in what `warpfold login` kept, or at a service that runs in this folder. Requests
    that fail because the service is restarting or busy are repeated for `patience_s` seconds; a submission carries an
    idempotency key, so that repeating it never makes a second job. Threads may share one client.

    Every method raises Unreachable where no answer came, and Refused where the service said no.
    """

    # --- jobs

    def submit(self, spec: JobSpec | Mapping[str, Any], *, key: str | None = None) -> LiveJob:
        """Hand in a job: a spec of `warpfold.contract.jobs`, or the same as JSON values, which the service checks.

        With an idempotency `key` of your own, repeating the call in another process gives the first job again.
        """
        return self._do(mapped(self._live, jobs.submit(spec, key)))

    def job(self, job_id: str) -> LiveJob:
        """A job as it is now, by its id or the beginning of it, of 4 characters or more."""
        return self._do(mapped(self._live, jobs.named(job_id)))

    def jobs(self, *, limit: int = 50, **chosen: Unpack[JobFilter]) -> list[LiveJob]:
        """The newest jobs of all users, or those that fit a `JobFilter`."""
        return self._do(mapped(self._all_live, jobs.find(chosen, limit)))

    def count_jobs(self, **chosen: Unpack[JobFilter]) -> JobCount:
        """How many jobs fit a `JobFilter`, counted up to 1000 and as far as is cheap."""
        return self._do(jobs.count(chosen))

    def cancel(self, job_id: str) -> LiveJob:
        """Ask for a job's end; a job that has ended already is Refused with 409."""
        return self._do(mapped(self._live, jobs.cancel(job_id)))

    def wait(self, job: Job, *, timeout_s: float | None = None, progress: Follow | None = None) -> LiveJob:
        """The job once it has ended, `progress` being called with each state on the way.

        Raises WaitedTooLong after `timeout_s` seconds; the job goes on.
        """
        return self._do(mapped(self._live, jobs.wait(job, timeout_s, progress)))

    def result(self, job: Job) -> Result:
        """The result of a job, waiting for it. Raises JobFailed if the job has no result."""
        return self._do(mapped(jobs.result_of, jobs.wait(job)))

    def reduction(self, job: Job) -> ReduceResult:
        """The result of a reduce job, waiting for it. Raises JobFailed without a result, TypeError for another kind."""
        return self._do(mapped(jobs.reduction_of, jobs.wait(job)))

    def artefact(self, job: Job, path: str | Path, format: Format | None = None) -> Path:
        """Download the stored result of a job, waiting for it, to a .npy, .arrow, .parquet or .csv file, or say the
        `format`. Raises JobFailed, and WarpfoldError where nothing is stored."""
        return self._do(artefacts.save(jobs.wait(job), Path(path), format))

    def array(self, job: Job) -> NDArray[Any]:
        """All values of a reduction along axes or by segments, waiting for it; masked where one is missing."""
        return self._do(artefacts.array(jobs.wait(job)))

    def delete_artefact(self, job_id: str) -> None:
        """Delete the stored result of a job, which then counts towards the quota no more."""
        return self._do(artefacts.delete(job_id))

    # --- batches

    def submit_many(
        self,
        specs: Iterable[JobSpec | Mapping[str, Any]],
        *,
        name: str = "",
        tags: Mapping[str, str] = MappingProxyType({}),
        key: str | None = None,
        webhook: Webhook | Mapping[str, Any] | None = None,
    ) -> LiveBatch:
        """Hand in up to 10,000 jobs as one batch: all of them are accepted, or none. Refused names the spec that is
        wrong (`specs[17].source.dtype`). `name`, `tags` and `webhook` are those of the batch."""
        steps = batches.submit(specs, name=name, tags=tags, key=key, webhook=webhook)
        return self._do(mapped(self._live_batch, steps))

    def sweep(
        self,
        spec: JobSpec | Mapping[str, Any],
        over: Mapping[str, Sequence[Any]],
        *,
        name: str = "",
        tags: Mapping[str, str] = MappingProxyType({}),
        key: str | None = None,
        webhook: Webhook | Mapping[str, Any] | None = None,
    ) -> LiveBatch:
        """Hand in a job for each combination of values, as one batch: `over` has the values of each field that differs
        ({"source.seed": [1, 2], "op": ["sum", "max"]}). The last field changes fastest."""
        steps = batches.sweep(spec, over, name=name, tags=tags, key=key, webhook=webhook)
        return self._do(mapped(self._live_batch, steps))

    def batch(self, batch_id: str) -> LiveBatch:
        """A batch as it is now."""
        return self._do(mapped(self._live_batch, batches.get(batch_id)))

    def batches(self, *, owner: str | None = None, id: str | None = None, limit: int = 50) -> list[LiveBatch]:
        """The newest batches of a user, by default your own; with `id` the batch with this id, or the batches whose ids
        begin with these 4 characters or more, of any user unless `owner` names one."""
        return self._do(mapped(self._all_live_batches, batches.find(owner, id, limit)))

    def map(
        self,
        op: str,
        arrays: Iterable[object],
        *,
        failures: Literal["raise", "yield"] = "raise",
        rehash: bool = False,
        **options: Unpack[Options],
    ) -> Iterator[ReduceResult | JobFailed]:
        """Reduce each of any number of arrays, or of files given as Paths; the results come in the same order.

        The arrays go in batches of 256, of which two are in hand at a time: an iterator is read no further ahead than
        that, and at most one array of more than 10,000 elements is held. A reduction that fails raises JobFailed in its
        place, and one that cannot be handed in raises why; with failures="yield" a JobFailed stands there, and the
        others go on. A caller that stops early cancels the jobs in hand.
        """
        from warpfold.client.mapping import cancelled, reduced, window

        in_hand: deque[Window] = deque()
        left = iter(arrays)
        try:
            while True:
                following = self._do(window(left, op, options, rehash=rehash))
                if following is not None:
                    in_hand.append(following)
                if not in_hand:
                    return
                if following is not None and len(in_hand) < 2:
                    continue
                for result in self._do(reduced(in_hand[0])):
                    if isinstance(result, JobFailed) and failures == "raise":
                        raise result.__cause__ or result
                    yield result
                in_hand.popleft()
        finally:
            for each in in_hand:
                with suppress(WarpfoldError):
                    self._do(cancelled(each))

    # --- arrays

    @overload
    def reduce(self, data: object, op: str = "sum", **options: Unpack[ReduceOptions]) -> ReduceResult: ...

    @overload
    def reduce(
        self, data: object, op: str = "sum", *, axis: Axis, keepdims: bool = False, **options: Unpack[ReduceOptions]
    ) -> NDArray[Any]: ...

    @overload
    def reduce(
        self, data: object, op: str = "sum", *, segments: Segments, **options: Unpack[ReduceOptions]
    ) -> NDArray[Any]: ...

    @overload
    def reduce(
        self,
        data: object,
        op: str = "sum",
        *,
        window: Rolling,
        axis: Axis | None = None,
        segments: Segments | None = None,
        **options: Unpack[ReduceOptions],
    ) -> NDArray[Any]: ...

    def reduce(
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
        """Reduce an array, by default to its correctly rounded sum, and wait for it.

        `data` is anything that holds numbers: a NumPy, CuPy, PyTorch or JAX array on any device, a column or a frame of
        pandas, Polars or Arrow, a list; a Path to a file of any format that the service reads; or a URL, which the
        service reads if it may ("s3://bucket/run-*.npy" is one array). Up to 10,000 elements go along with the request,
        more are uploaded once. No integer is rounded: columns that no dtype holds together are reduced apart and added
        exactly. `dtype` converts the elements first, and names the dtype of a column of CSV or TSV; `other` is the
        second array of `dot`, `cov` and `corr`, and `weights` has a weight for each element. With `axis`, one or
        several, or `segments`, their length or offsets, the values come as a NumPy array; with a `window`, such as its
        number of rows, or an op such as cumsum there is one for each element. A terminal shows a progress
        bar. Raises JobFailed, and TypeError for no numbers or a dtype that does not hold them.
        """
        from warpfold.client.groups import fields_of

        fields = fields_of(axis, keepdims, segments, window)

        def steps(follow: Follow | None) -> Steps[Any]:
            return reductions.reduce_any(
                data, op, fields, other, dtype, weights=weights, options=options, rehash=rehash, follow=follow
            )

        return self._do(shown(show_progress, steps))  # type: ignore[no-any-return]

    def submit_reduce(
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
    ) -> LiveJob:
        """Like `reduce`, without waiting for more than the upload. Raises TypeError for columns that no dtype holds
        together."""
        steps = reductions.submit_any(
            data, op, other=other, weights=weights, dtype=dtype, rehash=rehash, options=options
        )
        return self._do(mapped(self._live, shown(show_progress, lambda _: steps)))

    def merge(self, states: Iterable[ExactState | bytes | str], op: str = "sum", dtype: str = "float64") -> Merged:
        """Add exact states, of results or of `ExactState.of(array)`, and round once: what one reduction of all their
        elements would have given, to the bit. `dtype` is that of the elements."""
        from warpfold.client.merging import merge_states

        return self._do(merge_states(states, op, dtype))

    def upload(
        self, data: object, name: str = "", *, dtype: str | None = None, rehash: bool = False,
        show_progress: bool | None = None,
    ) -> Dataset:  # fmt: skip
        """Have the service keep an array, or as a Path a file, for `dataset` sources.

        A file that was sent before is recognised by its path, size, inode and times without being read; `rehash` reads
        it. An upload that was cut goes on where it stood, in another process too. A terminal shows a progress bar.
        Raises WarpfoldError if a file changes while it is sent.
        """
        steps = uploads.upload(uploads.content_of(data, dtype, rehash=rehash), name)
        return self._do(shown(show_progress, lambda _: steps))

    def inspect(self, source: str | Mapping[str, Any], *, timeout_s: float = 10.0) -> inspections.Inspection:
        """The contents of a file of the server's, or of a source as a spec has it: names, dtypes, shapes."""
        return self._do(inspections.inspect(source, timeout_s))

    def datasets(self, *, owner: str | None = None, limit: int = 50) -> list[Dataset]:
        """The newest uploaded arrays that you may read."""
        return self._do(datasets.find(owner, limit))

    def dataset(self, dataset_id: str) -> Dataset:
        """An uploaded array."""
        return self._do(datasets.get(dataset_id))

    def rename_dataset(self, dataset_id: str, name: str) -> Dataset:
        """Give an uploaded array another name, for people; the id stays."""
        return self._do(datasets.rename(dataset_id, name))

    def delete_dataset(self, dataset_id: str) -> None:
        """Give up an uploaded array."""
        return self._do(datasets.delete(dataset_id))

    # --- sharing

    def sharing(self, thing: Thing, id: str) -> Sharing:
        """Who sees a dataset, a job or a batch of yours, beside you and admins."""
        return self._do(sharing.get(thing, id))

    def share(self, thing: Thing, id: str, users: Sequence[str] = (), *, everyone: bool = False) -> Sharing:
        """Share a dataset, a job or a batch of yours with these users, or with everyone, and with nobody else. What
        belongs to a job is shared with it."""
        return self._do(sharing.put(thing, id, users, everyone=everyone))

    def unshare(self, thing: Thing, id: str) -> Sharing:
        """Make a dataset, a job or a batch of yours private."""
        return self._do(sharing.put(thing, id, (), everyone=False))

    def _live(self, job: Job) -> LiveJob:
        return LiveJob.of(job, self)

    def _all_live(self, listed: list[Job]) -> list[LiveJob]:
        return [self._live(job) for job in listed]

    def _live_batch(self, batch: Batch) -> LiveBatch:
        return live_batches.LiveBatch.of(batch, self)

    def _all_live_batches(self, listed: list[Batch]) -> list[LiveBatch]:
        return [self._live_batch(batch) for batch in listed]
