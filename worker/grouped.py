"""Reductions along axes and by segments, to an array of values: a part of the kind `reduce`. Many values stand in the
result; very many are stored in files."""

from dataclasses import replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from warpfold.app.jobs.attempt import Success
from warpfold.contract.groupings import MOST_RESULTS, check_results, field_of
from warpfold.contract.inputs import InputView
from warpfold.contract.json_value import check_length, hex_of
from warpfold.contract.kinds.reduce import ReduceArrayResult, ReduceSpec
from warpfold.kernels.backend import GroupedReduction, GroupsBackend, Progress
from warpfold.kernels.blocks import MOST_OF_BLOCK, MOST_ON_GPU, Block, blocks
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput, Unavailable
from warpfold.kernels.grouping import AlongAxes, Grouping
from warpfold.kernels.inputs import Inputs
from warpfold.kernels.nulls import keeps_nulls, nulls_met, nulls_of_values, without_values_of_nulls
from warpfold.kernels.operands import result_dtype
from warpfold.kernels.ops import NanPolicy, op_named
from warpfold.kernels.sequential import Elements, SequentialSource, gathered, shape_of
from warpfold.kernels.spread import together
from warpfold.kernels.state_tables import TableOfStates
from warpfold.worker.artefacts import ArtefactWriter, Stored
from warpfold.worker.kinds.attempt import Attempt
from warpfold.worker.stages import point_of, timings_of


def run_grouped(
    attempt: Attempt, spec: ReduceSpec, grouping: Grouping, sources: tuple[Elements, Elements | None], inputs: Inputs
) -> Success:
    """Reduce the elements of one or two open `sources`, which read `inputs`, to many values. Raises a KernelError."""
    source, other = sources
    if not isinstance(attempt.backend, GroupsBackend):
        raise Unavailable("this slot does not reduce along axes and by segments")
    read_in_order = [part for part in (source, other) if isinstance(part, SequentialSource)]
    both = [part for part in (source, other) if part is not None]
    source, shape = _with_shape(source, spec.source.known_shape)
    if other is not None:
        assert spec.other is not None, "the second source is the spec's"
        other, beside = _with_shape(other, spec.other.known_shape)
        if isinstance(grouping, AlongAxes) and beside != shape:
            raise InvalidInput(f"{spec.op} needs two sources of one shape, not {shape} and {beside}", "other")
    result_shape = check_results(grouping, shape)
    width = sum(part.dtype.itemsize for part in (source, other) if part is not None)

    def progress(done: int, total: int) -> None:
        attempt.progress(done * width, total * width, "bytes")

    whole = Block((source,) if other is None else (source, other), shape, grouping, prod(result_shape))
    stored: Stored | None = None
    if whole.values > MOST_RESULTS or spec.states:
        nulls = None
        if any(map(keeps_nulls, both)):  # values are written as they come, and so it must be known which are null
            nulls = nulls_of_values(attempt.backend, both, shape, grouping)
        reduction, count, stored = _reduced_to_files(attempt, attempt.backend, spec, whole, nulls)
    else:
        reduction = _reduced(attempt.backend, spec, whole, progress)
        if nulls_met(both):
            nulls = nulls_of_values(attempt.backend, both, shape, grouping)
            reduction = without_values_of_nulls(reduction, nulls)
        count = sum(reduction.counted())
    stands = whole.values <= MOST_RESULTS
    values = reduction.listed() if stands else None
    for value in values or ():
        if value is not None:
            check_length(value)
    nbytes = width * prod(shape)
    read = [remote for part in read_in_order for remote in part.tally.objects]
    real = reduction.dtype in DTYPES and DTYPES[reduction.dtype].is_float
    hexes = None if values is None else tuple(None if value is None else hex_of(value) for value in values)
    result = ReduceArrayResult(
        shape=result_shape,
        values=values,
        hex=hexes if real else None,
        dtype=reduction.dtype,
        count=count,
        counts=reduction.counted() if stands else None,
        artefact=None if stored is None else stored.artefact,
        nulls=nulls_met(both),
        input=InputView.of(read, inputs, fingerprint=spec.fingerprint),
        op=reduction.op,
        strategy=reduction.strategy,
        kernel=reduction.kernel,
        correctly_rounded=reduction.correctly_rounded,
        backend=attempt.device.backend,
        device=attempt.device,
        placement=attempt.placed(spec),
        timings=timings_of(attempt, reduction, nbytes),
        provenance=attempt.provenance,
    )
    point = point_of(attempt, reduction, nbytes, dtype=source.dtype.name, n=prod(shape))
    return Success(result.model_dump(mode="json"), (point,), None if stored is None else stored.note)


def _reduced(backend: GroupsBackend, spec: ReduceSpec, block: Block, progress: Progress) -> GroupedReduction:
    return backend.reduce_groups(
        block.sources[0],
        block.shape,
        block.grouping,
        spec.op,
        strategy=spec.strategy,
        nan_policy=spec.nan_policy,
        ddof=spec.ddof,
        other=block.sources[1] if len(block.sources) > 1 else None,
        progress=progress,
        states=spec.states,
    )


def _reduced_to_files(
    attempt: Attempt, backend: GroupsBackend, spec: ReduceSpec, whole: Block, nulls: NDArray[np.int64] | None
) -> tuple[GroupedReduction, int, Stored]:
    """Reduce block by block, and store the values, which are null where `nulls` counts any. Returns what holds of all
    blocks together, with values only where a result holds them, how many elements entered the values, and what was
    stored."""
    grouping, shape, sources = whole.grouping, whole.shape, whole.sources
    result_shape, width = grouping.result_shape(shape), sum(source.dtype.itemsize for source in sources)
    first, total, done, count, values = sources[0].dtype, prod(shape), 0, 0, 0
    each = None
    omits = (first.is_float and spec.nan_policy is NanPolicy.OMIT) or nulls is not None
    if isinstance(grouping, AlongAxes) and not omits:
        each = prod(shape[axis] for axis in grouping.reduced(len(shape)))
    op, dtypes = op_named(spec.op), [source.dtype for source in sources]
    described = TableOfStates.of_array(result_shape, op, dtypes, spec.ddof) if spec.states else None
    parts: list[GroupedReduction] = []
    with ArtefactWriter(
        attempt, result_shape, result_dtype(op, *dtypes), each=each, field=field_of(grouping), described=described
    ) as writer:
        on_cpu = attempt.device.backend == "cpu"
        for block in blocks(sources, shape, grouping, MOST_OF_BLOCK if on_cpu else MOST_ON_GPU, strips=on_cpu):
            before = done

            def progress(now: int, of: int, before: int = before) -> None:
                attempt.progress((before + now) * width, total * width, "bytes")

            try:
                part = _reduced(backend, spec, block, progress)
            except InvalidInput as error:
                if error.field == "nan_policy" and block.shape != shape:  # the block counts its elements from 0
                    raise InvalidInput("an element is NaN, and nan_policy is raise", "nan_policy") from None
                raise
            if nulls is not None:
                part = without_values_of_nulls(part, nulls[values : values + block.values])
            values += block.values
            done += prod(block.shape)
            count += int(np.sum(part.counts))
            writer.append(part.values, part.counts, part.states)
            stands = whole.values <= MOST_RESULTS
            parts.append(replace(part, states=()) if stands else replace(part, values=(), counts=(), states=()))
        return together(parts), count, writer.finish()


def _with_shape(source: Elements, known: tuple[int, ...] | None) -> tuple[Elements, tuple[int, ...]]:
    """The source and the shape of its elements. All elements are read first where their number is not known
    otherwise."""
    shape = known or shape_of(source)
    if shape is not None:
        return source, shape
    source = gathered(source)
    return source, (source.count,)
