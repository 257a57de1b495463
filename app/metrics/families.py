"""Ended jobs, lost attempts, the use of devices, dropped lines of logs: counters that Postgres keeps."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

from warpfold.app.metrics.buckets import BOUNDS_S
from warpfold.app.metrics.counters import Count, Name
from warpfold.app.metrics.dropped import ROLES
from warpfold.contract.states import Loss


def ended_families(counts: Sequence[Count]) -> Iterator[Metric]:
    """Families of what was counted since the service was set up."""
    by_name: defaultdict[str, list[Count]] = defaultdict(list)
    for one in counts:
        by_name[one.name].append(one)
    ended = CounterMetricFamily("warpfold_jobs_ended", "Jobs that ended", labels=("kind", "status", "reason"))
    for one in by_name[Name.JOBS_ENDED]:
        ended.add_metric((one.labels["kind"], one.labels["status"], one.labels["reason"]), one.value)
    yield ended
    lost = CounterMetricFamily("warpfold_attempts_lost", "Attempts whose worker was lost", labels=("cause",))
    causes = {one.labels["cause"]: one.value for one in by_name[Name.ATTEMPTS_LOST]}
    for cause in Loss:  # all of them from the beginning: an increase from nothing is none to Prometheus
        lost.add_metric((cause.name.lower(),), causes.get(cause.name.lower(), 0.0))
    yield lost
    dropped = CounterMetricFamily(
        "warpfold_log_lines_dropped", "Lines of logs that could not be written", labels=("role",)
    )
    lines = {one.labels["role"]: one.value for one in by_name[Name.LOG_LINES_DROPPED]}
    for role in ROLES:
        dropped.add_metric((role,), lines.get(role, 0.0))
    yield dropped
    kernels = CounterMetricFamily(
        "warpfold_kernel_seconds", "Measured time of kernels", labels=("host", "device", "uuid")
    )
    for one in by_name[Name.KERNEL_SECONDS]:
        kernels.add_metric((one.labels["host"], one.labels["device"], one.labels["uuid"]), one.value)
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


def _durations(name: str, what: str, counts: Sequence[Count], sums: Sequence[Count]) -> HistogramMetricFamily:
    family = HistogramMetricFamily(name, what, labels=("kind",))
    seen = {(one.labels["kind"], one.labels["bucket"]): one.value for one in counts}
    for total in sums:
        kind, up_to, buckets = total.labels["kind"], 0.0, []
        for bound in (*map(str, BOUNDS_S), "+Inf"):
            up_to += seen.get((kind, bound), 0.0)
            buckets.append((bound, up_to))
        family.add_metric((kind,), buckets, total.value)
    return family
