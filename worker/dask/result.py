"""Reductions on a Dask cluster as jobs: a part of the kind `reduce`."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass, replace

from warpfold.app.jobs.attempt import Success
from warpfold.contract.inputs import InputView
from warpfold.contract.json_value import check_length, hex_of
from warpfold.contract.kinds.reduce import ReduceResult, ReduceSpec
from warpfold.kernels.errors import Unavailable
from warpfold.kernels.inputs import Inputs
from warpfold.kernels.places.place import ObjectFacts
from warpfold.worker.dask.cluster import Cluster
from warpfold.worker.dask.running import reduce_on
from warpfold.worker.kinds.attempt import Attempt
from warpfold.worker.stages import point_of, timings_of


@dataclass(frozen=True, slots=True)
class _ReadByWorkers:
    """An object of a place that Dask workers have read."""

    known: ObjectFacts

    def facts(self) -> ObjectFacts:
        return self.known


def run_spread(attempt: Attempt, spec: ReduceSpec, inputs: Inputs) -> Success:
    """Reduce the elements of `spec` on the cluster of this slot. Raises a KernelError."""
    if not isinstance(attempt.backend, Cluster):
        raise Unavailable("this slot has no Dask cluster")
    done = reduce_on(attempt.backend, spec, attempt.folders, lambda done, total: attempt.progress(done, total, "bytes"))
    reduction = done.reduction
    null = bool(done.nulls) and any(source.propagates_nulls for _, source in spec.sources())
    if null:
        reduction = replace(reduction, count=max(0, reduction.count - done.nulls), state=None)
    else:
        check_length(reduction.value)
    result = ReduceResult(
        value=None if null else reduction.value,
        hex=None if null else hex_of(reduction.value),
        dtype=reduction.dtype,
        count=reduction.count,
        op=reduction.op,
        strategy=reduction.strategy,
        correctly_rounded=reduction.correctly_rounded,
        backend="dask",
        device=attempt.device,
        placement=attempt.placed(spec),
        timings=timings_of(attempt, reduction, done.nbytes),
        provenance=attempt.provenance,
        nulls=done.nulls,
        input=InputView.of(_objects(done.objects), inputs, fingerprint=spec.fingerprint),
        state=None if reduction.state is None else base64.b64encode(reduction.state).decode(),
        partitions=done.workers,
    )
    point = point_of(
        attempt, reduction, done.nbytes, dtype=done.dtype, n=done.read, value=None if null else repr(reduction.value)
    )
    return Success(result.model_dump(mode="json"), (point,))


def _objects(read: Sequence[ObjectFacts]) -> list[_ReadByWorkers]:
    """Each object once, with the bytes that all workers read of it."""
    by: dict[tuple[str, str | None], ObjectFacts] = {}
    for facts in read:
        known = by.get((facts.url, facts.etag))
        read_before = 0 if known is None else known.bytes_read
        by[facts.url, facts.etag] = ObjectFacts(
            facts.url, facts.size, facts.etag, facts.modified, read_before + facts.bytes_read
        )
    return [_ReadByWorkers(facts) for facts in by.values()]
