"""The ranks of one process on GPUs: all of a team, driven by one thread, or a single one.

Ranks begin a run together: an all-reduce of one number, which none leaves before all have come, goes before it on each
stream. Everything of several runs is put on the streams while they are held, so that no GPU waits for its host.
"""

import time
from collections.abc import Sequence
from typing import Any

from kernels.cuda.bench.gate import held_together
from kernels.cuda.exact import ExactAccumulator
from kernels.cuda.failures import cuda_errors
from kernels.cuda.feed import carrier
from kernels.cuda.generator import fill
from kernels.cuda.installation import nccl_version
from kernels.cuda.scaling import nccl
from kernels.cuda.scaling.seat import Seat
from kernels.dtypes import DType
from kernels.exact.finish import total
from kernels.exact.state import ExactState
from kernels.generate import plan
from kernels.ops import Terms
from kernels.scaling.axes import Method
from kernels.scaling.crew import Sum, Timing
from kernels.scaling.study import WORD, shard
from kernels.source import GeneratedSource

PIECE_BYTES = 1 << 30
"""Made at a time where no array is kept."""

_WARM_UP = 3


class CudaCrew:
    """GPUs `indices` as the ranks from `first` on, of `ranks`."""

    def __init__(self, indices: Sequence[int], first: int, ranks: int) -> None:
        self._first, self._ranks = first, ranks
        self._seats = [Seat(index, first + place) for place, index in enumerate(indices)]
        self._group: nccl.Group | None = None
        self._dtype: DType | None = None

    @property
    def versions(self) -> tuple[tuple[str, str], ...]:
        import cupy

        return (("cupy", cupy.__version__), ("nccl", nccl_version()))

    @property
    def token(self) -> object:
        alone = len(self._seats) == self._ranks
        return None if alone or self._first else nccl.new_token()

    def join(self, token: object) -> None:
        if self._ranks > 1:
            self._group = nccl.Group([seat.gpu for seat in self._seats], self._first, self._ranks, token)
            self._meet()
            self._wait()

    def load(self, source: GeneratedSource, method: Method) -> None:
        self._dtype = source.dtype
        for seat in self._seats:
            with seat.gpu.active():
                seat.load(source, *shard(source.count, self._ranks, seat.rank), method)
        for _ in range(_WARM_UP):  # nothing may be loaded for the first time while the streams are held
            self._run()
            self._wait()

    def sample(self, runs: int) -> list[list[Timing]]:
        with nccl.nccl_errors("timing"):
            with held_together([seat.gate for seat in self._seats]):
                spans = [self._run() for _ in range(runs)]
            return [self._timings(place, [span[place] for span in spans]) for place in range(len(self._seats))]

    def call(self, runs: int) -> list[float]:
        seconds = []
        for _ in range(runs):
            self._meet()
            self._wait()
            started = time.perf_counter()
            self._reduce()
            self._add_up()
            self._wait()
            if self._first == 0:
                self._value()
            seconds.append(time.perf_counter() - started)
        return seconds

    def collect(self) -> list[Sum]:
        return [self._sum(seat) for seat in self._seats]

    def piecewise(self, source: GeneratedSource) -> ExactState:
        import cupy

        seat, made = self._seats[0], plan(source)
        step = PIECE_BYTES // source.dtype.itemsize
        with seat.gpu.active(), cuda_errors("adding up in pieces"):
            seat.empty()
            added = ExactAccumulator(seat.gpu, source.dtype, Terms.VALUES)
            room = cupy.empty(min(step, source.count), dtype=carrier(source.dtype))
            for start in range(0, source.count, step):
                piece = room[: min(step, source.count - start)]
                fill(seat.gpu, made, piece, start)
                added.add(piece)
            return added.state()

    def post(self, nbytes: int) -> None:
        for seat in self._seats:
            with seat.gpu.active():
                seat.post(nbytes // WORD)
        for _ in range(_WARM_UP):
            self._add_up()
        self._wait()

    def exchange(self, runs: int) -> list[float]:
        with nccl.nccl_errors("timing messages"):
            with held_together([seat.gate for seat in self._seats]):
                self._meet()
                began = self._events()
                for _ in range(runs):
                    self._add_up()
                ended = self._events()
            spans = zip(self._seats, began, ended, strict=True)
            return [_seconds(seat, start, stop) / runs for seat, start, stop in spans]

    def check(self) -> bool:
        found = []
        for seat in self._seats:
            with seat.gpu.active():
                found.append(seat.received_sum(self._ranks))
        return all(found)

    def _run(self) -> list[tuple[Any, Any, Any]]:
        """One run put on the streams: for each rank here the events of its start, of its part's end and of its end."""
        for seat in self._seats:
            with seat.gpu.active():
                seat.flush()
        self._meet()
        began = self._events()
        self._reduce()
        reduced = self._events()
        self._add_up()
        return list(zip(began, reduced, self._events(), strict=True))

    def _timings(self, place: int, spans: list[tuple[Any, Any, Any]]) -> list[Timing]:
        seat = self._seats[place]
        return [
            Timing(_seconds(seat, began, reduced), _seconds(seat, reduced, ended), _seconds(seat, began, ended))
            for began, reduced, ended in spans
        ]

    def _reduce(self) -> None:
        for seat in self._seats:
            assert seat.local is not None, "load() comes first"
            with seat.gpu.active(), cuda_errors("reducing"):
                seat.local.start()

    def _add_up(self) -> None:
        self._all_reduce([seat.sent for seat in self._seats], [seat.received for seat in self._seats])

    def _meet(self) -> None:
        self._all_reduce([seat.here for seat in self._seats], [seat.all_here for seat in self._seats])

    def _all_reduce(self, sent: list[Any], received: list[Any]) -> None:
        if self._group is not None:
            with nccl.nccl_errors("all-reduce"):
                self._group.add_up(sent, received)

    def _events(self) -> list[Any]:
        found = []
        for seat in self._seats:
            with seat.gpu.active():
                found.append(seat.event())
        return found

    def _wait(self) -> None:
        with nccl.nccl_errors("waiting for the ranks"):
            for seat in self._seats:
                seat.gpu.stream.synchronize()

    def _sum(self, seat: Seat) -> Sum:
        assert seat.local is not None, "load() comes first"
        with seat.gpu.active(), cuda_errors("reading the sum"):
            return seat.local.sum_of(seat.sent if self._group is None else seat.received)

    def _value(self) -> float:
        held = self._sum(self._seats[0])
        assert self._dtype is not None, "load() comes first"
        return total(held, self._dtype) if isinstance(held, ExactState) else held


def _seconds(seat: Seat, start: Any, stop: Any) -> float:
    import cupy

    with seat.gpu.active():
        return float(cupy.cuda.get_elapsed_time(start, stop)) / 1e3
