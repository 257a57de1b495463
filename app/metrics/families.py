"""The families at `/metrics` that Postgres answers for: the queue, what ended, and the devices of live workers.

They are the same whichever api process answers.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from warpfold.app.metrics.counters import BATCHES_OPEN, BOUNDS_S, ROLES, Count, Name
from warpfold.app.metrics.devices import DeviceState, Reading
from warpfold.app.metrics.monitoring import QueueState
from warpfold.contract.states import Loss, Status


def queue_families(queue: QueueState) -> Iterator[Metric]:
    """The families of the queue: what waits, and for what."""
    depth = GaugeMetricFamily("warpfold_queue_depth", "Jobs that wait", labels=("priority",))
    for priority, count in queue.depth.items():
        depth.add_metric((priority,), count)
    yield depth
    yield GaugeMetricFamily(
        "warpfold_queue_oldest_seconds", "Age of the job that has waited longest", value=queue.oldest_s
    )
    jobs = GaugeMetricFamily("warpfold_jobs", "Jobs on record by status and reason", labels=("status", "reason"))
    for job in queue.jobs:
        jobs.add_metric((job.status, job.reason or ""), job.count)
    yield jobs
    workers = GaugeMetricFamily("warpfold_workers", "Workers by state", labels=("backend", "state"))
    for worker in queue.workers:
        workers.add_metric((worker.backend, worker.state), worker.count)
    yield workers
    held = GaugeMetricFamily("warpfold_quota_held_users", "Users whose jobs wait for a quota", labels=("quota",))
    for quota, count in queue.held.items():
        held.add_metric((quota,), count)
    yield held
    yield GaugeMetricFamily(
        "warpfold_webhooks_due", "Messages of ended jobs and batches that are not delivered", value=queue.webhooks_due
    )
    yield GaugeMetricFamily("warpfold_dispatcher_leads", "1 if a dispatcher leads, 0 if none does", value=queue.led)


def ended_families(counts: Sequence[Count]) -> Iterator[Metric]:
    """The families of the counters, which count since the service was set up."""
    by_name: defaultdict[str, list[Count]] = defaultdict(list)
    for count in counts:
        by_name[count.name].append(count)
    ended = CounterMetricFamily("warpfold_jobs_ended", "Jobs that ended", labels=("kind", "status", "reason"))
    for count in by_name[Name.JOBS_ENDED]:
        ended.add_metric((count.labels["kind"], count.labels["status"], count.labels["reason"]), count.value)
    yield ended
    yield from _of_batches(by_name[Name.BATCHES_ENDED], by_name[BATCHES_OPEN])
    lost = CounterMetricFamily("warpfold_attempts_lost", "Attempts whose worker was lost", labels=("cause",))
    causes = {count.labels["cause"]: count.value for count in by_name[Name.ATTEMPTS_LOST]}
    for cause in Loss:  # all of them from the beginning: Prometheus sees no increase from a missing value to 1
        lost.add_metric((cause.name.lower(),), causes.get(cause.name.lower(), 0.0))
    yield lost
    dropped = CounterMetricFamily(
        "warpfold_log_lines_dropped", "Lines of logs that could not be written", labels=("role",)
    )
    lines = {count.labels["role"]: count.value for count in by_name[Name.LOG_LINES_DROPPED]}
    for role in ROLES:
        dropped.add_metric((role,), lines.get(role, 0.0))
    yield dropped
    kernels = CounterMetricFamily(
        "warpfold_kernel_seconds", "Measured time of kernels", labels=("host", "device", "uuid")
    )
    for count in by_name[Name.KERNEL_SECONDS]:
        kernels.add_metric((count.labels["host"], count.labels["device"], count.labels["uuid"]), count.value)
    yield kernels
    yield _durations(
        "warpfold_job_wait_seconds",
        "From acceptance to the start of the attempt that ended the job",
        by_name[Name.JOB_WAIT],
        by_name[Name.JOB_WAIT_SECONDS],
    )
    yield _durations(
        "warpfold_job_run_seconds",
        "From the start of that attempt to its end",
        by_name[Name.JOB_RUN],
        by_name[Name.JOB_RUN_SECONDS],
    )


def _of_batches(counted: Sequence[Count], still_open: Sequence[Count]) -> Iterator[Metric]:
    by_status = {count.labels["status"]: count.value for count in counted}
    accepted = sum(by_status.values()) + sum(count.value for count in still_open)
    yield CounterMetricFamily("warpfold_batches_accepted", "Batches that were accepted", value=accepted)
    ended = CounterMetricFamily("warpfold_batches_ended", "Batches all of whose jobs have ended", labels=("status",))
    for status in filter(lambda status: status.terminal, Status):
        ended.add_metric((status.value,), by_status.get(status.value, 0.0))
    yield ended


def _durations(name: str, what: str, counts: Sequence[Count], sums: Sequence[Count]) -> HistogramMetricFamily:
    family = HistogramMetricFamily(name, what, labels=("kind",))
    seen = {(count.labels["kind"], count.labels["bucket"]): count.value for count in counts}
    for total in sums:
        kind, up_to, buckets = total.labels["kind"], 0.0, []
        for bound in (*map(str, BOUNDS_S), "+Inf"):
            up_to += seen.get((kind, bound), 0.0)
            buckets.append((bound, up_to))
        family.add_metric((kind,), buckets, total.value)
    return family


@dataclass(frozen=True, slots=True)
class _Gauge:
    """A gauge: its description, its value in a reading, and the factor `times` to Prometheus' base units."""

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


def device_families(devices: Sequence[DeviceState]) -> Iterator[Metric]:
    """One family a gauge; a device that does not have the gauge is not in it."""
    for name, gauge in _GAUGES.items():
        family = GaugeMetricFamily(f"warpfold_device_{name}", gauge.what, labels=("host", "slot", "device"))
        for state in devices:
            value = gauge.value(state.reading)
            if value is not None:
                family.add_metric((state.host, state.slot, state.device), value * gauge.times)
        yield family
