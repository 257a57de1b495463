"""The points of a benchmark, kept as its child sends them, so that a child that dies of one point loses no other
point."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from warpfold.app.jobs.attempt import Failure, Lease
from warpfold.contract.measurement import Measurement
from warpfold.contract.states import Reason
from warpfold.worker.lease_exchange import Died, Ending, Hung
from warpfold.worker.messages import Measured, PointBegun

Span = tuple[datetime, datetime]
"""When something began, and when it ended."""


class Points:
    """The points that one attempt has measured so far."""

    def __init__(self) -> None:
        self._done: list[Measurement] = []
        self._spans: list[tuple[Measurement, Span]] = []
        self._begun: Measurement | None = None
        self._since = datetime.now(UTC)

    @property
    def spans(self) -> Sequence[tuple[Measurement, Span]]:
        """The points that were measured, and when."""
        return self._spans

    @property
    def done(self) -> tuple[Measurement, ...]:
        """The points so far, in order. They are kept if the attempt does not come to its end."""
        return tuple(self._done)

    def take(self, news: PointBegun | Measured) -> None:
        """Note that a point was begun or is done."""
        now = datetime.now(UTC)
        match news:
            case PointBegun(point):
                self._begun = point
            case Measured(point):
                self._done.append(point)
                self._spans.append((point, (self._since, now)))
                self._begun = None
        self._since = now

    def rest(self, lease: Lease, ending: Ending) -> Lease | None:
        """The lease with which another child goes on after this `ending`; None if the ending is final.

        A child that died or hung, or cannot be trusted after a CUDA error, leaves the rest of a benchmark to do, if it
        got at least one point further. A point that the child died of has failed and is not tried again.
        """
        match ending:
            case Died(exit_code):
                self._give_up(f"the process that measured it died ({_how(exit_code)})")
            case Hung(seconds):
                self._give_up(f"the process that measured it hung for {seconds:g} s")
            case Failure(Reason.CUDA_ERROR, _, replace=True):
                pass
            case _:
                return None
        self._begun = None
        further = len(self._done) > len(lease.done)
        return replace(lease, done=tuple(self._done)) if further else None

    def _give_up(self, reason: str) -> None:
        if self._begun is not None:
            self._done.append(self._begun.model_copy(update={"reason": reason}))


def _how(exit_code: int | None) -> str:
    return f"signal {-exit_code}" if exit_code is not None and exit_code < 0 else f"exit code {exit_code}"
