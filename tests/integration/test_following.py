"""A job can be followed through all processes: in the logs by its request's id, in a collector by its trace."""

import json
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.fleet import DISPATCHER, WORKER, fleet
from tests.support.trace_collector import Collector, collector
from tests.support.waiting import until
from warpfold.app.auth.access_tokens import Role, create_token
from warpfold.app.config import Settings
from warpfold.app.db import BlockingDatabase

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = "00f067aa0ba902b7"
SUM = {"kind": "reduce", "source": {"type": "generate", "distribution": "normal", "n": 100_000, "seed": 1}}
SPEEDS = {
    "kind": "benchmark",
    "strategies": ["numpy", "exact"],
    "sizes": [1000],
    "backend": "cpu",
    "time_limit_s": 0.05,
}


@pytest.fixture
def spans_sent() -> Iterator[Collector]:
    with collector() as spans:
        yield spans


def run(
    settings: Settings, log: Path, *specs: dict[str, Any], followed: Callable[[], bool] = lambda: True
) -> list[dict[str, Any]]:
    """Run jobs on processes of their own, which end in an orderly way once the jobs are `followed`; the jobs."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    database = BlockingDatabase(settings.database_url, application="test")
    token = database.run(create_token, "ada", Role.USER, "test")
    database.close()
    headers = {
        "Authorization": f"Bearer {token}",
        "X-Request-ID": "from-the-caller",
        "traceparent": f"00-{TRACE}-{CALLER}-01",
    }
    url = f"http://127.0.0.1:{port}"
    api = ("warpfold.app", "--port", str(port))
    with fleet(settings, log, api=api, dispatcher=DISPATCHER, worker=WORKER) as service:
        service.wait_until_logged("child ready")
        service.wait_until_logged('"event": "leading"')
        service.wait_until_logged("Application startup complete")
        with httpx.Client(base_url=url, headers=headers, timeout=120) as http:
            jobs = [http.post("/v1/jobs", json=spec, headers={"Prefer": "wait=60"}).json() for spec in specs]
        service.wait_until_logged('"event": "succeeded"', times=len(specs))
        service.wait_until_logged('"event": "request"', times=len(specs))
        until(followed)
    assert [job["status"] for job in jobs] == ["succeeded"] * len(specs), jobs
    return jobs


def test_the_logs_of_all_processes_name_the_request(settings: Settings, tmp_path: Path) -> None:
    log = tmp_path / "log"
    (job,) = run(settings, log, SUM)
    lines = [json.loads(line) for line in log.read_text().splitlines()]  # every line is JSON, also uvicorn's
    followed = [(line["role"], line["event"]) for line in lines if line.get("request_id") == "from-the-caller"]
    # Each process writes after its commit: the next may have been quicker.
    assert sorted(followed) == [
        ("api", "request"),
        ("api", "submitted"),
        ("dispatcher", "handed over"),
        ("worker", "succeeded"),
    ]
    of_job = {line["role"] for line in lines if line.get("job") == job["id"]}
    assert of_job == {"api", "dispatcher", "worker"}
    assert {"timestamp", "level", "role", "event"} <= set.intersection(*(set(line) for line in lines))


def test_a_trace_goes_from_the_caller_to_the_kernel(
    settings: Settings, tmp_path: Path, spans_sent: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")

    def all_told() -> bool:
        names = Counter(span.name for span in spans_sent.of(TRACE))
        return all(names[name] == 2 for name in ("POST /v1/jobs", "queue wait", "run"))

    tracing = settings.model_copy(update={"otlp_endpoint": spans_sent.url})
    job, _ = run(tracing, tmp_path / "log", SUM, SPEEDS, followed=all_told)
    spans = spans_sent.of(TRACE)
    first = [span for span in spans if span.attributes.get("warpfold.job") == job["id"]]
    submit, wait, ran = sorted(first, key=lambda span: ("submit", "queue wait", "run").index(span.name))
    request = next(span for span in spans if span.id == submit.parent)
    assert (request.service, request.name, request.parent) == ("warpfold-api", "POST /v1/jobs", CALLER)
    assert (wait.service, wait.parent) == ("warpfold-dispatcher", submit.id)
    assert (ran.service, ran.parent, ran.attributes["warpfold.ending"]) == ("warpfold-worker", submit.id, "success")
    within = {span.name: span for span in spans if span.parent == ran.id}
    assert set(within) - {"prepare"} == {"load", "kernel"}
    kernel_ms = job["result"]["timings"]["kernel_ms"]
    assert within["kernel"].end - within["kernel"].start == pytest.approx(kernel_ms / 1000, abs=2e-6)
    assert within["kernel"].attributes["warpfold.n"] == 100_000
    points = {span.attributes["warpfold.strategy"] for span in spans if span.name == "point"}
    assert points == {"numpy", "exact"}


def test_a_collector_that_is_away_costs_no_job(settings: Settings, tmp_path: Path) -> None:
    with socket.socket() as door:  # bound, and nobody listens
        door.bind(("127.0.0.1", 0))
        away = f"http://127.0.0.1:{door.getsockname()[1]}"
        run(settings.model_copy(update={"otlp_endpoint": away}), tmp_path / "log", SUM)
