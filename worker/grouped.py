"""Reductions along axes and by segments, to an array of values: a part of the kind `reduce`."""

from math import prod

from warpfold.contract.groupings import check_results
from warpfold.contract.inputs import InputView
from warpfold.contract.json_value import check_length, hex_of
from warpfold.contract.kinds.reduce import ReduceArrayResult, ReduceSpec
from warpfold.kernels.backend import GroupsBackend
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput, Unavailable
from warpfold.kernels.grouping import AlongAxes, Grouping
from warpfold.kernels.sequential import Elements, SequentialSource, gathered, shape_of
from warpfold.worker.kinds.attempt import Attempt
from warpfold.worker.messages import Success
from warpfold.worker.stages import point_of, timings_of


def run_grouped(
    attempt: Attempt, spec: ReduceSpec, grouping: Grouping, source: Elements, other: Elements | None
) -> Success:
    """Reduce the elements of one or two open sources to many values. Raises a KernelError."""
    if not isinstance(attempt.backend, GroupsBackend):
        raise Unavailable("reductions along axes and by segments run on CPU slots only so far")
    opened = [part for part in (source, other) if isinstance(part, SequentialSource)]
    source, shape = _with_shape(source, spec.source.known_shape)
    if other is not None:
        assert spec.other is not None, "the second source is the spec's"
        other, beside = _with_shape(other, spec.other.known_shape)
        if isinstance(grouping, AlongAxes) and beside != shape:
            raise InvalidInput(f"{spec.op} needs two sources of one shape, not {shape} and {beside}", "other")
    check_results(grouping, shape)
    width = sum(part.dtype.itemsize for part in (source, other) if part is not None)
    reduction = attempt.backend.reduce_groups(
        source,
        shape,
        grouping,
        spec.op,
        strategy=spec.strategy,
        nan_policy=spec.nan_policy,
        ddof=spec.ddof,
        other=other,
        progress=lambda done, total: attempt.progress(done * width, total * width, "bytes"),
    )
    for value in reduction.values:
        if value is not None:
            check_length(value)
    nbytes = width * prod(shape)
    read = [remote.facts() for part in opened for remote in part.tally.objects]
    real = reduction.dtype in DTYPES and DTYPES[reduction.dtype].is_float
    hexes = tuple(None if value is None else hex_of(value) for value in reduction.values)
    result = ReduceArrayResult(
        shape=reduction.shape,
        values=reduction.values,
        hex=hexes if real else None,
        dtype=reduction.dtype,
        count=sum(reduction.counts),
        counts=reduction.counts,
        input=InputView.of(read),
        op=reduction.op,
        strategy=reduction.strategy,
        kernel=reduction.kernel,
        correctly_rounded=reduction.correctly_rounded,
        backend="cpu",
        device=attempt.device,
        timings=timings_of(attempt, reduction, nbytes),
        provenance=attempt.provenance,
    )
    point = point_of(attempt, reduction, nbytes, dtype=source.dtype.name, n=prod(shape))
    return Success(result.model_dump(mode="json"), (point,))


def _with_shape(source: Elements, known: tuple[int, ...] | None) -> tuple[Elements, tuple[int, ...]]:
    """The source and the shape of its elements, which are all read where only that tells how many there are."""
    shape = known or shape_of(source)
    if shape is not None:
        return source, shape
    source = gathered(source)
    return source, (source.count,)
