"""Results that are stored as a worker stores them, without a kernel."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

import numpy as np
from numpy.typing import NDArray

from tests.support.api import Api
from tests.support.leases import lease_on
from warpfold.app.artefacts import repository
from warpfold.app.artefacts.store import ArtefactName, ArtefactStore
from warpfold.app.jobs import leases
from warpfold.app.jobs.attempt import Lease, Success
from warpfold.contract.folders import Folders
from warpfold.contract.kinds.reduce import ReduceArrayResult
from warpfold.contract.measurement import Measurement
from warpfold.worker.artefacts import ArtefactWriter, Stored, store_table
from warpfold.worker.kinds.attempt import Attempt


def attempt_in(folders: Folders, job_id: UUID | None = None, number: int = 1) -> Attempt:
    """An attempt as its child has it, as far as storing needs it."""
    unused: Any = None
    return Attempt(
        lease=lease_on("{}", job_id=job_id or uuid4(), attempt=number),
        kind="reduce",
        backend=unused,
        device=unused,
        provenance=unused,
        folders=folders,
        tell=lambda news: None,
        started=0.0,
        prepared_ms=0.0,
    )


def written(api: Api, lease: Lease, values: Any, dtype: str = "float64", counts: Any = None) -> Stored:
    """What the child writes: an array, or a table."""
    attempt = attempt_in(api.settings.folders(), lease.job_id, lease.attempt)
    if hasattr(values, "schema"):
        return store_table(attempt, values, field="by")
    shape: tuple[int, ...] = np.shape(values)
    flat: NDArray[Any] = np.asarray(values).reshape(-1)
    listed = [None if value is None else value for value in flat.tolist()]
    each = 2 if counts is None else None
    with ArtefactWriter(attempt, shape, dtype, each=each, field="axis") as writer:
        writer.append(listed, [2] * flat.size if counts is None else counts)
        return writer.finish()


def keep(api: Api, lease: Lease, stored: Stored, quota: int = 1 << 40, points: Sequence[Measurement] = ()) -> None:
    """End the job as its worker does."""

    def end(connection: Any) -> None:
        result = {**ReduceArrayResult.model_json_schema()["examples"][0], "values": None, "hex": None, "counts": None}
        result["artefact"] = stored.artefact.model_dump(mode="json")
        assert leases.succeed(connection, [(lease, Success(result, tuple(points)))])
        name = ArtefactName(lease.job_id, lease.attempt)
        repository.keep(connection, store_of(api), name, stored.note.bytes, quota)

    api.database.run(end)


def store_of(api: Api) -> ArtefactStore:
    return ArtefactStore(api.settings.artefacts_dir())
