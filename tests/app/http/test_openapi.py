"""The document describes the service: schemathesis holds every route against it."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
from sqlalchemy import Connection, select

from tests.support.api import WORKER, Api, leading
from warpfold.app.jobs import leases, workers
from warpfold.app.tables.jobs import jobs
from warpfold.contract.jobs import job_spec
from warpfold.contract.states import Status

# What a schema cannot say (a cursor of ours, a state with the right magic) may be refused; the rest must hold.
_CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
    "allow_header_conformance",
    "ignored_auth",
)
_REVOKE = "^(revoke|rotate)_"
_CONFIG = """
[checks.negative_data_rejection]
expected-statuses = ["400", "401", "404", "405", "406", "409", "413", "415", "422", "429"]

[[operations]]  # its parameters are headers, and a header that nobody knows is no error
include-name = "POST /v1/uploads"
[operations.checks.negative_data_rejection]
expected-statuses = ["201", "401", "413", "422"]

"""
_LARGE = "".join(
    f'[[operations]]\ninclude-name = "POST {path}"\n'
    "phases.coverage.enabled = false\nphases.fuzzing.enabled = {drawn}\n"
    for path in ("/v1/jobs", "/v1/batches", "/v1/sources/inspect", "/v1/states/merge")
)
"""Operations that take any source or state. To draw two cases of one of them takes longer than all cases of the other
operations together, so that `make fuzz` alone does. Every boundary of every field of every kind makes ten thousands of
cases, of every source five thousand, of states and their tables three thousand. All have tests of their own."""


@pytest.mark.parametrize(("method", "path"), [("GET", "/openapi.json"), ("OPTIONS", "/v1/jobs")])
def test_while_the_document_is_made_other_requests_are_answered(own_api: Api, method: str, path: str) -> None:
    asking, other = own_api.client(), own_api.client()
    assert other.get("/healthz").status_code == 200  # which makes what every first request makes
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(asking.request, method, path)
        seconds = []
        while not asked.done():
            seconds.append(other.get("/healthz").elapsed.total_seconds())
    assert asked.result().is_success
    assert max(seconds) < asked.result().elapsed.total_seconds() / 2


@contextmanager
def a_worker_at_work(api: Api) -> Iterator[None]:
    """Ends every queued job with a result, as it comes."""
    api.database.run(workers.report, WORKER, "idle", None, 600.0)
    done = threading.Event()

    def work() -> None:
        while not done.wait(0.1):
            for job_id, attempt in api.database.run(_queued):
                lease = api.database.run(leases.claim, job_id, attempt, WORKER.id, 60.0)
                if lease is not None:
                    api.finish(lease)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _queued(connection: Connection) -> list[tuple[UUID, int]]:
    queued = select(jobs.c.id, jobs.c.attempt).where(jobs.c.status == Status.QUEUED)
    return [(row.id, row.attempt) for row in connection.execute(queued)]


@pytest.mark.hypothesis  # so that `make fuzz` runs it, too
@pytest.mark.timeout(900)  # half a minute of computing, of which a loaded machine made minutes
def test_schemathesis_finds_no_server_error_and_no_answer_beside_the_document(
    own_api: Api, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    api = own_api  # where it may make admins of anybody
    config = _CONFIG + _LARGE.format(drawn="false")
    drawn: tuple[str, ...] = ("--phases", "coverage,fuzzing", "--max-examples", "2", "--seed", "1")
    if pytestconfig.getoption("--hypothesis-profile") == "fuzz":
        config = _CONFIG + _LARGE.format(drawn="true")
        drawn = ("--max-examples", "10", "--seed", str(pytestconfig.getoption("--hypothesis-seed")))
    (tmp_path / "schemathesis.toml").write_text(config)
    with a_worker_at_work(api), leading(api, 900.0):
        authorized = {"Authorization": f"Bearer {api.tokens['root']}"}
        document = httpx.get(f"{api.url}/openapi.json", headers=authorized, timeout=300)
        document.raise_for_status()  # the first takes the longest, and schemathesis waits 10 s for it
        run = subprocess.run(
            [
                *(str(Path(sys.executable).parent / "schemathesis"), "--config-file", "schemathesis.toml"),
                *("run", f"{api.url}/openapi.json", "--header", f"Authorization: Bearer {api.tokens['root']}"),
                *("--exclude-operation-id-regex", _REVOKE),  # they would soon find the token that they come with
                *("--checks", ",".join(_CHECKS), *drawn),
                *("--request-timeout", "60", "--suppress-health-check", "all", "--warnings", "off"),
            ],
            check=False,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=840,
        )
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]
    assert " generated" in run.stdout


@pytest.fixture
def document(refusing: httpx.Client) -> dict[str, Any]:
    loaded: dict[str, Any] = refusing.get("/openapi.json").json()
    return loaded


def test_every_schema_has_a_title_of_its_own(document: dict[str, Any]) -> None:
    """Generators of clients name classes by titles, and drop whatever refers to one of two that have the same."""
    schemas = document["components"]["schemas"]
    titles = [schema["title"] for schema in schemas.values()]
    assert len(set(titles)) == len(schemas)
    assert {"JobView", "JobPage", "ReduceSpecInput", "ReduceSpecOutput"} <= set(titles)


def operations(document: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [(f"{m} {path}", op) for path, methods in document["paths"].items() for m, op in methods.items()]


def test_every_route_of_the_contract_is_there(document: dict[str, Any]) -> None:
    assert {name for name, _ in operations(document)} == {
        "post /v1/jobs",
        "get /v1/jobs",
        "get /v1/jobs/{job_id}/artefact",
        "delete /v1/jobs/{job_id}/artefact",
        "get /v1/jobs/{job_id}",
        "patch /v1/jobs/{job_id}",
        "delete /v1/jobs/{job_id}",
        "get /v1/jobs/{job_id}/events",
        "post /v1/jobs/{job_id}/cancel",
        "get /v1/jobs/{job_id}/result",
        "get /v1/jobs/{job_id}/deliveries",
        "post /v1/batches",
        "get /v1/batches",
        "get /v1/batches/{batch_id}",
        "get /v1/batches/{batch_id}/deliveries",
        "get /v1/batches/{batch_id}/events",
        "post /v1/batches/{batch_id}/cancel",
        "get /v1/batches/{batch_id}/results",
        "post /v1/webhooks/secret",
        "post /v1/datasets",
        "get /v1/datasets",
        "get /v1/datasets/{dataset_id}",
        "get /v1/datasets/{dataset_id}/file",
        "delete /v1/datasets/{dataset_id}",
        "get /v1/datasets/{dataset_id}/uses",
        "patch /v1/datasets/{dataset_id}",
        "get /v1/datasets/{dataset_id}/sharing",
        "put /v1/datasets/{dataset_id}/sharing",
        "get /v1/jobs/{job_id}/sharing",
        "put /v1/jobs/{job_id}/sharing",
        "get /v1/batches/{batch_id}/sharing",
        "put /v1/batches/{batch_id}/sharing",
        "post /v1/uploads",
        "get /v1/uploads",
        "get /v1/uploads/{upload_id}",
        "patch /v1/uploads/{upload_id}",
        "delete /v1/uploads/{upload_id}",
        "get /v1/results",
        "get /v1/results/compare",
        "get /v1/results/regressions",
        "post /v1/sources/inspect",
        "post /v1/states/merge",
        "get /v1/reports/{job_id}",
        "get /v1/reports/{job_id}/charts/{name}.{suffix}",
        "get /v1/ops",
        "get /v1/strategies",
        "get /v1/devices",
        "get /v1/presets",
        "get /v1/presets/{name}",
        "get /v1/workers",
        "post /v1/workers/{worker}/drain",
        "post /v1/workers/{worker}/resume",
        "get /v1/users",
        "get /v1/users/me",
        "get /v1/users/me/tokens",
        "post /v1/users/me/tokens",
        "post /v1/users/me/tokens/rotate",
        "post /v1/users/me/tokens/{token_id}/rotate",
        "delete /v1/users/me/tokens/{token_id}",
        "delete /v1/users/me/sessions",
        "put /v1/users/{name}",
        "get /v1/tokens",
        "post /v1/tokens",
        "post /v1/tokens/{token_id}/rotate",
        "delete /v1/tokens/{token_id}",
        "get /v1/users/{name}/removal",
        "delete /v1/users/{name}",
        "get /v1/audit",
        "get /v1/jobs/{job_id}/links",
        "post /v1/jobs/{job_id}/links",
        "delete /v1/jobs/{job_id}/links/{link_id}",
        "get /v1/quotas",
        "get /v1/quotas/{name}",
        "put /v1/quotas/{name}",
        "get /healthz",
        "get /readyz",
        "get /metrics",
    }


def test_every_operation_has_a_short_name_of_its_own(document: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, operation in operations(document)]
    assert len(set(names)) == len(names)
    assert {"submit_job", "submit_batch", "list_jobs", "upload_dataset"} <= set(names)
    assert max(map(len, names)) < 30


def test_an_operation_has_one_type_for_all_its_successes(document: dict[str, Any]) -> None:
    """But for a merge, which many states make a job."""
    for name, operation in operations(document):
        successes = [answer for status, answer in operation["responses"].items() if status.startswith("2")]
        schemas = [
            answer["content"]["application/json"]["schema"]
            for answer in successes
            if "application/json" in answer.get("content", {})
        ]
        assert all(schema == schemas[0] for schema in schemas) or name == "post /v1/states/merge", name


def test_a_field_of_a_request_that_may_be_left_out_says_its_default_in_words(document: dict[str, Any]) -> None:
    """Types of TypeScript demand a field that has a `default`, and clients of Python send it."""
    schemas = document["components"]["schemas"]
    for _, operation in operations(document):
        for body in operation.get("requestBody", {}).get("content", {}).values():
            assert '"default"' not in json.dumps(body)
    spec = schemas["ReduceSpec-Input"]
    assert spec["required"] == ["kind", "source"]
    assert not any("default" in field for field in spec["properties"].values())
    assert spec["properties"]["timeout_s"]["description"].endswith(" The default is `300.0`.")
    assert spec["properties"]["op"]["description"].endswith(" The default is `sum`.")
    assert "default" not in json.dumps(schemas["BatchSpec"]["properties"]["name"])


def test_every_error_is_documented_as_a_problem(document: dict[str, Any]) -> None:
    for name, operation in operations(document):
        for status, response in operation["responses"].items():
            if status.startswith(("4", "5")):
                assert list(response["content"]) == ["application/problem+json"], f"{name} {status}"
        if not name.endswith("healthz"):
            assert "503" in operation["responses"], name


def test_every_route_but_health_names_the_token(document: dict[str, Any]) -> None:
    for name, operation in operations(document):
        assert ("security" in operation) != name.endswith(("/healthz", "/readyz")), name
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"


def test_the_examples_of_a_submission_are_accepted(document: dict[str, Any], http: httpx.Client) -> None:
    [spec] = [schema for name, schema in document["components"]["schemas"].items() if name.startswith("ReduceSpec")][:1]
    assert len(spec["examples"]) >= 2
    for example in spec["examples"]:
        job_spec.validate_python(example)
        assert http.post("/v1/jobs", json=example).status_code == 202


def test_ops_dtypes_and_strategies_are_offered_by_name(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    [spec] = [schema for name, schema in schemas.items() if name.startswith("ReduceSpec")][:1]
    assert "norm2" in spec["properties"]["op"]["enum"]
    assert {"auto", "exact", "numpy"} <= set(spec["properties"]["strategy"]["enum"])


def test_no_schema_bears_the_name_of_a_module(api: Api) -> None:
    names = api.client().get("/openapi.json").json()["components"]["schemas"]
    assert [name for name in names if "__" in name] == []  # what two classes of one name get


def descriptions(node: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """Every description below a node of the document, with its place."""
    if isinstance(node, dict):
        if isinstance(node.get("description"), str) and not place.endswith("/properties"):
            yield place, node["description"]
        for name, inner in node.items():
            yield from descriptions(inner, f"{place}/{name}")
    elif isinstance(node, list):
        for index, inner in enumerate(node):
            yield from descriptions(inner, f"{place}/{index}")


def test_every_description_begins_as_a_sentence(document: dict[str, Any]) -> None:
    """With a capital, a name in backticks, a sign of a formula, or a name of a product that is spelled small."""
    texts = list(descriptions(document))
    assert len(texts) > 500
    assert [f"{place}: {text}" for place, text in texts if text[:1].islower()] == []
