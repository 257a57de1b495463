import logging
from uuid import UUID

import httpx
import pytest
from sqlalchemy import text
from standardwebhooks import Webhook as Verifier

from tests.support.api import THREE_VALUES, Api
from tests.support.batches import batch_of
from warpfold.app.batches import transitions
from warpfold.app.webhooks.message import new_secret
from warpfold.contract.frozen import SHOW_SECRETS
from warpfold.contract.jobs import job_spec

URL = "https://hooks.example.org/T0/secret-path?key=1"
MANY = {"type": "values", "values": list(range(100)), "dtype": "float32"}


def submit(http: httpx.Client, webhook: object, **changes: object) -> httpx.Response:
    return http.post("/v1/jobs", json={**THREE_VALUES, "webhook": webhook, **changes})


@pytest.mark.parametrize("changes", [{}, {"source": MANY}])
def test_address_and_secret_are_shown_nowhere_but_to_the_receiver(
    api: Api, http: httpx.Client, caplog: pytest.LogCaptureFixture, changes: dict[str, object]
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = new_secret()
    made = submit(http, {"url": URL, "secret": secret}, **changes)
    assert made.status_code == 202
    job_id = made.json()["id"]
    api.finish(api.claim(job_id))
    texts = [made.text, caplog.text]
    texts += [http.get(f"/v1/jobs{path}").text for path in ("", f"/{job_id}", f"/{job_id}/events", f"/{job_id}/result")]
    assert all("secret-path" not in text and secret not in text for text in texts)
    assert "webhook" not in made.json()["spec"]
    assert secret not in http.get(f"/v1/jobs/{job_id}/deliveries").text


def test_the_worker_gets_a_spec_without_it(api: Api, http: httpx.Client) -> None:
    job_id = submit(http, {"url": URL, "secret": new_secret()}).json()["id"]
    assert "webhook" not in api.claim(job_id).spec


def test_deliveries_are_for_the_owner_and_admins(api: Api, http: httpx.Client) -> None:
    job_id = submit(http, {"url": URL, "secret": new_secret()}).json()["id"]
    path = f"/v1/jobs/{job_id}/deliveries"
    shown = http.get(path).json()
    assert shown == {
        "webhook_id": f"msg_{UUID(job_id).hex}",
        "url": URL,
        "state": "waiting",
        "next_attempt_at": None,
        "delivered_at": None,
        "attempts": [],
    }
    api.finish(api.claim(job_id))
    assert http.get(path).json()["state"] == "pending"
    assert api.client("root").get(path).status_code == 200
    assert api.client("bob").get(path).status_code == 403


def test_a_batch_has_a_webhook_of_its_own_beside_those_of_its_jobs(api: Api, http: httpx.Client) -> None:
    body = {
        "specs": [THREE_VALUES, {**THREE_VALUES, "webhook": {"url": URL, "secret": new_secret()}}],
        "webhook": {"url": f"{URL}&batch=1", "secret": new_secret()},
    }
    made = http.post("/v1/batches", json=body)
    assert made.status_code == 201, made.text
    batch = made.json()
    assert "secret-path" not in made.text + http.get(f"/v1/batches/{batch['id']}").text
    path = f"/v1/batches/{batch['id']}/deliveries"
    shown = http.get(path).json()
    assert (shown["url"], shown["state"]) == (f"{URL}&batch=1", "waiting")
    assert shown["webhook_id"] == f"msg_{UUID(batch['id']).hex}"
    assert api.client("root").get(path).status_code == 200
    assert api.client("bob").get(path).status_code == 403
    assert [http.get(f"/v1/jobs/{job}/deliveries").status_code for job in batch["jobs"]] == [404, 200]
    for job in batch["jobs"]:
        api.finish(api.claim(job))
    assert http.get(path).json()["state"] == "waiting"  # its counts are not kept yet
    assert api.database.run(transitions.settle, 10) == 1
    assert http.get(path).json()["state"] == "pending"


def test_a_batch_without_a_webhook_or_that_is_not_there_has_no_deliveries(api: Api, http: httpx.Client) -> None:
    batch = batch_of(api, 1)
    for batch_id in (batch["id"], UUID(int=7)):
        assert http.get(f"/v1/batches/{batch_id}/deliveries").status_code == 404


@pytest.mark.parametrize(
    ("webhook", "field"),
    [
        ({"url": "ftp://example.org/", "secret": new_secret()}, "webhook.url"),
        ({"url": "http://127.0.0.1:8080/", "secret": new_secret()}, "webhook.url"),
        ({"url": URL}, "webhook.secret"),
        ({"url": URL, "secret": "hunter2-hunter2"}, "webhook.secret"),
        ("https://example.org/", "webhook"),
    ],
)
def test_a_batch_whose_webhook_cannot_be_is_refused_whole(
    api: Api, http: httpx.Client, webhook: object, field: str
) -> None:
    refused = http.post("/v1/batches", json={"specs": [THREE_VALUES], "webhook": webhook})
    assert refused.status_code == 422
    assert [error["field"] for error in refused.json()["errors"]] == [field]
    assert "hunter2" not in refused.text
    assert http.get("/v1/batches").json()["items"] == []


def test_a_job_without_a_webhook_has_no_deliveries(api: Api, http: httpx.Client) -> None:
    assert http.get(f"/v1/jobs/{api.submit()}/deliveries").status_code == 404


@pytest.mark.parametrize(
    ("webhook", "field"),
    [
        ({"url": "ftp://example.org/", "secret": new_secret()}, "webhook.url"),
        ({"url": "example.org", "secret": new_secret()}, "webhook.url"),
        ({"url": "https://ann:pw@example.org/", "secret": new_secret()}, "webhook.url"),
        ({"url": "https://example.org/#x", "secret": new_secret()}, "webhook.url"),
        ({"url": "http://127.0.0.1:8080/", "secret": new_secret()}, "webhook.url"),
        ({"url": "http://localhost/", "secret": new_secret()}, "webhook.url"),
        ({"url": "http://[::ffff:10.0.0.1]/", "secret": new_secret()}, "webhook.url"),
        ({"url": "http://2130706433/", "secret": new_secret()}, "webhook.url"),  # 127.0.0.1 as one number
        ({"url": URL, "secret": "hunter2-hunter2"}, "webhook.secret"),
        ({"url": URL, "secret": "whsec_c2hvcnQ="}, "webhook.secret"),
        ({"url": URL, "secret": "whsec_" + "é" * 40}, "webhook.secret"),
        ({"url": URL}, "webhook.secret"),
        ({"secret": new_secret()}, "webhook.url"),
        ("https://example.org/", "webhook"),
        ({"url": URL, "colour": "red"}, "webhook.colour"),
    ],
)
def test_a_webhook_that_cannot_be_is_422_stores_nothing_and_quotes_no_secret(
    own_api: Api, webhook: object, field: str
) -> None:
    http = own_api.client("bob")
    refused = submit(http, webhook)
    assert refused.status_code == 422
    assert [error["field"] for error in refused.json()["errors"]] == [field]
    assert "hunter2" not in refused.text
    assert http.get("/v1/jobs").json()["items"] == []


def test_a_secret_beyond_ascii_is_told_what_a_secret_is(refusing: httpx.Client) -> None:
    [error] = submit(refusing, {"url": URL, "secret": "whsec_" + "é" * 40}).json()["errors"]
    assert error["message"].startswith("must be whsec_")


def test_a_secret_of_ones_own_is_made_once_and_serves_all_jobs(own_api: Api) -> None:
    http = own_api.client()
    made = http.post("/v1/webhooks/secret")
    assert (made.status_code, made.headers["Cache-Control"]) == (201, "no-store")
    Verifier(made.json()["secret"])
    assert submit(http, {"url": URL}).status_code == 202
    assert http.post("/v1/webhooks/secret").json() != made.json()
    assert submit(own_api.client("bob"), {"url": URL}).status_code == 422  # whose own is another


def test_a_repeated_submission_has_one_webhook(api: Api) -> None:
    http = api.client(**{"Idempotency-Key": "k"})
    webhook = {"url": URL, "secret": new_secret()}
    assert [submit(http, webhook).status_code for _ in range(2)] == [202, 200]
    assert api.database.run(lambda c: c.execute(text("select count(*) from webhooks")).scalar_one()) == 1


def test_a_preset_tells_of_its_own_end_and_not_of_its_childrens(api: Api, http: httpx.Client) -> None:
    webhook = {"url": URL, "secret": new_secret()}
    task = {"kind": "three_numbers", "a": 2048, "c": -2048}
    preset = {"kind": "preset", "preset": "p05-three-numbers", "children": [{"name": "one", "spec": task}]}
    made = http.post("/v1/jobs", json={**preset, "webhook": webhook})
    assert made.status_code == 202, made.text
    assert http.get(f"/v1/jobs/{made.json()['id']}/deliveries").json()["state"] == "waiting"
    twice = [{"name": "one", "spec": {**task, "webhook": webhook}}]
    refused = http.post("/v1/jobs", json={**preset, "children": twice})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["field"] == "children.0.spec.webhook"


def test_a_spec_shows_its_secret_only_to_whoever_sends_it() -> None:
    secret = new_secret()
    spec = job_spec.validate_python({**THREE_VALUES, "webhook": {"url": URL, "secret": secret}})
    assert secret not in repr(spec)
    assert secret not in spec.model_dump_json()
    assert spec.model_dump(mode="json", context=SHOW_SECRETS)["webhook"]["secret"] == secret
