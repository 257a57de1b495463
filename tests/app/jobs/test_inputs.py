"""Every way in which a spec can name what belongs to another user."""

from collections.abc import Callable, Mapping
from typing import Any

import httpx
import pytest

from tests.support.api import THREE_VALUES, Api, running_api
from tests.support.private_things import PrivateThings

Spec = Mapping[str, Any]


def array(things: PrivateThings) -> Spec:
    return {"type": "dataset", "id": things.dataset_id}


OTHER: Spec = {"type": "values", "values": [1.0] * 8, "dtype": "float64"}
WAYS: Mapping[str, tuple[str, Callable[[PrivateThings], Spec]]] = {
    "a reduction": ("/v1/jobs", lambda things: {"kind": "reduce", "source": array(things)}),
    "segments of one element": (
        "/v1/jobs",
        lambda things: {"kind": "reduce", "source": array(things), "segments": {"length": 1}},
    ),
    "an axis": ("/v1/jobs", lambda things: {"kind": "reduce", "source": array(things), "axis": 0}),
    "the second array": (
        "/v1/jobs",
        lambda things: {"kind": "reduce", "op": "dot", "source": OTHER, "other": array(things)},
    ),
    "a table of groups": (
        "/v1/jobs",
        lambda things: {
            "kind": "groupby",
            "source": array(things),
            "by": ["region"],
            "aggregations": [{"op": "sum", "column": "price"}],
        },
    ),
    "a column of groups": (
        "/v1/jobs",
        lambda things: {
            "kind": "groupby",
            "by": [{"name": "region", "source": {"type": "values", "values": ["north"] * 8}}],
            "aggregations": [{"op": "sum", "name": "total", "source": array(things)}],
        },
    ),
    "tables of states": ("/v1/jobs", lambda things: {"kind": "merge", "tables": [array(things)]}),
    "another job's result": (
        "/v1/jobs",
        lambda things: {"kind": "merge", "tables": [{"type": "artefact", "job_id": things.job_id}]},
    ),
    "the same by the route of states": (
        "/v1/states/merge",
        lambda things: {"tables": [{"type": "artefact", "job_id": things.job_id}]},
    ),
    "a batch": (
        "/v1/batches",
        lambda things: {"specs": [dict(THREE_VALUES), {"kind": "reduce", "source": array(things)}]},
    ),
    "a sweep": (
        "/v1/batches",
        lambda things: {
            "sweep": {
                "spec": {"kind": "reduce", "source": {"type": "dataset", "id": "0" * 64}},
                "over": {"source.id": [things.dataset_id], "op": ["sum", "max"]},
            }
        },
    ),
    "a look into it": ("/v1/sources/inspect", lambda things: {"source": array(things)}),
}


def sent(api: Api, user: str, name: str, things: PrivateThings) -> httpx.Response:
    path, spec = WAYS[name]
    return api.client(user).post(path, json=spec(things))


@pytest.mark.parametrize("name", WAYS)
def test_what_a_spec_names_must_be_seen(shared: Api, things: PrivateThings, name: str) -> None:
    refused = sent(shared, "cyd", name, things)
    assert refused.status_code == 422, refused.text
    assert "that you may" in refused.json()["errors"][0]["message"]
    for user in ("ann", "bob", "root"):
        assert sent(shared, user, name, things).status_code in (200, 201, 202), user


def test_a_refused_field_is_named_as_the_request_has_it(shared: Api, things: PrivateThings) -> None:
    fields = {
        "the second array": "other.id",
        "another job's result": "tables.0.job_id",
        "a batch": "specs[1].source.id",
        "a sweep": "sweep.over.source.id[0]",
    }
    for name, field in fields.items():
        assert sent(shared, "cyd", name, things).json()["errors"][0]["field"] == field


def test_another_users_upload_is_no_source(shared: Api, things: PrivateThings) -> None:
    spec = {"kind": "reduce", "source": {"type": "upload", "id": things.upload_id}}
    statuses = {user: shared.client(user).post("/v1/jobs", json=spec).status_code for user in ("ann", "bob", "root")}
    assert statuses == {"ann": 202, "bob": 422, "root": 422}


@pytest.mark.parametrize("name", ["a reduction", "another job's result"])
def test_a_job_that_reads_something_private_is_private(shared: Api, things: PrivateThings, name: str) -> None:
    job = sent(shared, "bob", name, things).json()["id"]
    seen = {user: shared.client(user).get(f"/v1/jobs/{job}").status_code for user in ("bob", "ann", "cyd", "root")}
    assert seen == {"bob": 200, "ann": 404, "cyd": 404, "root": 200}
    plain = shared.submit("bob")
    assert shared.client("cyd").get(f"/v1/jobs/{plain}").status_code == 200


def test_new_jobs_are_private_where_the_setting_says_so(shared: Api) -> None:
    with running_api(shared.settings.model_copy(update={"share_jobs": False})) as api:
        job = api.submit("ann")
        assert api.client("bob").get(f"/v1/jobs/{job}").status_code == 404
        assert job not in api.client("bob").get("/v1/jobs").text
        assert api.client("ann").get(f"/v1/jobs/{job}").status_code == 200
