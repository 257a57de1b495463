"""The gauges of the devices that live workers hold, as each worker read them last."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from sqlalchemy import Connection, select

from warpfold.app.jobs.reading import Reading
from warpfold.app.tables.jobs import lives, workers

_READINGS = (
    select(workers.c.host, workers.c.slot, workers.c.device, workers.c.reading)
    .where(lives(), workers.c.reading.is_not(None))
    .order_by(workers.c.host, workers.c.slot)
)


@dataclass(frozen=True, slots=True)
class DeviceState:
    """What a live worker last read off its device."""

    host: str
    slot: str
    device: str
    reading: Reading


@dataclass(frozen=True, slots=True)
class _Gauge:
    """A gauge: what it tells, where it stands in a reading, and `times` what it is in Prometheus' base units."""

    what: str
    value: Callable[[Reading], float | None]
    times: float = 1.0


_GAUGES: Mapping[str, _Gauge] = {
    "utilisation_ratio": _Gauge(
        "Part of the time that a kernel ran, or of all CPUs' time", lambda r: r.utilisation_percent, 0.01
    ),
    "memory_used_bytes": _Gauge("Memory in use", lambda r: r.memory_used_bytes),
    "memory_total_bytes": _Gauge("Memory", lambda r: r.memory_total_bytes),
    "temperature_celsius": _Gauge("Temperature", lambda r: r.temperature_c),
    "power_watts": _Gauge("Power drawn", lambda r: r.power_w),
    "power_limit_watts": _Gauge("Power limit in force", lambda r: r.power_limit_w),
    "clock_hertz": _Gauge("Clock of the multiprocessors, or of the CPU", lambda r: r.clock_mhz, 1e6),
    "max_clock_hertz": _Gauge("Highest such clock", lambda r: r.max_clock_mhz, 1e6),
    "memory_clock_hertz": _Gauge("Clock of the memory", lambda r: r.memory_clock_mhz, 1e6),
    "processes": _Gauge("Processes that compute on the GPU", lambda r: r.processes),
}


def device_states(connection: Connection) -> Sequence[DeviceState]:
    """Of every live worker that reads gauges."""
    return [
        DeviceState(row.host, row.slot, str((row.device or {}).get("name", "")), Reading.model_validate(row.reading))
        for row in connection.execute(_READINGS)
    ]


def device_families(devices: Sequence[DeviceState]) -> Iterator[Metric]:
    """One family a gauge; a device that does not tell is not in it."""
    for name, gauge in _GAUGES.items():
        family = GaugeMetricFamily(f"warpfold_device_{name}", gauge.what, labels=("host", "slot", "device"))
        for one in devices:
            value = gauge.value(one.reading)
            if value is not None:
                family.add_metric((one.host, one.slot, one.device), value * gauge.times)
        yield family
