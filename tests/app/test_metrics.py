import httpx
from prometheus_client.parser import text_string_to_metric_families

from app.jobs import leases
from app.jobs.states import Reason
from app.quotas import holds
from app.quotas.quota import Limits
from app.webhooks.message import new_secret
from tests.app.api import WORKER, Api

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
    own_api.database.run(leases.report, WORKER, "idle", None, 60.0)
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
    own_api.database.run(leases.report, WORKER, "idle", None, 60.0)
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
    seconds = value(scrape(http), "warpfold_http_request_seconds_sum", method="GET", route="/v1/jobs/{job_id}")
    assert 1 <= seconds < 3
