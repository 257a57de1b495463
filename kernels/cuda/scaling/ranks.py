"""The ranks of one process on GPUs: all of a group, driven by one thread, or a single one.

Where every GPU has access to the memory of every other one, the sums of arrays travel by stores into it (`mailboxes`);
else NCCL carries them, as it carries bare messages everywhere.

Ranks begin a run together: an all-reduce of one number, which none leaves before all have come, goes before it on each
stream. Everything of several runs is put on the streams while they are held, so that no GPU waits for its host. An
event between the part of a rank and the all-reduce delays the all-reduce by 3 µs: so every second run has one, for the
times of the parts, and the others give the time of the whole.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from warpfold.kernels.cuda.bench.blocking_kernel import held_together
from warpfold.kernels.cuda.elements import carrier
from warpfold.kernels.cuda.exact import ExactAccumulator, SumKind
from warpfold.kernels.cuda.gpu.failures import cuda_errors
from warpfold.kernels.cuda.gpu.installation import nccl_version
from warpfold.kernels.cuda.scaling import nccl
from warpfold.kernels.cuda.scaling.mailboxes import PATIENCE_S, Mailboxes
from warpfold.kernels.cuda.scaling.rank import GpuRank
from warpfold.kernels.cuda.staging.generator import fill
from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import CudaError
from warpfold.kernels.exact.state import ExactState
from warpfold.kernels.generate import plan
from warpfold.kernels.scaling.axes import Carrier, Method
from warpfold.kernels.scaling.local_ranks import Sum, Timing
from warpfold.kernels.scaling.study import WORD, shard
from warpfold.kernels.source import GeneratedSource

PIECE_BYTES = 1 << 30
"""The bytes of elements that are made at a time where no array is kept."""

_WARM_UP = 3

_Events = tuple[Any, ...]
"""Events that one stream reaches in this order."""


class AllReduce(Protocol):
    """A way to add up what the ranks hold."""

    def prepared(self, sent: Sequence[Any], received: Sequence[Any]) -> Callable[[], None]:
        """A function that puts on each GPU's stream: `received[k]` becomes the sum of what all ranks sent."""
        ...

    def check(self) -> None:
        """Raise CudaError where an all-reduce that is over went wrong."""
        ...


@dataclass(frozen=True, slots=True)
class Token:
    """What the other processes need of one: NCCL's unique id from the process of rank 0, and its mailboxes."""

    unique_id: object
    mailboxes: tuple[bytes, ...]


def _alone() -> None:
    """The all-reduce of a single rank."""


class CudaRanks:
    """GPUs `indices` as the ranks from `first` on, of `ranks`. With `mailboxes` set to False NCCL carries the sums, as
    where GPUs have no access to each other's memory. A rank waits for another one for `patience_s`."""

    def __init__(
        self,
        indices: Sequence[int],
        first: int,
        ranks: int,
        *,
        mailboxes: bool = True,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._first, self._ranks = first, ranks
        self._members = [GpuRank(index, first + place) for place, index in enumerate(indices)]
        gpus = [member.gpu for member in self._members]
        self._mailboxes = Mailboxes(gpus, first, ranks, patience_s) if mailboxes and ranks > 1 else None
        self._communicators: nccl.Communicators | None = None
        self._sums: AllReduce | None = None
        self._barrier: Callable[[], None] = _alone
        self._all_reduce: Callable[[], None] = _alone
        self._dtype: DType | None = None

    @property
    def versions(self) -> tuple[tuple[str, str], ...]:
        import cupy

        return (("cupy", cupy.__version__), ("nccl", nccl_version()))

    @property
    def token(self) -> Token:
        alone = len(self._members) == self._ranks
        unique_id = None if alone or self._first else nccl.new_token()
        return Token(unique_id, () if self._mailboxes is None else self._mailboxes.handles())

    def join(self, tokens: Sequence[object]) -> Carrier | None:
        if self._ranks == 1:
            return None
        theirs = [token for token in tokens if isinstance(token, Token)]
        gpus = [member.gpu for member in self._members]
        self._communicators = nccl.Communicators(gpus, self._first, self._ranks, theirs[0].unique_id)
        opened = self._opened(theirs)
        everyone = self._everyone_has(opened)
        sums: AllReduce = self._communicators if opened is None or not everyone else opened
        self._barrier = sums.prepared(
            [member.here for member in self._members], [member.all_here for member in self._members]
        )
        self._barrier()
        self._sums = sums
        self._wait()
        return Carrier.PEER_ACCESS if sums is opened else Carrier.NCCL

    def load(self, source: GeneratedSource, method: Method) -> None:
        self._dtype, self._all_reduce = source.dtype, _alone  # which gives back what was sent before
        for member in self._members:
            with member.gpu.active():
                member.load(source, *shard(source.count, self._ranks, member.rank), method)
        if self._sums is not None:
            self._all_reduce = self._prepared(self._sums)
        for _ in range(_WARM_UP):  # nothing may be loaded for the first time while the streams are held
            self._run()
            self._wait()

    def sample(self, runs: int) -> list[list[Timing]]:
        with nccl.nccl_errors("timing"):
            with held_together([member.blocking_kernel for member in self._members]):
                spans = [(self._run(), self._run_in_two() if self._ranks > 1 else None) for _ in range(runs)]
            self._check()
            return [
                [_timing(member, whole[place], None if parts is None else parts[place]) for whole, parts in spans]
                for place, member in enumerate(self._members)
            ]

    def call(self, runs: int) -> list[float]:
        seconds = []
        for _ in range(runs):
            self._barrier()
            self._wait()
            started = time.perf_counter()
            self._reduce()
            self._all_reduce()
            self._wait()
            if self._first == 0:
                self._value()
            seconds.append(time.perf_counter() - started)
        return seconds

    def collect(self) -> list[Sum]:
        return [self._sum(member) for member in self._members]

    def piecewise(self, source: GeneratedSource) -> ExactState:
        import cupy

        member, made = self._members[0], plan(source)
        step = PIECE_BYTES // source.dtype.itemsize
        with member.gpu.active(), cuda_errors("adding up in pieces"):
            member.empty()
            added = ExactAccumulator(member.gpu, source.dtype, SumKind.VALUES)
            room = cupy.empty(min(step, source.count), dtype=carrier(source.dtype))
            for start in range(0, source.count, step):
                piece = room[: min(step, source.count - start)]
                fill(member.gpu, made, piece, start)
                added.add(piece)
            return added.states()[0]

    def prepare_message(self, nbytes: int) -> None:
        self._all_reduce = _alone
        for member in self._members:
            with member.gpu.active():
                member.prepare_message(nbytes // WORD)
        assert self._communicators is not None, "join() comes first"
        self._all_reduce = self._prepared(self._communicators)
        for _ in range(_WARM_UP):
            self._all_reduce()
        self._wait()

    def exchange(self, runs: int) -> list[float]:
        with nccl.nccl_errors("timing messages"):
            with held_together([member.blocking_kernel for member in self._members]):
                self._barrier()
                began = self._events()
                for _ in range(runs):
                    self._all_reduce()
                ended = self._events()
            self._check()
            spans = zip(self._members, began, ended, strict=True)
            return [_seconds(member, start, stop) / runs for member, start, stop in spans]

    def check(self) -> bool:
        correct = []
        for member in self._members:
            with member.gpu.active():
                correct.append(member.received_sum(self._ranks))
        return all(correct)

    def _run(self) -> list[_Events]:
        """Put one run on the streams. Returns for each rank of this process two events: the start and the end."""
        began = self._begun()
        self._reduce()
        self._all_reduce()
        return list(zip(began, self._events(), strict=True))

    def _run_in_two(self) -> list[_Events]:
        """As `_run`, with an event more, between a rank's part and the all-reduce."""
        began = self._begun()
        self._reduce()
        reduced = self._events()
        self._all_reduce()
        return list(zip(began, reduced, self._events(), strict=True))

    def _begun(self) -> list[Any]:
        """Let all ranks begin a run together, with nothing of their data in their caches."""
        for member in self._members:
            with member.gpu.active():
                member.flush()
        self._barrier()
        return self._events()

    def _reduce(self) -> None:
        for member in self._members:
            assert member.local is not None, "load() comes first"
            with member.gpu.active(), cuda_errors("reducing"):
                member.local.start()

    def _prepared(self, by: AllReduce) -> Callable[[], None]:
        return by.prepared([member.sent for member in self._members], [member.received for member in self._members])

    def _opened(self, tokens: Sequence[Token]) -> Mailboxes | None:
        """The mailboxes with access to those of all ranks, or None where the GPUs have no access to each other."""
        if self._mailboxes is None:
            return None
        try:
            self._mailboxes.open([token.mailboxes for token in tokens])
        except CudaError:
            return None
        return self._mailboxes

    def _everyone_has(self, opened: Mailboxes | None) -> bool:
        """Whether all ranks of the group have what these ranks have, which NCCL carries from one to the other."""
        assert self._communicators is not None
        for member in self._members:
            with member.gpu.active(), cuda_errors("joining"):
                member.here.fill(int(opened is not None))
        self._communicators.all_reduce(
            [member.here for member in self._members], [member.all_here for member in self._members]
        )
        self._wait()
        with self._members[0].gpu.active(), cuda_errors("joining"):
            return int(self._members[0].all_here.get()[0]) == self._ranks

    def _events(self) -> list[Any]:
        events = []
        for member in self._members:
            with member.gpu.active():
                events.append(member.event())
        return events

    def _wait(self) -> None:
        with nccl.nccl_errors("waiting for the ranks"):
            for member in self._members:
                member.gpu.stream.synchronize()
            self._check()

    def _check(self) -> None:
        if self._sums is not None:
            self._sums.check()

    def _sum(self, member: GpuRank) -> Sum:
        assert member.local is not None, "load() comes first"
        with member.gpu.active(), cuda_errors("reading the sum"):
            return member.local.sum_of(member.sent if self._communicators is None else member.received)

    def _value(self) -> float:
        held = self._sum(self._members[0])
        assert self._dtype is not None, "load() comes first"
        return held.round_to(self._dtype) if isinstance(held, ExactState) else held


def _timing(member: GpuRank, whole: _Events, parts: _Events | None) -> Timing:
    """The times of a run, and of the run after it, which was timed in parts. For a rank that is alone there is none."""
    total = _seconds(member, *whole)
    if parts is None:
        return Timing(total, 0.0, total)
    began, reduced, ended = parts
    return Timing(_seconds(member, began, reduced), _seconds(member, reduced, ended), total)


def _seconds(member: GpuRank, start: Any, stop: Any) -> float:
    import cupy

    with member.gpu.active():
        return float(cupy.cuda.get_elapsed_time(start, stop)) / 1e3
