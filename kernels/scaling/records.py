"""The records of a study, as plain values. The contract describes their fields (`contract/kinds/scaling.py`)."""

from dataclasses import dataclass

from warpfold.kernels.ops import Value
from warpfold.kernels.scaling.axes import Algorithm, Carrier, Method, Mode, Scaling
from warpfold.kernels.scaling.study import ArrayCase, MessageCase
from warpfold.kernels.studies.outcome import Outcome


@dataclass(frozen=True, slots=True)
class RankRecord:
    """Median times of one rank."""

    rank: int
    local_ms: float
    communication_ms: float
    total_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayRecord:
    """One array on so many ranks."""

    scaling: Scaling
    method: Method
    mode: Mode | None
    algorithm: Algorithm | None
    ranks: int
    n: int
    outcome: Outcome
    reason: str | None = None
    carrier: Carrier | None = None
    samples: int = 0
    local_ms: float | None = None
    communication_ms: float | None = None
    total_ms: float | None = None
    host_ms: float | None = None
    baseline_ms: float | None = None
    speedup: float | None = None
    efficiency: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    gb_per_s: float | None = None
    value: Value | None = None
    hex: str | None = None
    same_bits: bool | None = None
    suspect: str | None = None
    times: tuple[RankRecord, ...] = ()

    @classmethod
    def without(cls, case: ArrayCase, outcome: Outcome, reason: str) -> "ArrayRecord":
        """A point that was skipped or failed."""
        return cls(
            scaling=case.scaling,
            method=case.method,
            mode=case.mode,
            algorithm=case.algorithm,
            ranks=case.ranks,
            n=case.n,
            outcome=outcome,
            reason=reason,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRecord:
    """All-reduces of one size."""

    mode: Mode
    algorithm: Algorithm
    ranks: int
    bytes: int
    outcome: Outcome
    reason: str | None = None
    samples: int = 0
    time_us: float | None = None
    algbw_gbps: float | None = None
    busbw_gbps: float | None = None
    correct: bool | None = None

    @classmethod
    def without(cls, case: MessageCase, outcome: Outcome, reason: str) -> "MessageRecord":
        """A point that was skipped or failed."""
        return cls(
            mode=case.mode,
            algorithm=case.algorithm,
            ranks=case.ranks,
            bytes=case.nbytes,
            outcome=outcome,
            reason=reason,
        )

    @classmethod
    def timed(cls, case: MessageCase, samples: int, seconds: float, *, correct: bool) -> "MessageRecord":
        """Bandwidths as nccl-tests has them (PERFORMANCE.md there): the algorithm's is bytes ÷ time; the bus's, which
        does not depend on how many ranks there are, is 2(ranks − 1)/ranks times that for an all-reduce."""
        algbw = case.nbytes / seconds / 1e9
        return cls(
            mode=case.mode,
            algorithm=case.algorithm,
            ranks=case.ranks,
            bytes=case.nbytes,
            outcome=Outcome.MEASURED,
            samples=samples,
            time_us=seconds * 1e6,
            algbw_gbps=algbw,
            busbw_gbps=algbw * 2 * (case.ranks - 1) / case.ranks,
            correct=correct,
        )


@dataclass(frozen=True, slots=True)
class Libraries:
    """The libraries that carried the messages of a group: (name, version)."""

    versions: tuple[tuple[str, str], ...]


Record = ArrayRecord | MessageRecord | Libraries
