"""The service with a database role for each process: all kinds of work are done, and Postgres refuses nothing."""

import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psycopg

from tests.support import processes
from tests.support.api import served
from tests.support.database_roles import make_roles
from tests.support.servers import create_database, own_servers
from warpfold import migrations
from warpfold.app.auth.access_tokens import Role, create_token
from warpfold.app.config import Settings
from warpfold.app.db import BlockingDatabase
from warpfold.migrations.rights import OWNER

SUM = {"kind": "reduce", "source": {"type": "values", "values": [1e8, 1, -1e8], "dtype": "float32"}}
BENCHMARK = {
    "kind": "benchmark",
    "ops": ["sum"],
    "strategies": ["exact"],
    "sizes": [1000],
    "backend": "cpu",
    "time_limit_s": 0.02,
}


def test_jobs_run_with_a_role_for_each_process(cluster: Path, tmp_path: Path) -> None:
    with own_servers(cluster) as servers:
        url = create_database(servers.postgres, "apart", template="template1")
        make_roles(url)

        def settings_of(role: str) -> Settings:
            return Settings(
                database_url=url.replace("postgres@", f"{role}@", 1),
                redis_url=servers.redis_url,
                data_dir=tmp_path / "warpfold",
                webhook_allow_private=True,
                max_running_per_user=3,
            )

        migrations.upgrade(settings_of(OWNER).database_url)
        own = settings_of("warpfold_api")
        database = BlockingDatabase(own.database_url, application="test")
        token = database.run(create_token, "ada", Role.ADMIN, "test")
        database.close()
        log = tmp_path / "log"
        running = [
            processes.start(settings_of("warpfold_dispatcher"), log, "warpfold.worker.dispatcher"),
            processes.start(settings_of("warpfold_worker"), log, "warpfold.worker", "--slot", "cpu"),
        ]
        try:
            with (
                served(own) as address,
                httpx.Client(base_url=address, headers={"Authorization": f"Bearer {token}"}, timeout=90) as http,
            ):
                _use(http, tmp_path)
        finally:
            processes.end(running)
        server_log = (Path(_data_directory(servers.postgres.url)) / "log").read_text()
        assert [line for line in server_log.splitlines() if "permission denied" in line] == []


def _data_directory(url: str) -> str:
    with psycopg.connect(url) as connection:
        (where,) = connection.execute("show data_directory").fetchone() or ("",)
    return str(where)


def _use(http: httpx.Client, tmp_path: Path) -> None:
    """Everything that touches a table, once."""

    def ended(spec: dict[str, Any]) -> dict[str, Any]:
        job: dict[str, Any] = http.post("/v1/jobs", json=spec).json()
        give_up = time.monotonic() + 180
        while job["status"] in ("queued", "running"):
            assert time.monotonic() < give_up, job
            job = http.get(f"/v1/jobs/{job['id']}", headers={"Prefer": "wait=30"}).json()
        return job

    webhook = {"webhook": {"url": f"{http.base_url}/healthz"}}
    assert http.post("/v1/webhooks/secret").status_code == 201
    assert http.put("/v1/users/bob", json={"role": "user"}).is_success
    assert http.put("/v1/quotas/bob", json={"running": 2}).is_success
    assert ended({**SUM, **webhook})["result"]["value"] == 1.0
    assert ended(BENCHMARK)["status"] == "succeeded"
    file = tmp_path / "array.npy"
    np.save(file, np.array([1e16, 1.0, -1e16]))
    dataset = http.post("/v1/datasets", content=file.read_bytes()).json()["id"]
    assert ended({"kind": "reduce", "source": {"type": "dataset", "id": dataset}})["result"]["value"] == 1.0
    assert http.delete(f"/v1/datasets/{dataset}").status_code == 204
    many = {
        "kind": "reduce",
        "source": {"type": "generate", "distribution": "arange", "n": 20_002},
        "segments": {"length": 2},
    }
    stored = ended(many)
    assert stored["status"] == "succeeded", stored
    assert http.get(stored["result"]["artefact"]["href"]).status_code == 200
    assert http.delete(stored["result"]["artefact"]["href"]).status_code == 204
    preset = {"kind": "preset", "preset": "p05-task1-correctness", "backend": "cpu", "max_n": 1000}
    assert ended(preset)["status"] == "succeeded"
    slow = http.post("/v1/jobs", json={**BENCHMARK, "sizes": [1 << 20], "time_limit_s": 60}).json()
    assert http.post(f"/v1/jobs/{slow['id']}/cancel").is_success
    last = ended(SUM)
    assert last["status"] == "succeeded"
    link = http.post(f"/v1/jobs/{last['id']}/links", json={}).json()
    assert http.get(link["path"]).status_code == 200
    assert http.delete(f"/v1/jobs/{last['id']}/links/{link['id']}").status_code == 204
    key = http.post("/v1/users/me/tokens", json={}).json()["id"]
    assert http.post(f"/v1/users/me/tokens/{key}/rotate").status_code == 201
    assert http.delete(f"/v1/users/me/tokens/{key}").status_code == 204
    assert http.delete("/v1/users/bob").status_code == 200
    for page in (
        "/metrics",
        "/v1/jobs",
        "/v1/workers",
        "/v1/results",
        "/v1/users",
        "/v1/tokens",
        "/v1/quotas",
        "/v1/audit",
        "/readyz",
    ):
        assert http.get(page).status_code == 200, page
