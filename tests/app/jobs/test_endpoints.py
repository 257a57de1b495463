import json
import math
from typing import Any
from uuid import UUID

import httpx
import pytest
from sqlalchemy import select

from tests.support.api import RESULT, THREE_VALUES, Api
from warpfold.app.jobs import leases
from warpfold.app.jobs.views import JobView
from warpfold.app.tables.jobs import jobs
from warpfold.contract.states import Reason


def fields(response: httpx.Response) -> list[str]:
    assert response.headers["Content-Type"] == "application/problem+json"
    return [error["field"] for error in response.json()["errors"]]


def test_an_accepted_job_is_202_with_its_place_and_when_to_ask(http: httpx.Client) -> None:
    response = http.post("/v1/jobs", json=THREE_VALUES)
    assert response.status_code == 202
    job = JobView.model_validate_json(response.content)
    assert response.headers["Location"] == f"/v1/jobs/{job.id}"
    assert int(response.headers["Retry-After"]) >= 1
    assert (job.status, job.owner, job.queue_position, job.attempt) == ("queued", "ann", 1, 1)
    assert job.result is None


def test_a_plain_submission_is_answered_as_any_other(http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = http.post("/v1/jobs", json=THREE_VALUES, headers={"Idempotency-Key": "whole", "Prefer": "wait=0"})

    def solve(*args: object, **kwargs: object) -> None:
        raise AssertionError("a plain submission has no dependencies to solve")

    monkeypatch.setattr("fastapi.routing.solve_dependencies", solve)
    plain = http.post("/v1/jobs", json=THREE_VALUES, headers={"Prefer": "wait=0"})
    assert plain.status_code == whole.status_code == 202
    own = ("id", "created_at", "queue_position", "links")
    first, second = ({key: value for key, value in each.json().items() if key not in own} for each in (whole, plain))
    assert first == second
    assert plain.headers["Location"] == f"/v1/jobs/{plain.json()['id']}"
    assert plain.headers["Preference-Applied"] == whole.headers["Preference-Applied"]


def test_a_plain_submission_needs_what_all_need(http: httpx.Client) -> None:
    answers = {
        "an unknown parameter": http.post("/v1/jobs?wait=3", json=THREE_VALUES),
        "nothing": http.post("/v1/jobs", headers={"Content-Type": "application/json"}),
        "no JSON": http.post("/v1/jobs", content=b"{", headers={"Content-Type": "application/json"}),
        "a long header": http.post("/v1/jobs", json=THREE_VALUES, headers={"Prefer": "wait=1" + 260 * " " + ";"}),
    }
    assert {why: answer.status_code for why, answer in answers.items()} == {
        "an unknown parameter": 422,
        "nothing": 422,
        "no JSON": 400,
        "a long header": 422,
    }


def test_the_spec_comes_back_whole_with_its_defaults(http: httpx.Client) -> None:
    job = http.get(http.post("/v1/jobs", json=THREE_VALUES).headers["Location"]).json()
    defaults = {
        "strategy": "auto",
        "backend": "auto",
        "nan_policy": "propagate",
        "timeout_s": 300.0,
        "priority": "normal",
        "tags": {},
    }
    assert {**THREE_VALUES, **defaults}.items() <= job["spec"].items()


def test_negative_zero_subnormals_and_long_integers_survive_storage(http: httpx.Client) -> None:
    values = [-0.0, 5e-324, 0.1, 1.7976931348623157e308, "0x1.8p+1", "-inf"]
    spec = {"kind": "reduce", "source": {"type": "values", "values": values}}
    kept = http.get(http.post("/v1/jobs", json=spec).headers["Location"]).json()["spec"]["source"]["values"]
    assert json.dumps(kept) == json.dumps(values)
    assert math.copysign(1.0, kept[0]) == -1.0
    longest = {"kind": "reduce", "source": {"type": "values", "values": [2**64 - 1], "dtype": "uint64"}}
    kept = http.get(http.post("/v1/jobs", json=longest).headers["Location"]).json()["spec"]["source"]["values"]
    assert kept == [2**64 - 1]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"op": "total"}, "op"),
        ({"kind": "bench"}, "kind"),
        ({"strategy": "magic"}, "strategy"),
        ({"backend": "tpu"}, "backend"),
        ({"nan_policy": "ignore"}, "nan_policy"),
        ({"frobnicate": 1}, "frobnicate"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"timeout_s": "300"}, "timeout_s"),
        ({"timeout_s": 1e9}, "timeout_s"),
        ({"priority": "urgent"}, "priority"),
        ({"tags": {"a b": "c"}}, "tags.a b"),
        ({"tags": {"a": "c\u0000"}}, "tags.a"),
        ({"tags": {"a": 3}}, "tags.a"),
        ({"source": {}}, "source.type"),
        ({"source": {"type": "magic"}}, "source.type"),
        ({"source": None}, "source"),
        ({"source": {"type": "values", "values": [1], "dtype": "float128"}}, "source.dtype"),
        ({"source": {"type": "values", "values": [1, None]}}, "source.values.1"),
        ({"source": {"type": "values", "values": [1, "one"]}}, "source.values.1"),
        ({"source": {"type": "values", "values": [1, 300], "dtype": "int8"}}, "source.values.1"),
        ({"source": {"type": "values", "values": [0.5], "dtype": "int8"}}, "source.values.0"),
        ({"source": {"type": "values", "values": [1e39], "dtype": "float32"}}, "source.values.0"),
        ({"source": {"type": "values", "values": 3}}, "source.values"),
        ({"op": "dot"}, "other"),
        ({"op": "dot", "other": {"type": "values", "values": [1, 300], "dtype": "int8"}}, "other.values.1"),
        ({"op": "dot", "other": {"type": "values", "values": [1, None]}}, "other.values.1"),
        ({"op": "dot", "other": {"type": "generate", "distribution": "x", "n": 3}}, "other.distribution"),
        (
            {
                "op": "dot",
                "other": {"type": "generate", "distribution": "normal", "n": 3, "parameters": {"width": 1}},
            },
            "other.parameters.width",
        ),
        ({"op": "dot", "other": {"type": "sql"}}, "other.type"),
        ({"op": "dot", "other": {"type": "path", "path": "../x.npy"}}, "other.path"),
        ({"op": "var", "ddof": -1}, "ddof"),
        ({"op": "var", "ddof": 0.5}, "ddof"),
        ({"op": "var", "ddof": 3}, "ddof"),
        ({"op": "sum", "ddof": 1}, "ddof"),
        ({"source": {"type": "values"}}, "source.values"),
        ({"source": {"type": "values", "values": [1], "n": 3}}, "source.n"),
        ({"source": {"type": "generate", "distribution": "cauchy", "n": 5}}, "source.distribution"),
        ({"source": {"type": "generate", "distribution": "normal", "n": -1}}, "source.n"),
        ({"source": {"type": "generate", "distribution": "normal", "n": 1.5}}, "source.n"),
        ({"source": {"type": "generate", "distribution": "normal", "n": 2**41}}, "source.n"),
        ({"source": {"type": "generate", "distribution": "normal", "n": 5, "seed": -1}}, "source.seed"),
        ({"source": {"type": "generate", "distribution": "normal", "n": 5, "seed": 2**64}}, "source.seed"),
        (
            {"source": {"type": "generate", "distribution": "normal", "n": 5, "parameters": {"width": 1}}},
            "source.parameters.width",
        ),
        (
            {"source": {"type": "generate", "distribution": "normal", "n": 5, "parameters": {"std": "nan"}}},
            "source.parameters.std",
        ),
        (
            {"source": {"type": "generate", "distribution": "normal", "n": 5, "parameters": {"std": -1}}},
            "source.parameters.std",
        ),
        ({"source": {"type": "path", "path": ""}}, "source.path"),
        ({"source": {"type": "path", "path": "/etc/passwd"}}, "source.path"),
        ({"source": {"type": "path", "path": "a/../../b.npy"}}, "source.path"),
        ({"source": {"type": "path", "path": "a\u0000.npy"}}, "source.path"),
        (
            {"backend": "cuda", "strategy": "numpy"},
            "backend",
        ),
    ],
)
def test_a_bad_field_is_422_and_named_without_tags_of_unions(
    refusing: httpx.Client, changes: dict[str, Any], field: str
) -> None:
    response = refusing.post("/v1/jobs", json={**THREE_VALUES, **changes})
    assert response.status_code == 422, response.text
    assert fields(response) == [field]
    assert refusing.get("/v1/jobs").json()["items"] == []


def test_every_bad_field_is_told_at_once(refusing: httpx.Client) -> None:
    response = refusing.post("/v1/jobs", json={**THREE_VALUES, "op": "total", "priority": "urgent", "x": 1})
    assert sorted(fields(response)) == ["op", "priority", "x"]


def test_a_missing_kind_is_named(refusing: httpx.Client) -> None:
    assert fields(refusing.post("/v1/jobs", json={"source": THREE_VALUES["source"]})) == ["kind"]


@pytest.mark.parametrize("body", [b"", b"[]", b"3", b"null", b'"sum"'])
def test_a_body_that_is_no_object_is_422(refusing: httpx.Client, body: bytes) -> None:
    response = refusing.post("/v1/jobs", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code == 422


@pytest.mark.parametrize("body", [b"{", b'{"kind": NaN}', b'{"kind": "\\ud800"}', b"\xff\xfe", b"[" * 100_000])
def test_what_is_not_json_is_400(refusing: httpx.Client, body: bytes) -> None:
    response = refusing.post("/v1/jobs", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code == 400
    assert response.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("media_type", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_another_media_type_is_415(refusing: httpx.Client, media_type: str | None) -> None:
    headers = {} if media_type is None else {"Content-Type": media_type}
    assert refusing.post("/v1/jobs", content=json.dumps(THREE_VALUES), headers=headers).status_code == 415


def test_a_file_under_a_data_root_is_accepted_by_absolute_and_by_relative_name(api: Api) -> None:
    root = api.settings.data_roots[0]
    for path in (f"{root}/x.npy", "x.npy", "deeper/x.npy"):
        api.submit(source={"type": "path", "path": path})


def test_the_size_of_a_file_is_looked_at_when_its_job_is_accepted(api: Api, http: httpx.Client) -> None:
    root = api.settings.data_roots[0]
    (root / "sized.npy").write_bytes(bytes(12_345))
    source = {"type": "path", "path": "sized.npy"}
    alone = api.submit(source=source)
    specs = [{"kind": "reduce", "op": "sum", "source": source}] * 2
    batch = http.post("/v1/batches", json={"specs": specs})
    assert batch.status_code == 201, batch.text
    stored = select(jobs.c.work).where((jobs.c.id == UUID(alone)) | (jobs.c.batch_id == UUID(batch.json()["id"])))
    sized = api.database.run(lambda connection: connection.execute(stored).scalars().all())
    assert sized == [{"lies": "host", "bytes": 12_345}] * 3


def test_a_data_root_may_be_named_through_a_link(api: Api, tmp_path: Any) -> None:
    link = tmp_path / "link"
    link.symlink_to(api.settings.data_roots[0])
    api.submit(source={"type": "path", "path": f"{link}/x.npy"})


def test_numbers_in_a_generated_source_keep_their_integers(api: Api, http: httpx.Client) -> None:
    parameters = {"value": 2**63 - 1}
    source = {"type": "generate", "distribution": "constant", "n": 3, "dtype": "int64", "parameters": parameters}
    job_id = api.submit(source=source)
    assert http.get(f"/v1/jobs/{job_id}").json()["spec"]["source"]["parameters"] == parameters


def test_a_result_is_what_the_worker_stored(api: Api, http: httpx.Client) -> None:
    job_id = api.submit()
    api.finish(api.claim(job_id))
    assert http.get(f"/v1/jobs/{job_id}/result").json() == RESULT
    assert http.get(f"/v1/jobs/{job_id}").json()["result"] == RESULT


@pytest.mark.parametrize("value", ["-0.0", "5e-324", "123456789012345678901234567890", "0.1", '"nan"', "true"])
def test_a_value_is_passed_on_letter_by_letter(api: Api, http: httpx.Client, value: str) -> None:
    job_id = api.submit()
    api.finish(api.claim(job_id), {**RESULT, "value": json.loads(value)})
    assert f'"value": {value}' in http.get(f"/v1/jobs/{job_id}/result").text
    assert f'"value": {value}' in http.get(f"/v1/jobs/{job_id}").text


def test_before_the_end_it_is_a_409_problem(api: Api, http: httpx.Client) -> None:
    job_id = api.submit()
    for status in ("queued", "running"):
        response = http.get(f"/v1/jobs/{job_id}/result")
        assert response.status_code == 409
        assert response.headers["Content-Type"] == "application/problem+json"
        assert response.json()["job_status"] == status
        assert int(response.headers["Retry-After"]) >= 1
        if status == "queued":
            api.claim(job_id)


def test_of_a_failed_job_it_is_a_409_problem_with_the_reason(api: Api, http: httpx.Client) -> None:
    job_id = api.submit()
    api.database.run(leases.fail, api.claim(job_id), Reason.OUT_OF_MEMORY, "It does not fit.")
    problem = http.get(f"/v1/jobs/{job_id}/result").json()
    assert (problem["status"], problem["job_reason"], problem["job_error"]) == (
        409,
        "out_of_memory",
        "It does not fit.",
    )
    job = http.get(f"/v1/jobs/{job_id}").json()
    assert (job["status"], job["reason"], job["error"]) == ("failed", "out_of_memory", "It does not fit.")


def test_of_a_cancelled_job_it_is_a_409_problem(api: Api, http: httpx.Client) -> None:
    job_id = api.submit()
    http.post(f"/v1/jobs/{job_id}/cancel")
    assert http.get(f"/v1/jobs/{job_id}/result").json()["job_status"] == "cancelled"
