"""How long jobs take: what the rates of a slot predict, corrected by what the latest jobs that are alike took."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select

from warpfold.app.tables.jobs import in_groups, jobs, workers
from warpfold.contract.placement import RatesView, Work
from warpfold.contract.states import Status

_LATEST = 200
"""How many of the latest jobs that ended, of all kinds, the durations are taken from."""

_ENOUGH = 3
"""Of how many jobs of one owner the mean says more than that of all owners' jobs."""

_latest = (
    select(
        jobs.c.owner_id,
        jobs.c.kind,
        in_groups().label("small"),
        jobs.c.worker,
        jobs.c.status,
        jobs.c.expected_s,
        func.extract("epoch", jobs.c.finished_at - jobs.c.started_at).label("took_s"),
    )
    .where(jobs.c.finished_at.is_not(None))
    .order_by(jobs.c.finished_at.desc())
    .limit(_LATEST)
    .subquery("latest")
)
_expected = _latest.c.expected_s.is_not(None)
TOOK = (
    select(
        _latest.c.owner_id,
        _latest.c.kind,
        _latest.c.small,
        workers.c.backend,
        func.count().label("number"),
        func.sum(_latest.c.took_s).label("took_s"),
        func.coalesce(func.sum(_latest.c.took_s).filter(_expected), 0).label("of_expected_s"),
        func.coalesce(func.sum(_latest.c.expected_s), 0).label("expected_s"),
    )
    .select_from(_latest)
    .join(workers, workers.c.id == _latest.c.worker)
    .where(_latest.c.status == Status.SUCCEEDED.value)
    .group_by(_latest.c.owner_id, _latest.c.kind, _latest.c.small, workers.c.backend)
)
"""Rows of `Durations`."""


@dataclass(frozen=True, slots=True)
class Alike:
    """What jobs that take about as long have in common: their owner, their kind, and whether they are small."""

    owner_id: int
    kind: str
    small: bool


@dataclass(frozen=True, slots=True)
class Took:
    """How many jobs ended, the seconds that they took in all, and of those that had a prediction the seconds that they
    took and that had been predicted."""

    number: int = 0
    took_s: float = 0.0
    of_expected_s: float = 0.0
    expected_s: float = 0.0

    def and_more(self, other: "Took") -> "Took":
        """Both together."""
        return Took(
            self.number + other.number,
            self.took_s + other.took_s,
            self.of_expected_s + other.of_expected_s,
            self.expected_s + other.expected_s,
        )


_NONE = Took()


class Durations:
    """What the latest jobs took: by their likeness and backend."""

    def __init__(self, took: Iterable[tuple[Alike, str, Took]]) -> None:
        self._own = {(alike, backend): each for alike, backend, each in took}
        of_all: defaultdict[tuple[str, bool, str], Took] = defaultdict(Took)
        for (alike, backend), each in self._own.items():
            key = alike.kind, alike.small, backend
            of_all[key] = of_all[key].and_more(each)
        self._of_all: Mapping[tuple[str, bool, str], Took] = of_all

    @classmethod
    def of_rows(cls, rows: Iterable[Sequence[Any]]) -> "Durations":
        """The durations of rows of `TOOK`."""
        return cls((Alike(*row[:3]), row[3], Took(*row[4:])) for row in rows)

    def of(self, alike: Alike, backend: str, work: Work | None = None, rates: RatesView | None = None) -> float | None:
        """The seconds that a job takes a slot; None where nothing tells them. With the `work` and `rates` of the slot
        it is what they predict, corrected, unless the size of the work is unknown and jobs that are alike have run."""
        if work is None or rates is None or (work.bytes is None and self._ran(alike, backend).number):
            ran = self._ran(alike, backend)
            return ran.took_s / ran.number if ran.number else None
        return self.corrected(work.predicted(rates).seconds, alike, backend)

    def corrected(self, expected_s: float, alike: Alike, backend: str) -> float:
        """A prediction times how far those of the latest jobs fell short."""
        ran = self._ran(alike, backend)
        return expected_s * ran.of_expected_s / ran.expected_s if ran.expected_s and ran.of_expected_s else expected_s

    def _ran(self, alike: Alike, backend: str) -> Took:
        own = self._own.get((alike, backend), _NONE)
        return own if own.number >= _ENOUGH else self._of_all.get((alike.kind, alike.small, backend), _NONE)
