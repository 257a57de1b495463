"""The rows that decide who is next: slots that take jobs, jobs that may be next, and the limits of their owners."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from warpfold.contract.needs import DASK
from warpfold.contract.placement import RatesView, Work

ANY_NUMBER = (1 << 31) - 1
SMALL = 128
"""How many small jobs a slot may hold where nobody says otherwise."""


@dataclass(frozen=True, slots=True)
class Depth:
    """How many jobs may be handed to one slot at a time, the running ones included: `long` jobs that run alone, and as
    many `small` ones beside them."""

    long: int
    small: int = SMALL


@dataclass(frozen=True, slots=True)
class OpenSlot:
    """A live worker that takes jobs, and how many `long` and `small` jobs it has in hand. The long ones are predicted
    to keep it busy for `busy_s` seconds; `rates` tell how fast it is, None where they are not measured."""

    worker: str
    backend: str
    long: int = 0
    small: int = 0
    busy_s: float = 0.0
    rates: RatesView | None = None

    @property
    def idle(self) -> bool:
        """Whether it has nothing in hand."""
        return self.long == self.small == 0

    def takes_small(self, depth: Depth) -> bool:
        """Whether it has room for one more small job. Beside a long job a small one takes as much room as a long one:
        it might wait there for long, and jobs that arrive meanwhile shall have their turn."""
        return self.small < depth.small if self.long == 0 else self.small + self.long < depth.long

    def wants_small(self, depth: Depth) -> bool:
        """Whether it is to get small jobs: it is filled up when half of its places are free, not at every end."""
        return self.takes_small(depth) and (self.long > 0 or self.small <= depth.small // 2)

    def long_places(self, depth: Depth) -> int:
        """How many further long jobs it has room for."""
        return max(0, depth.long - self.long)

    def places(self, depth: Depth) -> int:
        """The largest number of further jobs, long or small, that it may have room for."""
        small = depth.small if self.long == 0 else depth.long - self.long
        return self.long_places(depth) + (small - self.small if self.wants_small(depth) else 0)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A job that may be next; those of a backend come in the order of rank, turn and age. All of its owner's jobs of
    its rank were read, or the first `read` of them. `anywhere` tells that a CPU and a GPU can run it. `work` is the
    work that it has to do, None where no time can be predicted from it."""

    job_id: UUID
    owner_id: int
    rank: int
    small: bool = False
    read: int = ANY_NUMBER
    anywhere: bool = False
    work: Work | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class TimeUsed:
    """The seconds for which jobs have held slots, by backend and owner, as they stood `counted_at`. Whoever comes to a
    rank begins with the `floors` of backend and rank. `since` tells for each backend where anything is counted how many
    jobs have held slots since the count was stored."""

    used: Mapping[tuple[str, int], float] = field(default_factory=dict)
    floors: Mapping[tuple[str, int], float] = field(default_factory=dict)
    since: Mapping[str, int] = field(default_factory=dict)
    counted_at: datetime | None = None

    def of(self, backend: str, rank: int, owner_id: int) -> float:
        """The seconds by which an owner's turn among the jobs of a rank is decided."""
        return max(self.used.get((backend, owner_id), 0.0), self.floors.get((backend, rank), 0.0))


@dataclass(frozen=True, slots=True)
class DispatchState:
    """What decides who is next, at a moment: slots, the backends that live, jobs in hand by owner, how many jobs of an
    owner may be in hand (those for whom that is set, and all others), the users who get nothing on a GPU today, whether
    any job waits for a slot at all, the seconds that jobs in hand are predicted to take, by backend and owner, whether
    any time is counted, and the time that users have used."""

    slots: Sequence[OpenSlot]
    live: Collection[str]
    in_hand: Mapping[int, int]
    most_of: Mapping[int, int]
    most_of_others: int
    kept_from_gpus: Collection[int]
    waiting: bool = True
    held_s: Mapping[tuple[str, int], float] = field(default_factory=dict)
    counts: bool = False
    time: TimeUsed = field(default_factory=TimeUsed)

    def given_s(self, backend: str, rank: int, owner_id: int) -> float:
        """The time of an owner with that of the jobs in hand: the owner of a rank who has least is next."""
        return self.time.of(backend, rank, owner_id) + self.held_s.get((backend, owner_id), 0.0)

    def may_have(self, owner_id: int, number: int) -> bool:
        """Whether an owner with so many jobs in hand may have one more."""
        return number < self.most_of.get(owner_id, self.most_of_others)

    def named(self, backend: str) -> tuple[Collection[int], bool]:
        """The ids of the users who get nothing at a slot of `backend` now or, if the second value is True, of the
        only users who get anything."""
        kept = frozenset() if backend in ("cpu", DASK) else frozenset(self.kept_from_gpus)
        known = {*self.in_hand, *self.most_of}
        free = {owner for owner in known if self.may_have(owner, self.in_hand.get(owner, 0))}
        return (kept | (known - free), False) if self.most_of_others > 0 else (free - kept, True)
