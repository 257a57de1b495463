"""Predicts which slot ends a job first, by the rates that slots have measured and the jobs that they hold.

Each candidate of a pass is booked on the slot that ends it first, even if that slot has no room now. The next candidate
then finds a longer queue there, and slower slots get the jobs that they end first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from warpfold.app.jobs.dispatch_state import Candidate, DispatchState, OpenSlot
from warpfold.contract.placement import MOST_PREDICTED, Placement, Prediction, Work

UNKNOWN_S = 1.0
"""The duration that is assumed for a job whose duration nobody can predict. `app.jobs.turns` adds the time for which it
has run already."""

_SMALL_S = 0.001
"""The duration of a small job at a slot whose rates are not measured."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """The slots that can run a job, in the order in which they would end it: each with its wait and its time."""

    ends: Sequence[tuple[float, OpenSlot, float, Prediction]]

    @property
    def slot(self) -> OpenSlot:
        return self.ends[0][1]


class Forecast:
    """The predictions of one pass of the dispatcher for the slots of its state. Each candidate is predicted once."""

    def __init__(self, now: DispatchState) -> None:
        self._now = now
        self._busy_s = {slot.worker: slot.busy_s + slot.small * small_s(slot) for slot in now.slots}
        self._choices: dict[UUID, _Choice | None] = {}

    def sends_elsewhere(self, job: Candidate, backend: str) -> bool:
        """Whether a job is to wait for slots of another backend than `backend`."""
        choice = self._choice(job)
        return choice is not None and choice.slot.backend != backend

    def first_of(self, job: Candidate, able: Sequence[OpenSlot]) -> OpenSlot | None:
        """The slot of `able` that ends a job first; None where no prediction is made for it."""
        choice = self._choice(job)
        if choice is None:
            return None
        at_hand = {slot.worker: slot for slot in able}
        return next((at_hand[slot.worker] for _, slot, _, _ in choice.ends if slot.worker in at_hand), None)

    def assigned(self, job: Candidate, slot: OpenSlot) -> tuple[float | None, Placement | None]:
        """Take note that a job goes to a slot. Returns how long it is predicted to run there, and why it goes there."""
        if job.small:
            self._busy_s[slot.worker] += small_s(slot)
            return None, None
        expected_s = _expected_s(job, slot)
        choice = self._choice(job)
        if choice is None:
            self._busy_s[slot.worker] += UNKNOWN_S if expected_s is None else expected_s
            return expected_s, None
        if slot.worker != choice.slot.worker:
            self._busy_s[choice.slot.worker] -= choice.ends[0][3].seconds
            self._busy_s[slot.worker] += expected_s or 0.0
        assert job.work is not None, "there is a choice only where there is work"
        return expected_s, _placement(choice, slot, job.work)

    def _choice(self, job: Candidate) -> _Choice | None:
        if job.job_id not in self._choices:
            choice = self._predicted(job)
            self._choices[job.job_id] = choice
            if choice is not None:
                self._busy_s[choice.slot.worker] += choice.ends[0][3].seconds
        return self._choices[job.job_id]

    def _predicted(self, job: Candidate) -> _Choice | None:
        if job.small or not job.anywhere or job.work is None:
            return None
        no_gpu = job.owner_id in self._now.kept_from_gpus
        ends = []
        for slot in self._now.slots:
            if slot.backend == "cpu" or (slot.backend == "cuda" and not no_gpu):
                if slot.rates is None:  # without rates, the cost of passing it over is unknown
                    return None
                run, wait_s = job.work.predicted(slot.rates), self._busy_s[slot.worker]
                ends.append((wait_s + run.seconds, slot, wait_s, run))
        ends.sort(key=lambda end: (end[0], end[1].backend != "cuda", end[1].worker))
        return _Choice(ends) if ends else None


def small_s(slot: OpenSlot) -> float:
    """How long a small job holds a slot."""
    return _SMALL_S if slot.rates is None else slot.rates.overhead_s


def seconds(job: Candidate, slot: OpenSlot) -> float:
    """How long a job is thought to hold a slot."""
    if job.small:
        return small_s(slot)
    expected_s = _expected_s(job, slot)
    return UNKNOWN_S if expected_s is None else expected_s


def _expected_s(job: Candidate, slot: OpenSlot) -> float | None:
    return None if job.work is None or slot.rates is None else job.work.predicted(slot.rates).seconds


def _placement(choice: _Choice, slot: OpenSlot, work: Work) -> Placement:
    own = next(end for end in choice.ends if end[1].worker == slot.worker)
    others = [end for end in choice.ends if end is not own]
    if not others:
        reason = f"{slot.worker} was the only slot that took such jobs; it was predicted to end it {_words(own)}."
    elif choice.ends[0] is own:
        reason = (
            f"{slot.worker} was predicted to end it first, {_words(own)}; "
            f"the next, {others[0][1].worker}, {_words(others[0])}."
        )
    else:
        reason = (
            f"{slot.worker} was predicted to end it first of the slots with room, {_words(own)}; "
            f"{choice.slot.worker}, which had none, {_words(choice.ends[0])}."
        )
    predicted = {each.worker: _rounded(end_s) for end_s, each, _, _ in choice.ends[:MOST_PREDICTED]}
    predicted[slot.worker] = _rounded(own[0])
    if work.bytes is None:
        reason += " The size of its input was not known, and counted as 1 GiB."
    return Placement.model_validate(
        {
            "backend": slot.backend,
            "slot": slot.worker,
            "reason": reason,
            "bytes": work.assumed_bytes,
            "predicted": predicted,
        }
    )


_STAGES = {"read": "reads", "copy": "copies", "reduce": "reduces", "generate": "generates"}


def _words(end: tuple[float, OpenSlot, float, Prediction]) -> str:
    end_s, _, wait_s, run = end
    wait = f" after {_rounded(wait_s):g} s of other jobs" if wait_s > 0.0 else ""
    return f"in {_rounded(end_s):g} s{wait}, because it {_STAGES[run.bound]} {run.gb_per_s:.3g} GB/s"


def _rounded(seconds: float) -> float:
    """Seconds, rounded to three digits: a prediction is no more precise."""
    return float(f"{seconds:.3g}")
