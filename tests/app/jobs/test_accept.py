"""Acceptance of jobs: a key means one job, quotas and limits refuse, and `priority: high` has a budget."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import httpx
import pytest

from tests.support.api import THREE_VALUES, Api, running_api
from tests.support.ledger import Ledger
from warpfold.app.config import Settings
from warpfold.app.jobs.accept import check
from warpfold.contract.jobs import job_spec
from warpfold.kernels.errors import InvalidInput


def test_the_same_key_and_body_give_the_first_job_with_200(api: Api) -> None:
    http = api.client(**{"Idempotency-Key": "a-key"})
    first = http.post("/v1/jobs", json=THREE_VALUES)
    again = http.post("/v1/jobs", json=THREE_VALUES)
    assert (first.status_code, again.status_code) == (202, 200)
    assert again.json()["id"] == first.json()["id"]
    assert again.headers["Location"] == first.headers["Location"]
    assert len(http.get("/v1/jobs").json()["items"]) == 1


def test_the_first_job_is_given_as_it_is_by_now(api: Api) -> None:
    http = api.client(**{"Idempotency-Key": "a-key"})
    job_id = http.post("/v1/jobs", json=THREE_VALUES).json()["id"]
    api.finish(api.claim(job_id))
    assert http.post("/v1/jobs", json=THREE_VALUES).json()["status"] == "succeeded"


def test_the_same_key_with_another_body_is_422_and_named(api: Api) -> None:
    http = api.client(**{"Idempotency-Key": "a-key"})
    http.post("/v1/jobs", json=THREE_VALUES)
    response = http.post("/v1/jobs", json={**THREE_VALUES, "op": "mean"})
    assert response.status_code == 422
    assert response.json()["errors"][0]["field"] == "Idempotency-Key"
    assert len(http.get("/v1/jobs").json()["items"]) == 1


def test_keys_of_two_users_are_two_keys(api: Api) -> None:
    key = {"Idempotency-Key": "a-key"}
    jobs = {api.client(user, **key).post("/v1/jobs", json=THREE_VALUES).json()["id"] for user in ("ann", "bob")}
    assert len(jobs) == 2


def test_without_a_key_every_submission_is_a_job(http: httpx.Client) -> None:
    assert len({http.post("/v1/jobs", json=THREE_VALUES).json()["id"] for _ in range(3)}) == 3


def test_a_refused_submission_does_not_use_the_key_up(api: Api) -> None:
    http = api.client(**{"Idempotency-Key": "a-key"})
    assert http.post("/v1/jobs", json={**THREE_VALUES, "op": "total"}).status_code == 422
    assert http.post("/v1/jobs", json=THREE_VALUES).status_code == 202


def test_requests_with_one_key_that_race_make_one_job(api: Api) -> None:
    http = api.client(**{"Idempotency-Key": "a-key"})
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: http.post("/v1/jobs", json=THREE_VALUES), range(24)))
    assert sorted(answer.status_code for answer in answers) == [200] * 23 + [202]
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert len(http.get("/v1/jobs").json()["items"]) == 1


@pytest.mark.parametrize("key", ["", "x" * 256, "a\tb"])
def test_a_key_that_cannot_be_kept_is_422(refusing: httpx.Client, key: str) -> None:
    assert refusing.post("/v1/jobs", json=THREE_VALUES, headers={"Idempotency-Key": key}).status_code == 422


@pytest.fixture
def small(settings: Settings) -> Iterator[Api]:
    limits = {"max_body_bytes": 2000, "max_values": 10, "max_queued_per_user": 3, "data_roots": ()}
    with running_api(settings.model_copy(update=limits)) as running:
        yield running


def test_the_job_after_the_last_allowed_one_is_429_until_there_is_room(small: Api) -> None:
    jobs = [small.submit() for _ in range(3)]
    refused = small.client().post("/v1/jobs", json=THREE_VALUES)
    assert refused.status_code == 429
    assert int(refused.headers["Retry-After"]) >= 1
    assert refused.headers["Content-Type"] == "application/problem+json"
    small.claim(jobs[0])
    small.submit()


def test_the_limit_is_each_users_own(small: Api) -> None:
    for _ in range(3):
        small.submit("ann")
    small.submit("bob")


def test_a_known_idempotency_key_is_answered_even_at_the_limit(small: Api) -> None:
    http = small.client(**{"Idempotency-Key": "k"})
    first = http.post("/v1/jobs", json=THREE_VALUES)
    small.submit()
    small.submit()
    again = http.post("/v1/jobs", json=THREE_VALUES)
    assert (again.status_code, again.json()["id"]) == (200, first.json()["id"])


def test_too_many_values_are_422_and_named(small: Api) -> None:
    source = {"type": "values", "values": [1] * 11}
    response = small.client().post("/v1/jobs", json={"kind": "reduce", "source": source})
    assert response.status_code == 422
    assert response.json()["errors"][0]["field"] == "source.values"
    few = {"type": "values", "values": [1]}
    response = small.client().post("/v1/jobs", json={"kind": "reduce", "op": "dot", "source": few, "other": source})
    assert response.json()["errors"][0]["field"] == "other.values"


def test_a_result_that_no_user_may_hold_is_422_and_names_the_field() -> None:
    source = {"type": "generate", "distribution": "normal", "dtype": "float64", "n": 2**31, "shape": [2**30, 2]}
    spec = {"kind": "reduce", "source": source, "axis": 1}
    limits = Settings(database_url="postgresql://127.0.0.1/none", dataset_quota_bytes=2**33 - 1)
    with pytest.raises(InvalidInput, match="8,589,934,592 bytes, and a user may hold 8,589,934,591") as refused:
        check(job_spec.validate_python(spec), limits)
    assert refused.value.field == "axis"
    check(job_spec.validate_python(spec), limits.model_copy(update={"dataset_quota_bytes": 2**33}))


def test_as_many_values_as_allowed_are_accepted(small: Api) -> None:
    small.submit(source={"type": "values", "values": [1] * 10})


def test_too_large_a_body_is_413_by_its_declared_length(small: Api) -> None:
    body = json.dumps({**THREE_VALUES, "tags": {"a": "x" * 2000}})
    response = small.client().post("/v1/jobs", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code == 413
    assert response.headers["Content-Type"] == "application/problem+json"
    assert response.headers["Connection"] == "close"


def test_too_large_a_body_is_413_in_chunks_too_before_all_of_it_is_read(small: Api) -> None:
    sent = 0

    def chunks() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(100_000):
            sent += 1000
            yield b" " * 1000

    try:
        response = small.client().post("/v1/jobs", content=chunks(), headers={"Content-Type": "application/json"})
    except (httpx.WriteError, httpx.ReadError):
        pass  # the server hung up while we were still sending, as it may
    else:
        assert response.status_code == 413
    assert sent < 100_000_000


def test_a_server_without_data_roots_says_so(small: Api) -> None:
    source = {"type": "path", "path": "x.npy"}
    response = small.client().post("/v1/jobs", json={"kind": "reduce", "source": source})
    assert response.status_code == 422
    error = response.json()["errors"][0]
    assert error["field"] == "source.path"
    assert "without data roots" in error["message"]


def test_the_service_goes_on_after_a_refusal(small: Api) -> None:
    test_too_large_a_body_is_413_by_its_declared_length(small)
    small.submit()


@pytest.fixture
def strict(settings: Settings) -> Iterator[Api]:
    """An api where two jobs of a user may wait as high in an hour."""
    with running_api(settings.model_copy(update={"max_high_per_hour": 2})) as running:
        yield running


@pytest.fixture
def ledger(strict: Api) -> Ledger:
    return Ledger(strict.database)


def waits_as(http: httpx.Client, job_id: str) -> tuple[str, str | None]:
    job = http.get(f"/v1/jobs/{job_id}").json()
    return job["priority"], job["waits_as"]


def test_high_jobs_beyond_the_budget_of_the_hour_wait_as_normal_ones(strict: Api) -> None:
    http = strict.client()
    mine = [strict.submit(priority="high") for _ in range(4)]
    assert [waits_as(http, job_id) for job_id in mine] == [("high", "high")] * 2 + [("high", "normal")] * 2
    assert waits_as(http, strict.submit("bob", priority="high")) == ("high", "high"), "each has their own"


def test_the_budget_is_of_an_hour_whether_the_jobs_have_ended_or_not(strict: Api, ledger: Ledger) -> None:
    http = strict.client()
    first, _ = strict.submit(priority="high"), strict.submit(priority="high")
    http.post(f"/v1/jobs/{first}/cancel")
    assert waits_as(http, strict.submit(priority="high")) == ("high", "normal")
    ledger.age(UUID(first), 3601)
    assert waits_as(http, strict.submit(priority="high")) == ("high", "high")


@pytest.mark.parametrize(("own", "high"), [(0, 0), (3, 3)])
def test_an_admin_gives_or_takes_the_right(strict: Api, own: int, high: int) -> None:
    set_ = strict.client("root").put("/v1/quotas/ann", json={"high_per_hour": own})
    assert set_.json()["limits"]["high_per_hour"] == own
    http = strict.client()
    mine = [strict.submit(priority="high") for _ in range(4)]
    assert [waits_as(http, job_id)[1] for job_id in mine] == ["high"] * high + ["normal"] * (4 - high)


def test_children_of_a_preset_use_the_budget_and_the_preset_does_not(strict: Api) -> None:
    http = strict.client()
    part = {"kind": "reduce", "source": {"type": "values", "values": [1.0]}}
    children = [{"name": name, "spec": part} for name in ("a", "b", "c")]
    preset = {"kind": "preset", "preset": "p34-reduction", "priority": "high", "children": children}
    made = http.post("/v1/jobs", json=preset)
    assert made.status_code == 202, made.text
    ids = [child["id"] for child in made.json()["children"]]
    assert [waits_as(http, job_id)[1] for job_id in ids] == ["high", "high", "normal"]
