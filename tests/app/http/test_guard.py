import time
from collections.abc import Iterator

import httpx
import pytest

from tests.support.api import NO_TLS, Api, running_api
from warpfold.app.config import Settings


@pytest.fixture
def strict(settings: Settings) -> Iterator[Api]:
    """An api that lets a user ask five times and an address three times, and then hardly again."""
    update = {
        "requests_per_second_per_user": 0.1,
        "request_burst_per_user": 5,
        "requests_per_second_per_address": 0.1,
        "request_burst_per_address": 3,
    }
    with running_api(settings.model_copy(update=update)) as running:
        yield running


def test_a_user_who_asks_too_often_is_told_when_to_come_back(strict: Api) -> None:
    http = strict.client()
    answers = [http.get("/v1/ops") for _ in range(8)]
    assert {answer.status_code for answer in answers[:5]} == {200}
    refused = answers[-1]
    assert refused.status_code == 429
    assert 1 <= int(refused.headers["Retry-After"]) <= 10
    assert refused.json()["type"] == "urn:warpfold:too-many"
    assert "ann" in refused.json()["detail"]
    assert strict.client("bob").get("/v1/ops").status_code == 200


@pytest.mark.parametrize("path", ["/sign-in", "/v2", "/v1/jobs", "/openapi.json"])
def test_so_is_an_address_whatever_it_asks_for(strict: Api, path: str) -> None:
    assert 429 in [httpx.get(f"{strict.url}{path}", verify=NO_TLS).status_code for _ in range(6)]
    assert httpx.options(f"{strict.url}{path}", verify=NO_TLS).status_code == 429


def test_neither_makes_the_service_look_ill(strict: Api) -> None:
    for _ in range(6):
        httpx.get(f"{strict.url}/v1/jobs", verify=NO_TLS)
    assert httpx.get(f"{strict.url}/healthz", verify=NO_TLS).status_code == 200


def test_failed_sign_ins_are_slowed_and_right_ones_are_not(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpfold.app.fairness.rates._BURST", 2.0)
    monkeypatch.setattr("warpfold.app.fairness.rates._A_SECOND", 0.001)
    monkeypatch.setattr("warpfold.app.fairness.rates._SLOWED_BY_S", 2.0)
    with running_api(settings) as api:

        def failing() -> float:
            began = time.monotonic()
            wrong = {"Authorization": "Bearer wf_wrong"}
            assert httpx.get(f"{api.url}/v1/jobs", headers=wrong, verify=NO_TLS).status_code == 401
            return time.monotonic() - began

        assert [failing() >= 2.0 for _ in range(3)][-1]
        page = httpx.post(f"{api.url}/sign-in", data={"token": "wf_x"}, headers={"Sec-Fetch-Site": "same-origin"})
        assert (page.status_code, page.elapsed.total_seconds() >= 2.0) == (401, True)
        assert api.client().get("/v1/ops").elapsed.total_seconds() < 2.0
