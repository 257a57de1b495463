"""What a worker reads off its device's gauges, as stored with the worker and as served."""

from pydantic import BaseModel, ConfigDict, Field


class Reading(BaseModel):
    """Gauges of a GPU (NVML) or of the machine (a CPU slot) at a moment; null for what the device does not tell."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    utilisation_percent: float | None = Field(None, description="of the time a kernel ran, or of all logical CPUs")
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    clock_mhz: float | None = Field(None, description="of the streaming multiprocessors, or of the CPU")
    max_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    processes: int | None = Field(None, description="that compute on the GPU, ours among them")
