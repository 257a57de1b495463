"""Workers and their slots: the report of a worker, which slots are closed to new jobs, and why a job waits.

Where no slot that could run a job takes jobs, the job waits even if its turn has come.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from uuid import UUID

from sqlalchemy import Connection, func, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from warpfold.app.jobs.transitions import wake_dispatcher
from warpfold.app.metrics.devices import Reading
from warpfold.app.tables.jobs import NONE, in_hand, jobs, lives, still, workers
from warpfold.contract.needs import ANY, ORDERS
from warpfold.contract.states import Status


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """A worker as it reports itself."""

    id: str
    slot: str
    backend: str
    host: str
    pid: int
    version: str
    device: Mapping[str, object] | None
    rates: Mapping[str, object] | None = None


def live_pid(connection: Connection, worker: str) -> int | None:
    """The id of the process that reported itself as `worker` and has not been silent for too long since; None if there
    is no such process."""
    return connection.execute(select(workers.c.pid).where(workers.c.id == worker, lives())).scalar_one_or_none()


def report(
    connection: Connection,
    worker: WorkerInfo,
    state: str,
    job_id: UUID | None,
    lease_s: float,
    *,
    reading: Reading | None = None,
) -> None:
    """Register a worker, or renew its registration for `lease_s` seconds."""
    now = {
        "slot": worker.slot,
        "backend": worker.backend,
        "host": worker.host,
        "pid": worker.pid,
        "version": worker.version,
        "state": state,
        "job_id": job_id,
        "reading": None if reading is None else reading.model_dump(),
        "heartbeat_at": func.now(),
        "expires_at": func.now() + timedelta(seconds=lease_s),
    }
    if worker.device is not None:
        now |= {"device": dict(worker.device), "rates": None if worker.rates is None else dict(worker.rates)}
    connection.execute(
        upsert(workers).values(id=worker.id, **now).on_conflict_do_update(index_elements=["id"], set_=now)
    )


def drain(connection: Connection, worker: str) -> bool:
    """Close a worker's slot, also beyond a restart: it finishes what it runs and takes nothing more. False if no such
    worker has reported itself.

    What was handed to it and has not begun goes back to the queue; a message that still arrives claims nothing.
    """
    if not _set(connection, worker, draining=True):
        return False
    connection.execute(
        update(jobs).where(in_hand(), jobs.c.slot == worker, still(Status.QUEUED)).values(slot=None, dispatched_at=None)
    )
    return True


def resume(connection: Connection, worker: str) -> bool:
    """Let a worker take jobs again. False if no such worker has reported itself."""
    return _set(connection, worker, draining=False)


def _set(connection: Connection, worker: str, *, draining: bool) -> bool:
    wake_dispatcher(connection)
    return bool(connection.execute(update(workers).where(workers.c.id == worker).values(draining=draining)).rowcount)


class Obstacle(StrEnum):
    """Why no slot takes a job."""

    NO_SLOT = "no_slot"
    SLOTS_DRAINED = "slots_drained"
    SLOTS_STARTING = "slots_starting"


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a job waits for, for programs and for people."""

    reason: Obstacle
    detail: str


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """The slot of a worker that is alive."""

    worker: str
    backend: str
    starting: bool
    draining: bool

    @property
    def open(self) -> bool:
        return not (self.starting or self.draining)


_PLACES = (
    select(workers.c.id, workers.c.backend, workers.c.state == "starting", workers.c.draining)
    .where(lives(), workers.c.state != "stopped")
    .order_by(workers.c.id)
)
_CALLED = {"cpu": "a CPU", "cuda": "a GPU", "gang": "all GPUs of a machine", "dask": "a Dask cluster"}
_SLOTS = {"cpu": "cpu", "cuda": "cuda:0", "gang": "gang", "dask": "dask"}


def places(connection: Connection) -> tuple[Place, ...]:
    """The slots of all live workers."""
    return tuple(Place(*row) for row in connection.execute(_PLACES))


def waiting_for(needs: str, slots: Sequence[Place]) -> Waiting | None:
    """The reason why a job with these `needs` cannot start; None where a slot takes such jobs."""
    if needs == NONE:
        return None
    backends = ("cuda", "cpu") if needs == ANY else ORDERS.get(needs, (needs,))
    able = [place for place in slots if place.backend in backends]
    if needs in ORDERS:  # it goes to the best slot that lives, and waits until that slot has started
        best = min((backends.index(place.backend) for place in able if not place.draining), default=None)
        able = able if best is None else [place for place in able if place.backend == backends[best]]
    if any(place.open for place in able):
        return None
    named = ", ".join(place.worker for place in able)
    if any(not place.draining for place in able):
        return Waiting(Obstacle.SLOTS_STARTING, f"The slots that could run it are still starting: {named}.")
    if able:
        detail = f"Every slot that could run it is drained: {named}. An admin can resume one."
        return Waiting(Obstacle.SLOTS_DRAINED, detail)
    called = " or ".join(_CALLED.get(backend, backend) for backend in sorted(backends, key=list(_CALLED).index))
    advice = f"`warpfold worker --slot {_SLOTS.get(backends[-1], backends[-1])}` starts one"
    return Waiting(Obstacle.NO_SLOT, f"No live worker serves {called}; {advice}.")


def fingerprint(slots: Sequence[Place]) -> str:
    """A text that changes whenever `waiting_for` would give another answer for any job."""
    return ",".join(f"{place.worker}{'-' if place.draining else '~' if place.starting else '+'}" for place in slots)
