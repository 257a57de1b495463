"""Why a job does not start though its turn may have come: no slot that could run it takes jobs."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Connection, select

from warpfold.app.tables.jobs import NONE, lives, workers
from warpfold.contract.needs import ANY, ORDERS


class Obstacle(StrEnum):
    """What is the matter with the slots that could run a job."""

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
_CALLED = {"cpu": "a CPU", "cuda": "a GPU", "gang": "all GPUs of a machine"}
_SLOTS = {"cpu": "cpu", "cuda": "cuda:0", "gang": "gang"}


def places(connection: Connection) -> tuple[Place, ...]:
    """The slots of all live workers."""
    return tuple(Place(*row) for row in connection.execute(_PLACES))


def waiting_for(needs: str, found: Sequence[Place]) -> Waiting | None:
    """What keeps a job that `needs` so from starting; None where a slot takes such jobs."""
    if needs == NONE:
        return None
    backends = ("cuda", "cpu") if needs == ANY else ORDERS.get(needs, (needs,))
    able = [place for place in found if place.backend in backends]
    if needs in ORDERS:  # it goes to the best that is there, and waits until that has started
        best = min((backends.index(place.backend) for place in able if not place.draining), default=None)
        able = able if best is None else [place for place in able if place.backend == backends[best]]
    if any(place.open for place in able):
        return None
    named = ", ".join(place.worker for place in able)
    if any(not place.draining for place in able):
        return Waiting(Obstacle.SLOTS_STARTING, f"The slots that could run it are still starting: {named}.")
    if able:
        said = f"Every slot that could run it is drained: {named}. An admin can resume one."
        return Waiting(Obstacle.SLOTS_DRAINED, said)
    called = " or ".join(_CALLED.get(one, one) for one in sorted(backends, key=list(_CALLED).index))
    advice = f"`warpfold worker --slot {_SLOTS.get(backends[-1], backends[-1])}` starts one"
    return Waiting(Obstacle.NO_SLOT, f"No live worker serves {called}; {advice}.")


def fingerprint(found: Sequence[Place]) -> str:
    """Changes with what `waiting_for` says of any job."""
    return ",".join(f"{one.worker}{'-' if one.draining else '~' if one.starting else '+'}" for one in found)
