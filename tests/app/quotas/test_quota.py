import threading
from concurrent.futures import ThreadPoolExecutor

import httpx

from tests.support.api import THREE_VALUES, Api
from warpfold.app.quotas import holds
from warpfold.app.quotas.quota import Limits


def submissions(api: Api, user: str, count: int, at_once: int) -> list[httpx.Response]:
    """So many submissions by as many clients as told, all let go at the same moment."""
    clients = [api.client(user) for _ in range(at_once)]
    gate = threading.Barrier(at_once)

    def submit(index: int) -> list[httpx.Response]:
        gate.wait()
        return [clients[index].post("/v1/jobs", json=THREE_VALUES) for _ in range(count // at_once)]

    with ThreadPoolExecutor(at_once) as pool:
        return [response for theirs in pool.map(submit, range(at_once)) for response in theirs]


def test_simultaneous_submissions_never_overshoot_the_quota(own_api: Api) -> None:
    own_api.client("root").put("/v1/quotas/ann", json={"queued": 7})
    answers = submissions(own_api, "ann", 64, 16)
    assert sorted(answer.status_code for answer in answers) == [202] * 7 + [429] * 57
    me = own_api.client().get("/v1/quotas/ann").json()
    assert me["used"]["queued"] == 7
    accepted = own_api.client().get("/v1/jobs", params={"owner": "ann", "limit": 100}).json()["items"]
    assert len(accepted) == 7


def test_the_refusal_names_the_quota_and_says_when_to_try_again(own_api: Api) -> None:
    own_api.client("root").put("/v1/quotas/ann", json={"queued": 0})
    refused = own_api.client("ann").post("/v1/jobs", json=THREE_VALUES)
    assert refused.status_code == 429
    assert int(refused.headers["Retry-After"]) >= 1
    problem = refused.json()
    assert (problem["type"], problem["quota"], problem["limit"]) == ("urn:warpfold:too-many", "queued", 0)
    own_api.submit("bob")  # whose quota is another


def test_a_quota_may_be_larger_than_what_the_settings_allow_everybody(own_api: Api) -> None:
    own_api.client("root").put("/v1/quotas/ann", json={"queued": 5000})
    assert own_api.client().get("/v1/quotas").json()["items"][0]["limits"]["queued"] == 5000


def test_a_waiting_job_tells_its_hold_and_its_etag_changes_with_it(own_api: Api) -> None:
    http = own_api.client("ann")
    path = f"/v1/jobs/{own_api.submit('ann')}"
    free = http.get(path)
    assert free.json()["hold"] is None
    own_api.client("root").put("/v1/quotas/ann", json={"running": 0})
    own_api.database.run(holds.refresh, Limits())
    held = http.get(path, headers={"If-None-Match": free.headers["ETag"]})
    assert held.status_code == 200
    assert held.json()["hold"] == {"quota": "running", "limit": 0.0, "until": None}
    assert http.get(path, headers={"If-None-Match": held.headers["ETag"]}).status_code == 304
