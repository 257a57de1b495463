"""Reductions of one array, or of two, to one value."""

import base64
from collections.abc import Sequence

from warpfold.app.jobs.attempt import Success
from warpfold.contract.inputs import MOST_OBJECTS, InputView
from warpfold.contract.json_value import check_length, hex_of, value_of
from warpfold.contract.kinds.reduce import ReduceResult, ReduceSpec
from warpfold.contract.needs import DASK
from warpfold.contract.time_view import TimeView
from warpfold.kernels.backend import Reduction
from warpfold.kernels.lowering.decimals import with_digits
from warpfold.kernels.lowering.reducing import itemsize_of
from warpfold.kernels.source import ArraySource
from warpfold.kernels.sources.chained import ChainedSource, files_read
from warpfold.kernels.sources.file_checks import intact
from warpfold.kernels.sources.inputs import Inputs
from warpfold.kernels.sources.mapped import survive_cuts
from warpfold.kernels.sources.sequential import Elements, SequentialSource, counted, dialects_of, noticed
from warpfold.worker.grouped import run_grouped
from warpfold.worker.kinds.attempt import Attempt
from warpfold.worker.stages import point_of, timings_of


def run(attempt: Attempt, spec: ReduceSpec) -> Success:
    """Reduce the elements of `spec`, which are opened here. Raises a KernelError."""
    files = [file for _, named in spec.sources() for file in named.files(attempt.folders)]
    with Inputs(files, fingerprint=spec.fingerprint, most=MOST_OBJECTS) as inputs:
        return _run(attempt, spec.numbered(attempt.folders), inputs)


def _run(attempt: Attempt, spec: ReduceSpec, inputs: Inputs) -> Success:
    if spec.backend == DASK:
        # Imported here, because only slots of a cluster have distributed.
        from warpfold.worker.dask.result import run_spread

        return run_spread(attempt, spec, inputs)
    op, grouping = spec.row(), spec.grouping()
    opened = {
        field: (named.in_place() if spec.in_place() else named).open(attempt.folders) for field, named in spec.sources()
    }
    read = [(named.identity(), part) for (_, named), part in zip(spec.sources(), opened.values(), strict=True)]
    if spec.digits is not None:
        opened["source"] = with_digits(opened["source"], spec.digits)
    sources = list(opened.values())
    width = sum(map(itemsize_of, sources))
    if any(_is_mapped(part) or isinstance(part, SequentialSource) for part in sources):  # which may read mapped files
        survive_cuts()
    with intact(read):
        if grouping is not None:
            return run_grouped(attempt, spec, grouping, opened, inputs)
        reduction = attempt.backend.reduce(
            opened["source"],
            op,
            strategy=spec.strategy,
            nan_policy=spec.nan_policy,
            ddof=spec.ddof,
            other=opened.get("other"),
            weights=opened.get("weights"),
            weighting=spec.weighting,
            progress=lambda done, total: attempt.progress(done * width, total * width, "bytes"),
        )
    return _success(attempt, spec, reduction, sources, inputs)


def _success(
    attempt: Attempt, spec: ReduceSpec, reduction: Reduction, sources: Sequence[Elements], inputs: Inputs
) -> Success:
    """The result and the measured point of a reduction of `sources`, which were read. Raises a KernelError where the
    value is too long to be written."""
    nbytes = sum(counted(part) * itemsize_of(part) for part in sources)
    decoded = [part for part in sources if isinstance(part, SequentialSource)]
    value, null = value_of(reduction), reduction.null
    if not null:
        check_length(reduction.value)
    result = ReduceResult(
        value=None if null else value,
        hex=None if null else hex_of(value),
        decimal=reduction.decimal,
        fraction=reduction.fraction,
        time=TimeView.of(reduction.time),
        dtype=reduction.dtype,
        count=reduction.count,
        op=reduction.op,
        strategy=reduction.strategy,
        correctly_rounded=reduction.correctly_rounded,
        backend=attempt.device.backend,
        device=attempt.device,
        placement=attempt.placed(spec),
        timings=timings_of(attempt, reduction, nbytes),
        provenance=attempt.provenance,
        nulls=sum(part.tally.nulls for part in decoded),
        notice=noticed(sources),
        input=InputView.of(
            [remote for part in decoded for remote in part.tally.objects],
            inputs,
            fingerprint=spec.fingerprint,
            dialects=dialects_of(decoded),
            counts=files_read(sources),
        ),
        state=None if reduction.state is None else base64.b64encode(reduction.state).decode(),
    )
    point = point_of(
        attempt,
        reduction,
        nbytes,
        dtype=sources[0].dtype.name,
        n=counted(sources[0]),
        value=None if null else repr(value),
    )
    return Success(result.model_dump(mode="json"), (point,))


def _is_mapped(source: Elements) -> bool:
    return isinstance(source, ChainedSource) or (isinstance(source, ArraySource) and source.file is not None)
