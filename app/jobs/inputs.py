"""What jobs read of users: uploaded arrays, and stored results of other jobs. Whoever submits a job sees all of it, and
a job that reads something private is private."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Table, func, select

from warpfold.app.auth.visibility import Viewer, open_to_all, visible
from warpfold.app.datasets import repository as dataset_rows
from warpfold.app.datasets import uses
from warpfold.app.http.errors import Invalid
from warpfold.app.tables.jobs import jobs
from warpfold.app.tables.users import datasets
from warpfold.contract.kinds.spec import Spec


@dataclass(frozen=True, slots=True)
class Inputs:
    """The arrays and the jobs whose stored results are read, each with the field of the request that names it, and the
    uploads that are read before they have ended."""

    datasets: Mapping[str, str] = field(default_factory=dict)
    jobs: Mapping[UUID, str] = field(default_factory=dict)
    uploads: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.datasets or self.jobs or self.uploads)


NO_INPUTS = Inputs()


def inputs_of(spec: Spec) -> Inputs:
    """What a job reads of users."""
    arrays: dict[str, str] = {}
    results: dict[UUID, str] = {}
    uploads: set[str] = set()
    for name, source in spec.sources():
        if source.upload_id is not None:
            uploads.add(source.upload_id)
        for dataset_id, within in source.dataset_ids.items():
            arrays.setdefault(dataset_id, f"{name}.{within}")
        if source.read_job_id is not None:
            results.setdefault(source.read_job_id, f"{name}.job_id")
    return Inputs(arrays, results, frozenset(uploads))


@dataclass(frozen=True, slots=True)
class SeenInputs:
    """Inputs as a look at their rows leaves them: whether everyone sees all of them, and what is wrong with one."""

    inputs: Inputs
    shared: bool
    problem: Invalid | None

    def use(self, connection: Connection, *, job: UUID | None = None, batch: UUID | None = None) -> None:
        """Note that a job or a batch, which is stored, needs the arrays. Raises Invalid that names the field of an
        input that is not there, or that is hidden from the user."""
        if self.problem is not None:
            raise self.problem
        uses.note(connection, [*self.inputs.datasets, *self.inputs.uploads], job=job, batch=batch)
        if not self.inputs.datasets:
            return
        gone = dataset_rows.use(connection, self.inputs.datasets.keys())
        for dataset, name in self.inputs.datasets.items():
            if dataset in gone:
                raise _no_dataset(name)


def look_at(connection: Connection, inputs: Inputs, viewer: Viewer) -> SeenInputs:
    """Look whether the viewer sees the inputs, and whether everyone does. An upload is its owner's alone."""
    shared, problem = not inputs.uploads, None
    kinds: Sequence[tuple[Table, Mapping[Any, str], Callable[[str], Invalid]]] = (
        (datasets, inputs.datasets, _no_dataset),
        (jobs, inputs.jobs, _no_job),
    )
    for thing, named, refusal in kinds:
        if not named:
            continue
        # An array may have several owners: it is seen by whoever sees the entry of any of them.
        rows = select(thing.c.id, func.bool_or(open_to_all(thing, viewer)))
        rows = rows.where(thing.c.id.in_(named), visible(thing, viewer)).group_by(thing.c.id)
        seen = {row[0]: row[1] for row in connection.execute(rows)}
        shared = shared and all(seen.values())
        hidden = next((name for identity, name in named.items() if identity not in seen), None)
        if hidden is not None:
            problem = problem or refusal(hidden)
    return SeenInputs(inputs, shared, problem)


def _no_dataset(name: str) -> Invalid:
    return Invalid.of(name, "there is no dataset with this id that you may read, or it was deleted")


def _no_job(name: str) -> Invalid:
    return Invalid.of(name, "there is no job with this id that you may see, or it was removed")
