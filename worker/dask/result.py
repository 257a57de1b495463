"""Reductions on a Dask cluster as jobs: a part of the kinds `reduce` and `groupby`."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from warpfold.app.jobs.attempt import Success
from warpfold.contract.groupings import MOST_RESULTS
from warpfold.contract.inputs import InputView
from warpfold.contract.json_value import check_length, hex_of
from warpfold.contract.keyed import plan_of
from warpfold.contract.kinds.groupby import GroupbySpec
from warpfold.contract.kinds.reduce import ReduceResult, ReduceSpec
from warpfold.kernels.backend import Reduction
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import Unavailable
from warpfold.kernels.lowering.fractions import has_fraction, in_digits, means_of_column
from warpfold.kernels.machine.preparation import working_s
from warpfold.kernels.parts.array_partitions import joined
from warpfold.kernels.parts.keyed import Aggregation
from warpfold.kernels.parts.merged import Merged
from warpfold.kernels.parts.partitions import merged_value
from warpfold.kernels.parts.row_partitions import merged_rows, table_of
from warpfold.kernels.places.place import ObjectMetadata
from warpfold.kernels.sources.absent_chunks import notice_of
from warpfold.kernels.sources.inputs import Inputs
from warpfold.worker.dask.cluster import Cluster
from warpfold.worker.dask.cutting import Cut, cut, cut_rows
from warpfold.worker.dask.ran import Ran
from warpfold.worker.dask.running import Partitions
from warpfold.worker.dask.task import Partition
from warpfold.worker.grouped import ManyValues, success_of, writer_of
from warpfold.worker.kinds.attempt import Attempt
from warpfold.worker.kinds.groupby import success_of_groups
from warpfold.worker.stages import point_of, timings_of


@dataclass(frozen=True, slots=True)
class _ReadByWorkers:
    """An object of a place that Dask workers have read."""

    known: ObjectMetadata

    def metadata(self) -> ObjectMetadata:
        return self.known


def run_spread(attempt: Attempt, spec: ReduceSpec, inputs: Inputs) -> Success:
    """Reduce the elements of `spec` on the cluster of this slot. Raises a KernelError."""
    cluster = _cluster(attempt)
    cluster.check_versions()
    parts = cut(spec, attempt.folders, len(cluster.workers()))
    if spec.grouping() is not None:
        return _many_values(attempt, cluster, spec, inputs, parts)
    op = spec.row()
    merged = Merged([op])
    ran = _ran(attempt, cluster, spec, parts.partitions, merged)
    value, column = merged_value(merged, op, spec.ddof, ran.before())
    dtype = DTYPES[ran.ordered[0].dtypes[0]]
    means = means_of_column(column) if has_fraction(op, dtype) else None
    digits = in_digits(means, spec.digits)
    times, count = ran.times(), int(column.counts[0])
    nulls = sum(each.nulls for each in ran.ordered)
    null = bool(nulls) and any(source.propagates_nulls for _, source in spec.sources())
    if not null:
        check_length(value)
    reduction = Reduction(
        value=value,
        dtype=column.dtype,
        count=max(0, count - nulls) if null else count,
        op=spec.op,
        strategy="exact" if op.adds else ran.ordered[0].strategy,
        correctly_rounded=True,
        load_ms=times.load_ms,
        kernel_ms=times.kernel_ms,
        state=column.states[0][0] if len(column.states) == 1 and not null else None,
        prepare_ms=times.prepare_ms,
        stages=times.stages,
    )
    result = ReduceResult(
        value=None if null else value,
        hex=None if null else hex_of(value),
        decimal=None if null or digits is None else digits[0],
        fraction=None if null or means is None else means[0],
        dtype=reduction.dtype,
        count=reduction.count,
        op=reduction.op,
        strategy=reduction.strategy,
        correctly_rounded=True,
        backend="dask",
        device=attempt.device,
        placement=attempt.placed(spec),
        timings=timings_of(attempt, reduction, ran.nbytes),
        provenance=attempt.provenance,
        nulls=nulls,
        notice=_notice(ran),
        input=InputView.of(_objects(ran), inputs, fingerprint=spec.fingerprint, dialects=ran.dialects),
        state=None if reduction.state is None else base64.b64encode(reduction.state).decode(),
        partitions=ran.view(),
    )
    point = point_of(
        attempt, reduction, ran.nbytes, dtype=ran.ordered[0].dtypes[0], n=ran.read, value=None if null else repr(value)
    )
    return Success(result.model_dump(mode="json"), (point,))


def run_spread_groups(attempt: Attempt, spec: GroupbySpec, inputs: Inputs) -> Success:
    """Reduce the rows of `spec` on the cluster of this slot. Raises a KernelError."""
    cluster = _cluster(attempt)
    cluster.check_versions()
    plan = plan_of(spec)
    merged = merged_rows(plan)
    ran = _ran(attempt, cluster, spec, cut_rows(spec, attempt.folders, len(cluster.workers())), merged)
    began = working_s()
    table, times = table_of(merged, plan, ran.before()), ran.times()
    kernels = dict.fromkeys(each.kernel for each in ran.ordered if each.kernel is not None)
    table = replace(
        table,
        load_ms=times.load_ms,
        kernel_ms=times.kernel_ms + (working_s() - began) * 1e3,
        prepare_ms=times.prepare_ms,
        stages=times.stages,
        kernel=", ".join(kernels) or None,
    )
    read = InputView.of(_objects(ran), inputs, fingerprint=spec.fingerprint, dialects=ran.dialects)
    return success_of_groups(attempt, spec, table, read, ran.nbytes, ran.view())


def _many_values(attempt: Attempt, cluster: Cluster, spec: ReduceSpec, inputs: Inputs, parts: Cut) -> Success:
    """Values along axes or by segments. A value whose elements lie in one partition is complete; the others are merged
    from states."""
    op, grouping = spec.row(), spec.grouping()
    assert grouping is not None, "there are many values"
    merged = Merged([op])
    array_parts = [each.part for each in parts.partitions if each.part is not None]
    ran = _ran(attempt, cluster, spec, parts.partitions, merged)
    began = working_s()
    dtypes = [DTYPES[name] for name in ran.ordered[0].dtypes]
    asked = Aggregation(op, 0, op.name, spec.ddof)
    values = [each.values for each in ran.ordered if each.values is not None]
    reduction = joined(array_parts, values, merged, asked, states=spec.states)
    reduction = replace(reduction, decimals=in_digits(reduction.fractions, spec.digits))
    shape = parts.shape or (ran.read,)
    times = ran.times()
    reduction = replace(
        reduction,
        shape=values[0].shape if parts.shape is None else grouping.result_shape(shape),
        load_ms=times.load_ms,
        kernel_ms=times.kernel_ms + (working_s() - began) * 1e3,
        prepare_ms=times.prepare_ms,
        stages=times.stages,
    )
    stored = None
    if prod(reduction.shape) > MOST_RESULTS or spec.states:
        omits = any(each.nulls for each in ran.ordered)
        with writer_of(attempt, spec, grouping, shape, dtypes, omits=omits) as writer:
            writer.append(reduction.values, reduction.counts, reduction.states)
            stored = writer.finish()
    count = int(np.sum(np.asarray(reduction.counts, np.int64)))
    nulls = sum(each.nulls for each in ran.ordered)
    done = ManyValues(reduction, count, nulls, stored, ran.nbytes, ran.read, dtypes[0].name, _notice(ran))
    read = InputView.of(_objects(ran), inputs, fingerprint=spec.fingerprint, dialects=ran.dialects)
    return success_of(attempt, spec, done, read, ran.view())


def _notice(ran: Ran) -> str | None:
    return notice_of(absent for each in ran.ordered for absent in each.absences)


def _cluster(attempt: Attempt) -> Cluster:
    if not isinstance(attempt.backend, Cluster):
        raise Unavailable("this slot has no Dask cluster")
    return attempt.backend


def _ran(
    attempt: Attempt,
    cluster: Cluster,
    spec: ReduceSpec | GroupbySpec,
    partitions: Sequence[Partition],
    merged: Merged,
) -> Ran:
    def report(done: int, total: int) -> None:
        attempt.progress(done, total, "bytes")

    return Partitions(cluster, spec, attempt.folders, partitions, report, merged.add).run()


def _objects(ran: Ran) -> list[_ReadByWorkers]:
    """Each object once, with the bytes that all workers read of it."""
    by: dict[tuple[str, str | None], ObjectMetadata] = {}
    for metadata in (metadata for each in ran.ordered for metadata in each.objects):
        known = by.get((metadata.url, metadata.etag))
        read_before = 0 if known is None else known.bytes_read
        by[metadata.url, metadata.etag] = ObjectMetadata(
            metadata.url, metadata.size, metadata.etag, metadata.modified, read_before + metadata.bytes_read
        )
    return [_ReadByWorkers(metadata) for metadata in by.values()]
