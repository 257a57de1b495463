"""The findings of a profile as plain values: the fields of `contract.kinds.profile`, where they are described."""

from dataclasses import dataclass

from warpfold.kernels.studies.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Counters:
    """The counts of Nsight Compute."""

    duration_us: float | None
    dram_percent: float | None
    warp_efficiency_percent: float | None
    achieved_occupancy_percent: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRecord:
    """One kernel as it is launched."""

    name: str
    registers: int
    static_shared: int
    dynamic_shared: int | None
    stack: int
    spill_stores: int
    spill_loads: int
    threads: int | None
    blocks: int | None = None
    blocks_per_multiprocessor: int | None = None
    occupancy_percent: float | None = None
    waves: float | None = None
    counters: Counters | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRecord:
    """The launches of a strategy for one op, dtype and size."""

    strategy: str
    op: str
    dtype: str
    n: int | None
    outcome: Outcome
    reason: str | None = None
    kernels: tuple[KernelRecord, ...] = ()
    counters_unavailable: str | None = None
