"""Runs a study from its first point to its last, one group after another."""

import time
from collections.abc import Iterator

from warpfold.kernels.bench.summary import Summary
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.exact.state import ExactState
from warpfold.kernels.lowering.conversion import narrowed_number
from warpfold.kernels.scaling.axes import Algorithm, Method, Mode, Scaling
from warpfold.kernels.scaling.commands import (
    Call,
    CheckMessage,
    Collect,
    Exchange,
    Load,
    Piecewise,
    PrepareMessage,
    Sample,
)
from warpfold.kernels.scaling.judge import TimedRuns, judged, phases_of
from warpfold.kernels.scaling.local_ranks import Sum, Timing
from warpfold.kernels.scaling.placement import Placement
from warpfold.kernels.scaling.process_group import LazyGroup, ProcessGroup
from warpfold.kernels.scaling.records import ArrayRecord, Libraries, MessageRecord, Record
from warpfold.kernels.scaling.study import ArrayCase, MessageCase, Study
from warpfold.kernels.studies.outcome import Outcome

_BATCH = 8
"""Runs that are asked for at a time: as many as a held stream takes."""

_CALLS = 5
_LEAST = 3
"""Runs that are made however long they take."""

_EXCHANGES = 20
"""All-reduces back to back, as nccl-tests makes by default."""

_SPANS = 7
"""Spans that are timed; fewer do not give an interval."""


def run(placement: Placement, study: Study) -> Iterator[Record]:
    """Every point of `study`, as soon as it is measured: arrays on one rank first, then group by group; and once, after
    those of the first group, its libraries.

    A point without room or ranks is skipped with the reason; an error in a rank fails the point, and its group is
    made anew. Raises RankLost where a process of a group dies.
    """
    return _StudyRun(placement, study).points()


class _StudyRun:
    def __init__(self, placement: Placement, study: Study) -> None:
        self._placement, self._study = placement, study
        self._alone: dict[tuple[Method, int], Summary] = {}
        self._floats: dict[int, float] = {}
        self._pieces: dict[int, ExactState] = {}
        self._named_libraries = False

    def points(self) -> Iterator[Record]:
        with LazyGroup(self._placement, Mode.ONE_PROCESS, Algorithm.AUTO, 1, 0) as lazy:
            self._add_up_pieces(lazy)
            for case in self._study.alone():
                yield self._array(lazy, case)
            yield from self._libraries(lazy)
        for mode, algorithm, ranks in self._study.groups():
            cases = list(self._study.together(mode, algorithm, ranks))
            messages = [MessageCase(mode, algorithm, ranks, nbytes) for nbytes in self._study.messages]
            if ranks > self._placement.available:
                reason = f"{ranks} ranks were asked for; this machine has room for {self._placement.available}"
                yield from (ArrayRecord.without(case, Outcome.SKIPPED, reason) for case in cases)
                yield from (MessageRecord.without(message, Outcome.SKIPPED, reason) for message in messages)
                continue
            room = self._placement.room(ranks)
            fitting = [message.nbytes for message in messages if message.nbytes <= room]
            with LazyGroup(self._placement, mode, algorithm, ranks, max(fitting, default=0)) as lazy:
                for case in cases:
                    yield self._array(lazy, case)
                for message in messages:
                    if message.nbytes <= room:
                        yield self._message(lazy, message)
                    else:
                        reason = f"{ranks} ranks have no room for messages above {room:,} bytes"
                        yield MessageRecord.without(message, Outcome.SKIPPED, reason)
                yield from self._libraries(lazy)

    def _libraries(self, lazy: LazyGroup) -> Iterator[Libraries]:
        """The libraries of the first group, once."""
        if lazy.versions is not None and not self._named_libraries:
            self._named_libraries = True
            yield Libraries(lazy.versions)

    def _add_up_pieces(self, lazy: LazyGroup) -> None:
        """Compute what all exact sums are compared with: one rank adds up each array in pieces, because it may not have
        room for the whole."""
        possible = [case for case in self._study.arrays() if case.ranks <= self._placement.available]
        for n in dict.fromkeys(
            case.n for case in possible if case.method is Method.EXACT and self._no_room(case) is None
        ):
            self._pieces[n] = lazy.group().run(Piecewise(self._study.source(n)))[0]

    def _no_room(self, case: ArrayCase) -> str | None:
        """The reason why an array is too large for its ranks; None if it may fit."""
        needed, available = case.n * DTYPES[self._study.dtype].itemsize, self._placement.memory(case.ranks)
        if needed <= available:
            return None
        return f"the array takes {needed / 1e9:.1f} GB, and its ranks have {available / 1e9:.1f} GB of memory"

    def _array(self, lazy: LazyGroup, case: ArrayCase) -> ArrayRecord:
        reason = self._no_room(case)
        if reason is not None:
            return ArrayRecord.without(case, Outcome.SKIPPED, reason)
        source = self._study.source(case.n)

        def measure(group: ProcessGroup) -> ArrayRecord:
            group.run(Load(source, case.method))
            timings = self._sample(group)
            calls: list[float] = group.run(Call(_CALLS))[0]
            sums: list[Sum] = [held for process in group.run(Collect()) for held in process]
            value = value_of(sums[0], source.dtype)
            if case.ranks == 1:
                self._alone[case.method, case.n] = phases_of(timings).total
                if case.method is Method.FLOAT:
                    self._floats[case.n] = value
            runs = TimedRuns(timings, calls, value, self._same_bits(case, sums), group.carrier)
            return judged(case, runs, source.dtype.itemsize, self._alone.get((case.method, case.baseline_n)))

        return lazy.attempt(measure, lambda outcome, reason: ArrayRecord.without(case, outcome, reason))

    def _sample(self, group: ProcessGroup) -> list[list[Timing]]:
        timings: list[list[Timing]] = []
        began = time.monotonic()
        while True:
            missing = self._study.samples - (len(timings[0]) if timings else 0)
            late = time.monotonic() - began > self._study.time_limit_s
            if missing <= 0 or (timings and late and len(timings[0]) >= _LEAST):
                return timings
            runs = _LEAST if not timings else min(_BATCH, missing)  # the first runs show how long a run takes
            answered = [rank for process in group.run(Sample(runs)) for rank in process]
            timings = [old + new for old, new in zip(timings, answered, strict=True)] if timings else answered

    def _same_bits(self, case: ArrayCase, sums: list[Sum]) -> bool | None:
        """Whether every rank holds the sum that one rank gets. For exact states that is always known, for floats in
        strong scaling only."""
        if case.method is Method.EXACT:
            state = self._pieces.get(case.n)
            return None if state is None else all(held == state for held in sums)
        alone = self._floats.get(case.n) if case.scaling is Scaling.STRONG else None
        dtype = DTYPES[self._study.dtype]
        return None if alone is None else all(value_of(held, dtype).hex() == alone.hex() for held in sums)

    def _message(self, lazy: LazyGroup, case: MessageCase) -> MessageRecord:
        def measure(group: ProcessGroup) -> MessageRecord:
            group.run(PrepareMessage(case.nbytes))
            spans: list[float] = []
            began = time.monotonic()
            runs = 1
            while len(spans) < _SPANS:
                slowest = max(seconds for process in group.run(Exchange(runs)) for seconds in process)
                if runs > 1 or slowest * _EXCHANGES * _SPANS > self._study.time_limit_s:
                    spans.append(slowest)
                else:
                    runs = _EXCHANGES  # the first exchange showed that there is time for more
                if time.monotonic() - began > self._study.time_limit_s and len(spans) >= _LEAST:
                    break
            correct = all(group.run(CheckMessage()))
            seconds = sorted(spans)[len(spans) // 2]
            return MessageRecord.timed(case, len(spans) * runs, seconds, correct=correct)

        return lazy.attempt(measure, lambda outcome, reason: MessageRecord.without(case, outcome, reason))


def value_of(held: Sum, dtype: DType) -> float:
    """The value that ranks hold, rounded once to the dtype of the elements."""
    return held.round_to(dtype) if isinstance(held, ExactState) else narrowed_number(held, dtype)
