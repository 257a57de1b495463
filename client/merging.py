"""Conversations about tables of exact states. The tables are merged group by group, and the result is one table or
array."""

import base64
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict
from uuid import UUID

from warpfold.client import artefacts, jobs, sources
from warpfold.client.exchange import Call, Steps, send
from warpfold.client.group_table import MergeResult
from warpfold.client.groupby import table_of
from warpfold.client.models import Job, Merged
from warpfold.client.value_arrays import array_from
from warpfold.kernels.exact import ExactState
from warpfold.kernels.places.place import is_url

if TYPE_CHECKING:
    from warpfold.contract.fields import Priority


class MergeOptions(TypedDict, total=False):
    """The options of a merge. The service's defaults hold for options that are left out (docs/exact-state.md)."""

    sort: bool
    min_count: int
    max_groups: int
    states: bool
    timeout_s: float
    priority: "Priority"
    tags: Mapping[str, str]


def _submitted(tables: Iterable[object], options: Mapping[str, Any]) -> Steps[Job]:
    """Hand in the merging of tables, which are uploaded first if they are here."""
    sources: list[dict[str, Any]] = []
    for table in tables:
        sources.append((yield from _source(table)))
    chosen = {name: value for name, value in options.items() if value is not None}
    return (yield from jobs.submit({"kind": "merge", "tables": sources, **chosen}, None))


def _values_of(result: MergeResult) -> Steps[Any]:
    """The groups as a table of pyarrow, or the values as a NumPy array; downloaded if they are stored."""
    if result.shape is None:
        return (yield from artefacts.groups_of(result))
    (column,) = result.columns
    if column.values is None and result.artefact is not None:
        return (yield from artefacts.stored_array(result.artefact))
    return array_from(column.values or (), result.shape, column.dtype)


def merged(tables: Iterable[object], options: Mapping[str, Any]) -> Steps[Any]:
    """Hand in the merging of tables, and wait for its table or array."""
    return (yield from merged_by((yield from _submitted(tables, options))))


def merged_by(job: Job) -> Steps[Any]:
    """The table or array of a job of kind `merge`, once it has ended. Raises JobFailed, and TypeError for another
    kind."""
    result = jobs.result_of((yield from jobs.wait(job)))
    if not isinstance(result, MergeResult):
        raise TypeError(f"job {job.id} is of kind {job.kind}, and merges no tables")
    return (yield from _values_of(result))


def _source(table: object) -> Steps[dict[str, Any]]:
    """How a spec names a table. Raises JobFailed for a job without a result, and TypeError for other objects."""
    if isinstance(table, Job):
        ended = yield from jobs.wait(table)
        jobs.result_of(ended)
        return {"type": "artefact", "job_id": ended.id}
    if isinstance(table, str | UUID):
        return {"type": "table", "path": table} if is_url(str(table)) else {"type": "artefact", "job_id": str(table)}
    if isinstance(table, Path):
        return (yield from sources.source(table))
    import pyarrow
    from pyarrow import ipc

    # A table without the metadata of states is sent, too: the service refuses it, and says why.
    held = table if isinstance(table, pyarrow.Table) else table_of(table)
    with tempfile.TemporaryDirectory(prefix="warpfold-") as folder:
        path = Path(folder) / "states.arrow"
        with ipc.new_file(path, held.schema) as file:
            file.write_table(held)
        return (yield from sources.source(path, rehash=True))


def merge_states(states: Iterable[ExactState | bytes | str], op: str, dtype: str) -> Steps[Merged]:
    """Have the service add exact states: objects, canonical bytes, or base64 as results carry them."""
    body = {"op": op, "dtype": dtype, "states": [_base64(state) for state in states]}
    return send(Call("POST", "/v1/states/merge", lambda answer: Merged.model_validate_json(answer.content), body=body))


def _base64(state: ExactState | bytes | str) -> str:
    if isinstance(state, str):
        return state
    return base64.b64encode(state.to_bytes() if isinstance(state, ExactState) else state).decode()
