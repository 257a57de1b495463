"""The queue, the jobs on record, workers, quotas, webhooks and the lead at a moment."""

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from warpfold.app.metrics.monitoring import QueueState


def queue_families(queue: QueueState) -> Iterator[Metric]:
    """What waits, and for what."""
    depth = GaugeMetricFamily("warpfold_queue_depth", "Jobs that wait", labels=("priority",))
    for priority, count in queue.depth.items():
        depth.add_metric((priority,), count)
    yield depth
    yield GaugeMetricFamily(
        "warpfold_queue_oldest_seconds", "Age of the job that has waited longest", value=queue.oldest_s
    )
    jobs = GaugeMetricFamily("warpfold_jobs", "Jobs on record by status and reason", labels=("status", "reason"))
    for one in queue.jobs:
        jobs.add_metric((one.status, one.reason or ""), one.count)
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
        "warpfold_webhooks_due", "Messages of ended jobs that are not delivered", value=queue.webhooks_due
    )
    yield GaugeMetricFamily("warpfold_dispatcher_leads", "1 if a dispatcher leads, 0 if none does", value=queue.led)
