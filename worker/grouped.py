"""Reductions along axes and by segments, to an array of values: a part of the kind `reduce`. The result holds up to a
limit of values; more are stored in files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from warpfold.app.jobs.attempt import Success
from warpfold.contract.groupings import MOST_RESULTS, check_results, field_of
from warpfold.contract.inputs import InputView
from warpfold.contract.json_value import check_length, hex_of
from warpfold.contract.kinds.reduce import ReduceArrayResult, ReduceSpec
from warpfold.contract.partitions import PartitionsView
from warpfold.contract.time_view import TimeView
from warpfold.kernels.backend import GroupedReduction, Progress
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.lowering.nulls import keeps_nulls, nulls_met
from warpfold.kernels.lowering.reducing import meaning_of, refuse_meaning
from warpfold.kernels.ops import NanPolicy, Result
from warpfold.kernels.ops.operands import result_dtype
from warpfold.kernels.parts.grouping import AlongAxes
from warpfold.kernels.parts.over_devices import together
from warpfold.kernels.parts.rolling import Layout, Rolling
from warpfold.kernels.parts.state_tables import TableOfStates
from warpfold.kernels.query import Moving, Shaped
from warpfold.kernels.sources.chained import files_read
from warpfold.kernels.sources.inputs import Inputs
from warpfold.kernels.sources.sequential import Elements, SequentialSource, dialects_of, noticed, shaped
from warpfold.worker.artefacts import ArtefactWriter, Stored
from warpfold.worker.kinds.attempt import Attempt
from warpfold.worker.stages import point_of, timings_of


def run_grouped(
    attempt: Attempt, spec: ReduceSpec, grouping: Layout, opened: Mapping[str, Elements], inputs: Inputs
) -> Success:
    """Reduce the elements of open sources, which are named by their fields and read `inputs`, to many values. Raises a
    KernelError."""
    both = [part for field, part in opened.items() if field not in ("over", "keys")]
    read_in_order = [part for part in both if isinstance(part, SequentialSource)]
    sources, shapes = dict[str, Elements](), dict[str, tuple[int, ...]]()
    for field, named in spec.sources():
        sources[field], shapes[field] = shaped(opened[field], named.known_shape)
        if isinstance(grouping, AlongAxes) and shapes[field] != shapes["source"]:
            raise InvalidInput(
                f"{spec.op} needs two sources of one shape, not {shapes['source']} and {shapes[field]}", field
            )
    source, shape = sources["source"], shapes["source"]
    op = spec.row()
    result_shape = check_results(grouping, shape, op)
    width = sum(part.dtype.itemsize for part in sources.values())

    def progress(done: int, total: int) -> None:
        attempt.progress(done * width, total * width, "bytes")

    asked: dict[str, Any] = {
        "source": source, "op": op, "other": sources.get("other"), "strategy": spec.strategy, "shape": shape,
        "nan_policy": spec.nan_policy, "ddof": spec.ddof, "weights": sources.get("weights"),
        "weighting": spec.weighting,
    }  # fmt: skip
    query: Shaped | Moving
    many = prod(result_shape) > MOST_RESULTS
    if isinstance(grouping, Rolling):
        query = Moving(**asked, grouping=grouping, over=sources.get("over"), keys=sources.get("keys"))
    else:
        query = Shaped(**asked, grouping=grouping, states=spec.states, fractions=not many)
    stored: Stored | None = None
    if many:
        for part in both:
            if not _numbers_alone(part):
                refuse_meaning(part, f"a result of more than {MOST_RESULTS:,} values", field_of(grouping))
    if many or (spec.states and meaning_of(source) is None):
        reduction, count, stored = _reduced_to_files(attempt, spec, query, progress, keep=not many)
    else:
        reduction = attempt.backend.answer(query, progress)
        count = sum(reduction.counted()) // (op.listed or 1)
    count = prod(shape) if isinstance(grouping, Rolling) else count  # an element is in several windows
    read = [remote for part in read_in_order for remote in part.tally.objects]
    done = ManyValues(
        replace(reduction, shape=result_shape),
        count,
        nulls_met(both),
        stored,
        width * prod(shape),
        prod(shape),
        source.dtype.name,
        noticed(both),
    )
    dialects = dialects_of(read_in_order)
    view = InputView.of(
        read, inputs, fingerprint=spec.fingerprint, dialects=dialects, counts=files_read(opened.values())
    )
    return success_of(attempt, spec, done, view)


@dataclass(frozen=True, slots=True)
class ManyValues:
    """A reduction to many values: how many elements entered all values, how many nulls were left out, the stored
    artefact, and what the reduction read: bytes, elements, their dtype and what is to be known about them. It has its
    values if the result holds them."""

    reduction: GroupedReduction
    count: int
    nulls: int
    stored: Stored | None
    nbytes: int
    elements: int
    dtype: str
    notice: str | None = None


def success_of(
    attempt: Attempt,
    spec: ReduceSpec,
    done: ManyValues,
    read: InputView | None,
    partitions: PartitionsView | None = None,
) -> Success:
    """The result of the reduction for its job. Raises InvalidInput for an integer that is too long to be served."""
    reduction = done.reduction
    stands = prod(reduction.shape) <= MOST_RESULTS
    values = reduction.listed() if stands else None
    for value in values or ():
        if value is not None:
            check_length(value)
    real = reduction.dtype in DTYPES and DTYPES[reduction.dtype].is_float
    hexes = None if values is None else tuple(None if value is None else hex_of(value) for value in values)
    result = ReduceArrayResult(
        shape=reduction.shape,
        values=values,
        hex=hexes if real else None,
        decimal=reduction.decimals,
        fraction=reduction.fractions,
        time=None if reduction.times is None else tuple(map(TimeView.of, reduction.times)),
        dtype=reduction.dtype,
        count=done.count,
        counts=reduction.counted() if stands else None,
        artefact=None if done.stored is None else done.stored.artefact,
        nulls=done.nulls,
        notice=done.notice,
        input=read,
        op=reduction.op,
        strategy=reduction.strategy,
        kernel=reduction.kernel,
        correctly_rounded=reduction.correctly_rounded,
        backend=attempt.device.backend,
        device=attempt.device,
        placement=attempt.placed(spec),
        timings=timings_of(attempt, reduction, done.nbytes),
        provenance=attempt.provenance,
        partitions=partitions,
    )
    point = point_of(attempt, reduction, done.nbytes, dtype=done.dtype, n=done.elements)
    return Success(result.model_dump(mode="json"), (point,), None if done.stored is None else done.stored.note)


def _reduced_to_files(
    attempt: Attempt, spec: ReduceSpec, query: Shaped | Moving, progress: Progress, *, keep: bool
) -> tuple[GroupedReduction, int, Stored]:
    """Reduce block by block, and store the values. Returns the reduction of all blocks together, which has its values
    with `keep`, how many elements entered the values, and the stored artefact."""
    parts, count, sources = list[GroupedReduction](), 0, query.sources
    omits, packed = any(map(keeps_nulls, sources)), any(meaning_of(part) is not None for part in sources)
    dtypes = [source.dtype for source in sources]
    with writer_of(attempt, spec, query.grouping, query.shape, dtypes, omits=omits, packed=packed) as writer:
        for part in attempt.backend.in_blocks(query, progress):
            count += int(np.sum(part.counts)) // (query.op.listed or 1)
            writer.append(part.values, part.counts, part.states)
            parts.append(replace(part, states=()) if keep else replace(part, values=(), counts=(), states=()))
        return together(parts), count, writer.finish()


def _numbers_alone(source: Elements) -> bool:
    meaning = meaning_of(source)
    return meaning is not None and meaning.numbers_alone


def writer_of(
    attempt: Attempt,
    spec: ReduceSpec,
    grouping: Layout,
    shape: tuple[int, ...],
    dtypes: Sequence[DType],
    *,
    omits: bool,
    packed: bool = False,
) -> ArtefactWriter:
    """A writer for the values of an array of `shape` of elements of `dtypes`, some of which are left out with `omits`;
    those of `packed` elements are float64. Raises as `ArtefactWriter`."""
    op, each = spec.row(), None
    result_shape = op.shape_of(grouping.result_shape(shape))
    omits |= dtypes[0].is_float and spec.nan_policy is NanPolicy.OMIT
    if isinstance(grouping, AlongAxes) and not omits:
        each = prod(shape[axis] for axis in grouping.reduced(len(shape)))
    described = TableOfStates.of_array(result_shape, op, dtypes, spec.ddof) if spec.states else None
    dtype = "float64" if packed and op.result is not Result.INDEX else result_dtype(op, *dtypes)
    return ArtefactWriter(attempt, result_shape, dtype, each=each, field=field_of(grouping), described=described)
