"""Merges tables of exact states."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from warpfold.app.jobs.attempt import Success
from warpfold.contract.inputs import MOST_OBJECTS, InputView
from warpfold.contract.keyed import column_values, keys_of, stands
from warpfold.contract.kinds.merge import MergeResult, MergeSpec
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.parts.keyed import GroupTable
from warpfold.kernels.parts.merging import MergePlan, StatesTable, merge_tables
from warpfold.kernels.sources.inputs import Inputs
from warpfold.kernels.strategy import EXACT
from warpfold.worker.artefacts import ArtefactWriter, Stored, store_table
from warpfold.worker.kinds.attempt import Attempt
from warpfold.worker.stages import timings_of

_FIELD = "tables"


def run(attempt: Attempt, spec: MergeSpec) -> Success:
    """Merge the tables of `spec`, which are opened here. Raises a KernelError."""
    files = [file for _, named in spec.sources() for file in named.files(attempt.folders)]
    with Inputs(files, fingerprint=False, most=MOST_OBJECTS) as inputs:
        return _run(attempt, spec, inputs)


def _run(attempt: Attempt, spec: MergeSpec, inputs: Inputs) -> Success:
    frames, tables = [], []
    for field, source in spec.sources():
        with _at(field):
            frame = source.open_table(attempt.folders)
            frames.append(frame)  # the file is closed with the table
            tables.append(StatesTable.of(frame.within(partial(_at, field)), field))
    plan = MergePlan(spec.sort, spec.min_count, spec.max_groups)
    merged = merge_tables(tables, plan, lambda done, total: attempt.progress(done, total, "rows"))
    assert merged.described is not None, "a merged table has states"
    shape = merged.described.shape
    stored = _stored(attempt, spec, merged) if spec.states or not stands(merged) else None
    nbytes = sum(states.nbytes for column in merged.columns for states in column.states)
    result = MergeResult(
        groups=int(merged.sizes.size),
        keys=keys_of(merged),
        columns=column_values([each.column for each in merged.described.values], merged),
        sizes=tuple(merged.sizes.tolist()) if stands(merged) else None,
        rows=merged.rows,
        artefact=None if stored is None else stored.artefact,
        input=InputView.of([remote for frame in frames for remote in frame.tally.objects], inputs, fingerprint=False),
        strategy=EXACT,
        correctly_rounded=True,
        backend="cpu",
        device=attempt.device,
        timings=timings_of(attempt, merged, nbytes),
        provenance=attempt.provenance,
        tables=len(tables),
        shape=shape,
    )
    return Success(result.model_dump(mode="json"), (), None if stored is None else stored.note)


def _stored(attempt: Attempt, spec: MergeSpec, merged: GroupTable) -> Stored:
    """Store the values of an array as a reduction along axes does, and groups as a group-by does."""
    described = merged.described
    assert described is not None, "a merged table has states"
    if described.shape is None:
        return store_table(attempt, merged.table() if spec.states else merged.without_states().table(), _FIELD)
    (column,) = merged.columns
    with ArtefactWriter(
        attempt, described.shape, column.dtype, each=None, field=_FIELD, described=described if spec.states else None
    ) as writer:
        writer.append(column.listed(), column.counts, column.states)
        return writer.finish()


@contextmanager
def _at(field: str) -> Iterator[None]:
    """Within the block, errors name the field of the table, in place of the field "source.…" that a source names."""
    try:
        yield
    except InvalidInput as error:
        inner = (error.field or "").removeprefix("source").removeprefix(field)
        raise InvalidInput(str(error), f"{field}{inner}") from None
