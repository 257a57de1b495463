"""A batch is cancelled by a few statements, and each of its jobs as if by itself."""

import httpx
import psycopg
from sqlalchemy import event

from tests.support.api import THREE_VALUES, Api
from tests.support.batches import batch_of, shown, submitted
from warpfold.app.batches import transitions
from warpfold.app.db import JOB
from warpfold.app.jobs import leases, presets


def test_what_waits_is_cancelled_and_what_runs_is_asked_to_stop(api: Api, http: httpx.Client) -> None:
    batch = batch_of(api, 4)
    api.finish(api.claim(batch["jobs"][0]))
    lease = api.claim(batch["jobs"][1])
    answer = http.post(f"/v1/batches/{batch['id']}/cancel")
    assert answer.status_code == 202
    assert (answer.json()["status"], answer.json()["cancel_requested"]) == ("running", True)
    jobs = [http.get(f"/v1/jobs/{job_id}").json() for job_id in batch["jobs"]]
    assert [job["status"] for job in jobs] == ["succeeded", "running", "cancelled", "cancelled"]
    assert [job["cancel_requested"] for job in jobs] == [False, True, True, True]
    assert api.database.run(leases.renew, [lease], 60.0)[lease.job_id]
    api.database.run(leases.cancelled, lease)
    now = shown(http, batch)
    assert (now["status"], now["progress"]["succeeded"], now["progress"]["cancelled"]) == ("cancelled", 1, 3)
    assert http.post(f"/v1/batches/{batch['id']}/cancel").status_code == 202


def test_the_number_of_statements_does_not_depend_on_the_number_of_jobs(api: Api) -> None:
    counts = []
    for jobs in (2, 30):
        batch = batch_of(api, jobs)
        statements: list[str] = []
        with api.database._engine.begin() as connection:
            event.listen(connection, "before_cursor_execute", lambda *args, to=statements: to.append(args[2]))
            transitions.cancel(connection, batch["id"])
        counts.append(len(statements))
        assert shown(api.client(), batch)["progress"]["cancelled"] == jobs
    assert counts[0] == counts[1] < 10


def test_those_who_follow_the_batch_are_told_once(api: Api, http: httpx.Client) -> None:
    batch = batch_of(api, 50)
    with psycopg.connect(api.settings.database_url, autocommit=True) as listening:
        listening.execute(f"listen {JOB}")
        http.post(f"/v1/batches/{batch['id']}/cancel")
        listening.execute(f"notify {JOB}, 'the end'")
        heard = [notice.payload for notice in listening.notifies(timeout=60, stop_after=2)]
    assert heard == [batch["id"], "the end"]


def test_a_batch_that_has_ended_otherwise_cannot_be_cancelled(api: Api, http: httpx.Client) -> None:
    batch = batch_of(api, 1)
    api.finish(api.claim(batch["jobs"][0]))
    answer = http.post(f"/v1/batches/{batch['id']}/cancel")
    assert (answer.status_code, answer.json()["batch_status"]) == (409, "succeeded")


def test_only_the_owner_and_admins_cancel(api: Api) -> None:
    batch = batch_of(api, 1)
    path = f"/v1/batches/{batch['id']}/cancel"
    assert api.client("bob").post(path).status_code == 403
    assert shown(api.client(), batch)["progress"]["queued"] == 1
    assert api.client("root").post(path).status_code == 202


def test_the_jobs_of_a_preset_are_cancelled_too(api: Api, http: httpx.Client) -> None:
    preset = {"kind": "preset", "preset": "p05-three-numbers", "backend": "cpu"}
    batch = submitted(http, {"specs": [preset, THREE_VALUES]})
    http.post(f"/v1/batches/{batch['id']}/cancel")
    with api.database._engine.begin() as connection:
        presets.settle(connection, presets.unsettled(connection))  # as the dispatcher does
    parent = http.get(f"/v1/jobs/{batch['jobs'][0]}").json()
    assert {child["status"] for child in parent["children"]} == {parent["status"]} == {"cancelled"}
    assert shown(http, batch)["status"] == "cancelled"
