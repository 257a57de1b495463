"""A batch is accepted whole or not at all."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import httpx
import pytest

from tests.support.api import THREE_VALUES, WORKER, Api
from tests.support.batches import batch_of, specs, submitted
from tests.support.ledger import Ledger
from tests.support.waiting import until
from warpfold.app.auth.access_tokens import Role, create_token
from warpfold.app.http.large_bodies import LARGE_BYTES
from warpfold.app.jobs import turns, workers
from warpfold.app.jobs.dispatch_state import Depth
from warpfold.app.quotas import room
from warpfold.contract.batches import MAX_JOBS

Quotas = Callable[..., None]


@pytest.fixture
def quotas(api: Api) -> Iterator[Quotas]:
    """Sets quotas of Ann's until the end of the test."""

    def put(**limits: int | None) -> None:
        assert api.client("root").put("/v1/quotas/ann", json=limits).status_code == 200

    yield put
    put()


def fields(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 422, answer.text
    return [error["field"] for error in answer.json()["errors"]]


def nothing_is_kept(http: httpx.Client) -> bool:
    return not http.get("/v1/jobs").json()["items"] and not http.get("/v1/batches").json()["items"]


def test_a_batch_is_its_jobs_in_their_order(http: httpx.Client) -> None:
    answer = http.post("/v1/batches", json={"specs": specs(3), "name": "three"})
    assert answer.status_code == 201, answer.text
    batch = answer.json()
    assert answer.headers["Location"] == f"/v1/batches/{batch['id']}"
    assert (batch["name"], batch["owner"], batch["status"], batch["count"]) == ("three", "ann", "queued", 3)
    jobs = [http.get(f"/v1/jobs/{job_id}").json() for job_id in batch["jobs"]]
    assert [job["tags"]["number"] for job in jobs] == ["0", "1", "2"]
    assert [job["queue_position"] for job in jobs] == [1, 2, 3]
    assert {job["batch"] for job in jobs} == {batch["id"]}
    listed = http.get("/v1/jobs", params={"batch": batch["id"]}).json()["items"]
    assert [job["id"] for job in listed] == batch["jobs"][::-1]


def test_each_job_has_the_history_of_a_job_that_came_by_itself(api: Api) -> None:
    http = api.client()
    batch, alone = batch_of(api, 1), api.submit(tags={"number": "0"})
    of_batch, other = (http.get(f"/v1/jobs/{job_id}").json() for job_id in (batch["jobs"][0], alone))
    differ = {name for name in of_batch if of_batch[name] != other[name]}
    assert differ == {"id", "batch", "created_at", "queue_position"}
    with http.stream("GET", f"/v1/jobs/{batch['jobs'][0]}/events") as stream:
        assert next(line for line in stream.iter_lines() if line.startswith("event")) == "event: submitted"


def test_a_spec_is_stored_as_it_is_written(http: httpx.Client) -> None:
    values = [-0.0, 2**63, 0.1, 5e-324]
    spec = {**THREE_VALUES, "source": {"type": "values", "values": values, "dtype": "float64"}}
    [job_id] = submitted(http, {"specs": [spec]})["jobs"]
    assert json.dumps(http.get(f"/v1/jobs/{job_id}").json()["spec"]["source"]["values"]) == json.dumps(values)


def test_what_holds_for_all_holds_where_a_spec_says_nothing(http: httpx.Client) -> None:
    own = {**THREE_VALUES, "tags": {"course": "own", "more": "1"}, "priority": "low", "timeout_s": 7}
    batch = submitted(
        http, {"specs": [THREE_VALUES, own], "tags": {"course": "p05"}, "priority": "high", "timeout_s": 60}
    )
    first, second = (http.get(f"/v1/jobs/{job_id}").json() for job_id in batch["jobs"])
    assert (first["tags"], first["priority"], first["spec"]["timeout_s"]) == ({"course": "p05"}, "high", 60)
    assert (second["tags"], second["priority"], second["spec"]["timeout_s"]) == (own["tags"], "low", 7)


def test_the_small_jobs_of_a_batch_are_small_as_those_alone_are(http: httpx.Client, api: Api) -> None:
    long = {**THREE_VALUES, "source": {"type": "generate", "distribution": "arange", "n": 10_001, "dtype": "float64"}}
    batched = submitted(http, {"specs": [THREE_VALUES, long]})["jobs"]
    alone = [http.post("/v1/jobs", json=spec).json()["id"] for spec in (THREE_VALUES, long)]
    ledger = Ledger(api.database)
    assert [[ledger.column(UUID(job_id), "small") for job_id in ids] for ids in (batched, alone)] == [[True, False]] * 2


def test_the_dispatcher_hands_the_jobs_over_in_their_order(api: Api) -> None:
    batch = batch_of(api, 3)
    api.database.run(workers.report, WORKER, "idle", None, 60.0)
    handed = api.database.run(turns.hand_over_some, Depth(3)).messages
    assert [str(job.job_id) for job in handed] == batch["jobs"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"source": {"type": "values", "values": [1], "dtype": "float63"}}, "specs[17].source.dtype"),
        ({"op": "total"}, "specs[17].op"),
        ({"unknown": 1}, "specs[17].unknown"),
        ({"kind": "reduction"}, "specs[17].kind"),
        ({"source": {"type": "values", "values": [1] * 100_001}}, "specs[17].source.values"),
        ({"source": {"type": "path", "path": "/etc/hosts.npy"}}, "specs[17].source.path"),
        ({"webhook": {"url": "http://127.0.0.1/x"}}, "specs[17].webhook.url"),
        ({"webhook": {"url": "https://hooks.example.org/x"}}, "specs[17].webhook.secret"),
        ({"source": {"type": "dataset", "id": "0" * 64}}, "specs[17].source.id"),
    ],
)
def test_one_wrong_spec_refuses_the_batch_and_is_named(http: httpx.Client, changes: dict[str, Any], field: str) -> None:
    wrong = specs(40)  # more than are checked in the api's own process
    wrong[17] = {**wrong[17], **changes}
    assert fields(http.post("/v1/batches", json={"specs": wrong})) == [field]
    assert nothing_is_kept(http)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "specs"),
        ({"specs": []}, "specs"),
        ({"specs": None, "sweep": None}, "specs"),
        ({"specs": [1]}, "specs[0]"),
        ({"specs": specs(1), "sweep": {"spec": {}, "over": {"op": ["sum"]}}}, "sweep"),
        ({"specs": [{}] * (MAX_JOBS + 1)}, "specs"),
        ({"specs": specs(1), "priority": "urgent"}, "priority"),
        ({"specs": specs(1), "timeout_s": 0}, "timeout_s"),
        ({"specs": specs(1), "tags": {"": "x"}}, "tags."),
        ({"specs": specs(1), "tag": {}}, "tag"),
        ({"specs": [{**THREE_VALUES, "tags": {f"own{i}": "" for i in range(32)}}], "tags": {"x": ""}}, "specs[0].tags"),
        ({"specs": specs(3, op="total")}, "specs[0].op"),
        ([], ""),
    ],
)
def test_what_is_wrong_beside_the_specs_is_named(refusing: httpx.Client, body: Any, field: str) -> None:
    assert fields(refusing.post("/v1/batches", json=body)) == [field]


def test_what_is_no_json_and_what_is_too_much_is_refused(refusing: httpx.Client) -> None:
    json_type = {"Content-Type": "application/json"}
    assert refusing.post("/v1/batches", content=b"[1, NaN]", headers=json_type).status_code == 400
    assert refusing.post("/v1/batches", content=b"", headers=json_type).status_code == 422
    assert refusing.post("/v1/batches", content=b"null", headers=json_type).status_code == 422
    assert refusing.post("/v1/batches", content=b"{}", headers={"Content-Type": "text/plain"}).status_code == 415
    unreadable = b'{"specs": [{"kind": "reduce", "source": {"type": "values", "values": [1e400]}}]}'
    assert fields(refusing.post("/v1/batches", content=unreadable, headers=json_type)) == ["specs[0].source.values.0"]
    fields_ = {f"f{i}": 1 for i in range(20_001)}
    assert refusing.post("/v1/batches", json={"specs": [fields_]}).status_code == 413
    assert refusing.post("/v1/batches", json={"specs": [{}], **fields_}).status_code == 413


def test_a_batch_beyond_the_quota_is_refused_whole_and_the_quota_named(api: Api, quotas: Quotas) -> None:
    quotas(queued=4)
    http = api.client()
    batch_of(api, 2)
    refused = http.post("/v1/batches", json={"specs": specs(3)})
    assert refused.status_code == 429
    assert (refused.json()["quota"], refused.json()["limit"]) == ("queued", 4)
    assert int(refused.headers["Retry-After"]) >= 1
    assert len(http.get("/v1/jobs").json()["items"]) == 2
    batch_of(api, 2)  # as many as there is room for
    assert http.get("/v1/quotas/ann").json()["used"]["queued"] == 4
    assert http.post("/v1/jobs", json=THREE_VALUES).status_code == 429


def test_high_jobs_beyond_the_budget_of_the_hour_wait_as_normal_ones(api: Api, quotas: Quotas) -> None:
    quotas(high_per_hour=3)
    http = api.client()
    api.submit(priority="high")
    batch = submitted(http, {"specs": specs(4), "priority": "high"})
    jobs = [http.get(f"/v1/jobs/{job_id}").json() for job_id in batch["jobs"]]
    assert [job["waits_as"] for job in jobs] == ["high", "high", "normal", "normal"]
    assert {job["priority"] for job in jobs} == {"high"}


def test_the_same_key_and_body_give_the_first_batch(api: Api) -> None:
    http = api.client(**{"Idempotency-Key": "a-key"})
    first, again = (http.post("/v1/batches", json={"specs": specs(3)}) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == first.json()
    assert again.headers["Location"] == first.headers["Location"]
    assert len(http.get("/v1/jobs").json()["items"]) == 3


def test_a_key_that_came_with_another_body_is_refused(api: Api) -> None:
    http = api.client(**{"Idempotency-Key": "a-key"})
    assert http.post("/v1/batches", json={"specs": specs(3)}).status_code == 201
    assert fields(http.post("/v1/batches", json={"specs": specs(2)})) == ["Idempotency-Key"]
    assert fields(http.post("/v1/jobs", json=THREE_VALUES)) == ["Idempotency-Key"]
    assert len(http.get("/v1/jobs").json()["items"]) == 3
    other = api.client(**{"Idempotency-Key": "another"})
    assert other.post("/v1/jobs", json=THREE_VALUES).status_code == 202
    assert fields(other.post("/v1/batches", json={"specs": specs(1)})) == ["Idempotency-Key"]


def test_a_refused_batch_does_not_use_the_key_up(api: Api) -> None:
    http = api.client(**{"Idempotency-Key": "a-key"})
    assert http.post("/v1/batches", json={"specs": specs(1, op="total")}).status_code == 422
    assert http.post("/v1/batches", json={"specs": specs(1)}).status_code == 201


def test_the_jobs_of_a_preset_count_as_its_own(http: httpx.Client) -> None:
    preset = {"kind": "preset", "preset": "p05-three-numbers", "backend": "cpu"}
    batch = submitted(http, {"specs": [preset, THREE_VALUES]})
    parent = http.get(f"/v1/jobs/{batch['jobs'][0]}").json()
    assert batch["count"] == 2
    assert len(parent["children"]) >= 1
    assert http.get("/v1/quotas/ann").json()["used"]["queued"] == len(parent["children"]) + 1
    assert [job["id"] for job in http.get("/v1/jobs", params={"batch": batch["id"]}).json()["items"]] == [
        *reversed(batch["jobs"])
    ]


def test_a_batch_of_ten_thousand_is_one_request(api: Api) -> None:
    body = json.dumps({"specs": [{**THREE_VALUES, "timeout_s": number} for number in range(1, MAX_JOBS + 1)]})
    assert len(body) > LARGE_BYTES
    answer = api.client().post("/v1/batches", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 201, answer.text
    with api.database._engine.connect() as connection:
        stored = connection.exec_driver_sql(
            "select count(*), bool_and(timeout_s = batch_index + 1), max(jobs.seq) - min(jobs.seq),"
            "       sum(job_events.seq), bool_and(jobs.seq - batch_index = (select min(seq) from jobs))"
            "  from jobs join job_events on job_id = id where batch_id = %(id)s",
            {"id": answer.json()["id"]},
        ).one()
    assert tuple(stored) == (MAX_JOBS, True, MAX_JOBS - 1, MAX_JOBS, True)


def test_a_batch_whose_connection_is_cut_is_accepted_once(api: Api, http: httpx.Client) -> None:
    waiting = "select pid from pg_locks where locktype = 'transactionid' and not granted"
    submitted(http, {"specs": specs(1)})
    with api.database._engine.connect() as looking, ThreadPoolExecutor(1) as pool:
        owner_id = looking.exec_driver_sql("select owner_id from batches").scalar_one()
        with api.database._engine.begin() as held:
            room.take_turn(held, owner_id)
            answer = pool.submit(lambda: api.client().post("/v1/batches", json={"specs": specs(3)}))
            until(lambda: len(looking.exec_driver_sql(waiting).all()) == 1)
            cut = looking.exec_driver_sql(waiting).scalar_one()
            looking.exec_driver_sql(f"select pg_terminate_backend({cut})")
            until(lambda: looking.exec_driver_sql(waiting).scalar() not in (None, cut))
        assert answer.result().status_code == 201
    assert len(http.get("/v1/jobs").json()["items"]) == 4


def test_the_examples_of_the_document_are_accepted(http: httpx.Client) -> None:
    examples = http.get("/openapi.json").json()["components"]["schemas"]["BatchSpec"]["examples"]
    assert [submitted(http, example)["count"] for example in examples] == [2, 6]


def test_a_viewer_submits_no_batch(api: Api) -> None:
    token = api.database.run(create_token, "vera", Role.VIEWER)
    with httpx.Client(base_url=api.url, headers={"Authorization": f"Bearer {token}"}, verify=False) as vera:  # noqa: S501
        assert vera.post("/v1/batches", json={"specs": specs(1)}).status_code == 403
