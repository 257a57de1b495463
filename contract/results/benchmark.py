"""The result of a benchmark, as stored and as served. Its points are rows of measurements."""

from typing import Literal

from pydantic import Field

from warpfold.contract.frozen import Frozen
from warpfold.contract.provenance import DeviceView, Provenance
from warpfold.contract.timings import StudyTimings


class BenchmarkResult(Frozen):
    """How many cases a benchmark measured, and under what ceiling. Each case is a row at `/v1/results?job_id=…`."""

    cases: int
    measured: int
    skipped: int = Field(description="not claimed, not installed, or too large: the row says which")
    failed: int = Field(description="did not compile, crashed, or gave a wrong value: the row says which")
    suspect: int = Field(description="of those measured: faster than physics allows, left out of summaries")
    ceiling_gbps: float | None = Field(description="the device's measured read ceiling, in 10⁹ bytes a second")
    peak_gbps: float | None = Field(description="memory clock × bus width; null where the device does not tell")
    backend: Literal["cpu", "cuda"]
    device: DeviceView
    timings: StudyTimings
    provenance: Provenance
