from datetime import timedelta

import httpx
from prometheus_client.parser import text_string_to_metric_families

from tests.support.api import WORKER, Api
from tests.support.batches import batch_of
from tests.support.measurements import reduced
from warpfold.app.batches import transitions as of_batches
from warpfold.app.jobs import leases, losses, transitions, workers
from warpfold.app.jobs.workers import WorkerInfo
from warpfold.app.metrics.counters import count_ended, read
from warpfold.app.metrics.devices import Reading
from warpfold.app.metrics.families import ended_families
from warpfold.app.quotas import holds
from warpfold.app.quotas.quota import Limits
from warpfold.app.webhooks.message import new_secret
from warpfold.contract.states import Reason

GPU = WorkerInfo("gpu1:cuda:0", "cuda:0", "cuda", "gpu1", 43, "0.1.0", {"name": "NVIDIA H200"})
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def scrape(http: httpx.Client) -> Samples:
    response = http.get("/metrics")
    assert response.status_code == 200
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, frozenset(labels.items())]


def test_the_queue_jobs_and_workers_are_counted(own_api: Api) -> None:
    http = own_api.client()
    own_api.submit(priority="high")
    own_api.submit()
    done, failed = own_api.submit(), own_api.submit()
    own_api.finish(own_api.claim(done))
    own_api.database.run(leases.fail, own_api.claim(failed), Reason.TIMEOUT, "It took too long.")
    own_api.database.run(workers.report, WORKER, "idle", None, 60.0)
    samples = scrape(http)
    assert value(samples, "warpfold_queue_depth", priority="high") == 1
    assert value(samples, "warpfold_queue_depth", priority="normal") == 1
    assert value(samples, "warpfold_queue_depth", priority="low") == 0
    assert 0 < value(samples, "warpfold_queue_oldest_seconds") < 60
    assert value(samples, "warpfold_jobs", status="queued", reason="") == 2
    assert value(samples, "warpfold_jobs", status="succeeded", reason="") == 1
    assert value(samples, "warpfold_jobs", status="failed", reason="timeout") == 1
    assert value(samples, "warpfold_workers", backend="cpu", state="idle") == 1


def test_held_users_and_webhooks_that_are_due_are_counted(own_api: Api) -> None:
    http = own_api.client("root")
    webhook = {"url": "https://hooks.example.org/", "secret": new_secret()}
    lease = own_api.claim(own_api.submit(webhook=webhook))
    own_api.submit(webhook=webhook)
    own_api.finish(lease)
    http.put("/v1/quotas/ann", json={"running": 0})
    own_api.database.run(holds.refresh, Limits())
    own_api.database.run(workers.report, WORKER, "idle", None, 60.0)
    http.post(f"/v1/workers/{WORKER.id}/drain")
    samples = scrape(http)
    assert value(samples, "warpfold_webhooks_due") == 1
    assert value(samples, "warpfold_quota_held_users", quota="running") == 1
    assert value(samples, "warpfold_workers", backend="cpu", state="drained") == 1


def test_requests_are_counted_by_route_and_never_by_path(own_api: Api) -> None:
    http = own_api.client()
    for _ in range(3):
        http.get(f"/v1/jobs/{own_api.submit()}")
    for index in range(50):
        http.get(f"/nowhere/{index}")
        http.request("PROPFIND", "/v1/jobs")
    samples = scrape(http)
    assert value(samples, "warpfold_http_requests_total", method="GET", route="/v1/jobs/{job_id}", status="200") == 3
    assert value(samples, "warpfold_http_requests_total", method="GET", route="none", status="404") == 50
    assert value(samples, "warpfold_http_requests_total", method="other", route="/v1/jobs", status="405") == 50
    series = [key for key in samples if key[0] == "warpfold_http_requests_total"]
    assert len(series) == 4


def test_the_time_of_requests_is_measured(own_api: Api) -> None:
    http = own_api.client()
    http.get(f"/v1/jobs/{own_api.submit()}", headers={"Prefer": "wait=1"})
    seconds = value(
        scrape(http), "warpfold_http_request_seconds_sum", method="GET", route="/v1/jobs/{job_id}", status="200"
    )
    assert seconds >= 1


def test_ended_jobs_and_their_times_are_counted_and_stay_when_the_jobs_are_removed(own_api: Api) -> None:
    http = own_api.client()
    for _ in range(2):
        own_api.finish(own_api.claim(own_api.submit()), points=[reduced(kernel_ms=250.0)])
    own_api.database.run(leases.fail, own_api.claim(own_api.submit()), Reason.TIMEOUT, "It took too long.")
    http.post(f"/v1/jobs/{own_api.submit()}/cancel")
    assert own_api.database.run(count_ended, 1000) == 4
    assert own_api.database.run(count_ended, 1000) == 0
    own_api.database.run(transitions.remove_old, timedelta(0))
    samples = scrape(http)
    ended = {"kind": "reduce", "reason": ""}
    assert value(samples, "warpfold_jobs_ended_total", status="succeeded", **ended) == 2
    assert value(samples, "warpfold_jobs_ended_total", status="cancelled", **ended) == 1
    assert value(samples, "warpfold_jobs_ended_total", kind="reduce", status="failed", reason="timeout") == 1
    assert value(samples, "warpfold_job_run_seconds_count", kind="reduce") == 3  # the cancelled one never ran
    assert value(samples, "warpfold_job_wait_seconds_bucket", kind="reduce", le="+Inf") == 3
    assert 0 < value(samples, "warpfold_job_wait_seconds_sum", kind="reduce") < 60
    assert value(samples, "warpfold_kernel_seconds_total", host="gpu1", device="H200", uuid="GPU-1") == 0.5


def test_batches_are_counted_when_they_are_accepted_and_when_they_have_ended(own_api: Api) -> None:
    def counted() -> tuple[float, dict[str, float]]:
        families = {family.name: family for family in ended_families(own_api.database.run(read))}
        [accepted] = families["warpfold_batches_accepted"].samples
        ended = families["warpfold_batches_ended"].samples
        return accepted.value, {sample.labels["status"]: sample.value for sample in ended if sample.value}

    assert counted() == (0, {})
    done, cancelled, _ = (batch_of(own_api, 2) for _ in range(3))
    for job in done["jobs"]:
        own_api.finish(own_api.claim(job))
    own_api.client().post(f"/v1/batches/{cancelled['id']}/cancel")
    assert counted() == (3, {})
    for _ in range(2):  # settling again counts nothing again
        own_api.database.run(of_batches.settle, 10)
        assert counted() == (3, {"succeeded": 1, "cancelled": 1})
    assert value(scrape(own_api.client()), "warpfold_batches_ended_total", status="failed") == 0


def test_lost_attempts_are_counted_by_their_cause(own_api: Api) -> None:
    own_api.submit()
    lease = own_api.claim(own_api.submit())
    running = own_api.database.run(losses.running_attempts)
    assert [lease.token for lease in running] == [lease.token]
    own_api.database.run(losses.take_back_silent, running, 3)
    samples = scrape(own_api.client())
    assert value(samples, "warpfold_attempts_lost_total", cause="lease_expired") == 1
    assert value(samples, "warpfold_attempts_lost_total", cause="child_died") == 0


def test_the_gauges_of_devices_are_in_base_units_and_only_of_live_workers(own_api: Api) -> None:
    reading = Reading(utilisation_percent=50.0, power_w=700.0, clock_mhz=1980.0)
    own_api.database.run(workers.report, GPU, "idle", None, 60.0, reading=reading)
    own_api.database.run(workers.report, WORKER, "stopped", None, 0.0, reading=Reading(power_w=1.0))
    samples = scrape(own_api.client())
    labels = {"host": "gpu1", "slot": "cuda:0", "device": "NVIDIA H200"}
    assert value(samples, "warpfold_device_utilisation_ratio", **labels) == 0.5
    assert value(samples, "warpfold_device_power_watts", **labels) == 700.0
    assert value(samples, "warpfold_device_clock_hertz", **labels) == 1.98e9
    assert [key for key in samples if key[0] == "warpfold_device_temperature_celsius"] == []
    assert len([key for key in samples if key[0] == "warpfold_device_power_watts"]) == 1
