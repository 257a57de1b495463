"""The messages that the parent of a slot and its child send each other through their pipe, besides the lease of an
attempt and its answer (`app.jobs.attempt`)."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from warpfold.app.jobs.attempt import Lease, Success
from warpfold.contract.measurement import Measurement


@dataclass(frozen=True, slots=True)
class Prepared:
    """The spare child is prepared as far as it can be without its device, and waits for `Open`."""


@dataclass(frozen=True, slots=True)
class Open:
    """The parent tells a spare child that the slot is its own now, and that it is to open the device."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The child opened its device, described as `/v1/devices` shows it; `rates` are those of the slot, if they are
    known."""

    device: Mapping[str, object]
    rates: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Rated:
    """The rates of the slot, which were measured or have changed."""

    rates: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Broken:
    """The child could not open its device, and is about to end."""

    error: str


@dataclass(frozen=True, slots=True)
class Progress:
    """The running job has done this many units of its work, out of a total."""

    done: int
    total: int
    unit: str


@dataclass(frozen=True, slots=True)
class PointBegun:
    """The child begins to measure a point. `point` is the row to keep if the child dies of it."""

    point: Measurement


@dataclass(frozen=True, slots=True)
class Measured:
    """The child has measured a point, which need not be measured again even if the child dies."""

    point: Measurement


@dataclass(frozen=True, slots=True)
class Timed:
    """The running job measures times, so no other process of this slot is to use the processor until it ends."""


@dataclass(frozen=True, slots=True)
class Pulse:
    """The child lives, and has no other news of the running job."""


News = Progress | PointBegun | Measured | Timed

Tell = Callable[[News], None]
"""Sends news of the running job to the parent. Most news of progress is dropped, so that sending it is cheap."""


class Work(Protocol):
    """The work of a child whose device is open."""

    @property
    def device(self) -> Mapping[str, object]: ...

    def run(self, lease: Lease, tell: Tell) -> Success:
        """Run one attempt. An error that it raises becomes a Failure by `worker.failures.failure_of`."""
        ...


@runtime_checkable
class Measuring(Protocol):
    """Work that can tell the rates of its slot."""

    @property
    def rates(self) -> Mapping[str, object] | None:
        """The rates, None where they are not known yet."""
        ...

    def measuring(self) -> Iterator[None]:
        """Measure the rates that are not known, a short step at a time."""
        ...


@runtime_checkable
class Warming(Protocol):
    """Work, or a device, whose first job would wait for what later jobs find prepared."""

    def warm(self) -> None:
        """Prepare what the commonest jobs need. It may take seconds the first time on a machine."""
        ...


Opener = Callable[[], Work]
"""Opens the device, in the child. It travels there by pickle: a function of a module, or a `partial` of one."""

Prepare = Callable[[], None]
"""Prepares a spare child without touching its device: it imports what the opener needs. It travels to the child by
pickle, as an opener does."""


@dataclass(frozen=True, slots=True)
class Spare:
    """The preparation of a spare child before it stands by. It calls `prepare` and, where `opens` is set, it opens its
    device, too. Set `opens` only for a device that two processes can hold open without disturbing each other's work or
    times."""

    prepare: Prepare
    opens: bool
