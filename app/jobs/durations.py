"""How long jobs take: what the rates of a slot predict, corrected by what the latest jobs that are alike took."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BigInteger, Boolean, Double, Integer, String, bindparam, text

from warpfold.contract.placement import RatesView, Work

_LATEST = 200
"""How many of the latest jobs that ended, of all kinds, the durations are taken from."""

_ENOUGH = 3
"""Of how many jobs of one owner the mean says more than that of all owners' jobs."""

# Small jobs are claimed together, run one after the other, and end together. Those that end at a moment share the time
# since the end before it, or since they began.
TOOK = (
    text("""
    with latest as (
        select owner_id, kind, small and losses = 0 as small, worker, status, expected_s, started_at, finished_at
        from jobs where finished_at is not null order by finished_at desc limit :latest
    ), ends as (
        select worker, finished_at, extract(epoch from finished_at - greatest(
            min(started_at), lag(finished_at) over (partition by worker order by finished_at)
        )) / count(*) as took_s
        from latest group by worker, finished_at
    )
    select owner_id, kind, small, backend, count(*) as number, sum(took_s)::float8 as took_s,
           coalesce(sum(took_s) filter (where expected_s is not null), 0)::float8 as of_expected_s,
           coalesce(sum(expected_s), 0) as expected_s
    from latest join ends using (worker, finished_at) join workers on workers.id = latest.worker
    where latest.status = 'succeeded'
    group by owner_id, kind, small, backend
""")
    .bindparams(bindparam("latest", _LATEST, Integer))
    .columns(
        owner_id=BigInteger,
        kind=String,
        small=Boolean,
        backend=String,
        number=BigInteger,
        took_s=Double,
        of_expected_s=Double,
        expected_s=Double,
    )
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
