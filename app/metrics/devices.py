"""The gauges of devices: what a worker reads off its device, as stored with the worker and as served."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection, select

from warpfold.app.tables.jobs import lives, workers


class Reading(BaseModel):
    """Gauges of a GPU (by NVML) or of the machine (for a CPU slot) at one moment. A gauge that the device does not
    report is null."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    utilisation_percent: float | None = Field(
        None,
        description="The share of the time in which a kernel ran, or the share of all logical CPUs that were busy.",
    )
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    clock_mhz: float | None = Field(None, description="The clock of the streaming multiprocessors, or of the CPU.")
    max_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    processes: int | None = Field(
        None, description="The number of processes that compute on the GPU, those of Warpfold among them."
    )


_READINGS = (
    select(workers.c.host, workers.c.slot, workers.c.device, workers.c.reading)
    .where(lives(), workers.c.reading.is_not(None))
    .order_by(workers.c.host, workers.c.slot)
)


@dataclass(frozen=True, slots=True)
class DeviceState:
    """The gauges that a live worker last read from its device."""

    host: str
    slot: str
    device: str
    reading: Reading


def device_states(connection: Connection) -> Sequence[DeviceState]:
    """The devices of all live workers that read gauges."""
    return [
        DeviceState(row.host, row.slot, str((row.device or {}).get("name", "")), Reading.model_validate(row.reading))
        for row in connection.execute(_READINGS)
    ]
