"""What the parent of a slot and its child say to each other through their pipe."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from warpfold.contract.measurement import Measurement
from warpfold.contract.states import Reason


@dataclass(frozen=True, slots=True)
class Request:
    """One attempt of a job, to be run. `spec` is its JSON text, `queued_ms` how long it waited; `done` are the points
    that the attempt has already, measured by a child that did not live to the end. `request_id` names the request that
    brought the job, for the log."""

    job_id: UUID
    attempt: int
    spec: str
    queued_ms: float
    done: tuple[Measurement, ...] = ()
    request_id: str | None = None


@dataclass(frozen=True, slots=True)
class Ready:
    """The child opened its device, described as `/v1/devices` shows it."""

    device: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Broken:
    """The child could not open its device, and ends."""

    error: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the running job is."""

    done: int
    total: int
    unit: str


@dataclass(frozen=True, slots=True)
class Begun:
    """A point is being measured. `point` is what to keep of it if the child dies of it."""

    point: Measurement


@dataclass(frozen=True, slots=True)
class Measured:
    """A point is done: it need not be measured again, whatever becomes of the child."""

    point: Measurement


@dataclass(frozen=True, slots=True)
class Pulse:
    """The child lives, though it has nothing to tell of the running job."""


@dataclass(frozen=True, slots=True)
class Success:
    """A result as JSON values, and what was measured on the way."""

    result: Mapping[str, object]
    points: tuple[Measurement, ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """Why the job failed, with a sentence for its owner. `replace`: the child is not to be trusted any more."""

    reason: Reason
    error: str
    replace: bool


News = Progress | Begun | Measured

Tell = Callable[[News], None]
"""Takes what is new of the running job; progress is cheap to tell often."""


class Work(Protocol):
    """What a child does, once its device is open."""

    @property
    def device(self) -> Mapping[str, object]: ...

    def run(self, request: Request, tell: Tell) -> Success:
        """Run one attempt. An error that it raises becomes a Failure by `worker.failures.failure_of`."""
        ...


Opener = Callable[[], Work]
"""Opens the device, in the child. It travels there by pickle: a function of a module, or a `partial` of one."""
