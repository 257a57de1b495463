"""Reductions of the rows of each group, by keys."""

from warpfold.app.jobs.attempt import Success
from warpfold.contract.inputs import MOST_OBJECTS, InputView
from warpfold.contract.keyed import keys_of, open_rows, plan_of, stands, values_of
from warpfold.contract.kinds.groupby import GroupbyResult, GroupbySpec
from warpfold.contract.needs import DASK
from warpfold.contract.partitions import PartitionsView
from warpfold.kernels.parts.keyed import GroupTable
from warpfold.kernels.sources.file_checks import intact
from warpfold.kernels.sources.inputs import Inputs
from warpfold.kernels.sources.mapped import survive_cuts
from warpfold.kernels.strategy import EXACT
from warpfold.worker.artefacts import store_table
from warpfold.worker.kinds.attempt import Attempt
from warpfold.worker.stages import timings_of


def run(attempt: Attempt, spec: GroupbySpec) -> Success:
    """Reduce the rows of `spec`, which are opened here. Raises a KernelError."""
    files = [file for _, named in spec.sources() for file in named.files(attempt.folders)]
    with Inputs(files, fingerprint=spec.fingerprint, most=MOST_OBJECTS) as inputs:
        if spec.backend == DASK:
            # Here, because only slots of a cluster have distributed.
            from warpfold.worker.dask.result import run_spread_groups

            return run_spread_groups(attempt, spec, inputs)
        return _run(attempt, spec, inputs)


def _run(attempt: Attempt, spec: GroupbySpec, inputs: Inputs) -> Success:
    rows = open_rows(spec, attempt.folders)
    survive_cuts()
    with intact(rows.files):
        table = attempt.backend.group_by(
            rows, plan_of(spec), progress=lambda done, total: attempt.progress(done, total, "rows")
        )
    nbytes = sum(dtype.itemsize for dtype in rows.dtypes) * (table.rows + table.dropped)
    read = InputView.of(
        rows.remotes(), inputs, fingerprint=spec.fingerprint, dialects=rows.dialects(), counts=rows.counts()
    )
    return success_of_groups(attempt, spec, table, read, nbytes)


def success_of_groups(  # noqa: PLR0917
    attempt: Attempt,
    spec: GroupbySpec,
    table: GroupTable,
    read: InputView | None,
    nbytes: int,
    partitions: PartitionsView | None = None,
) -> Success:
    """The result of a table of groups, whose columns had `nbytes` bytes. Raises InvalidInput for an integer that is too
    long to be served, and as `store_table`."""
    stored = store_table(attempt, table.table(), "by") if spec.states or not stands(table) else None
    result = GroupbyResult(
        groups=int(table.sizes.size),
        keys=keys_of(table),
        columns=values_of(spec, table),
        sizes=tuple(table.sizes.tolist()) if stands(table) else None,
        rows=table.rows,
        dropped=table.dropped,
        artefact=None if stored is None else stored.artefact,
        input=read,
        strategy=EXACT,
        kernel=table.kernel,
        correctly_rounded=True,
        backend=attempt.device.backend,
        device=attempt.device,
        timings=timings_of(attempt, table, nbytes),
        provenance=attempt.provenance,
        partitions=partitions,
    )
    return Success(result.model_dump(mode="json"), (), None if stored is None else stored.note)
