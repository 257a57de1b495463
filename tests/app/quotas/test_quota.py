import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import httpx
import psycopg

from tests.support.api import THREE_VALUES, Api
from tests.support.ledger import Ledger
from tests.support.query_plans import Explained
from warpfold.app.db import conninfo
from warpfold.app.quotas import holds
from warpfold.app.quotas.quota import Limits, quota_of


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


_ENDED = """
    insert into jobs (id, owner_id, kind, priority, needs, timeout_s, spec, status, worker, started_at, finished_at)
    select gen_random_uuid(), %s, 'reduce', 1, 'any', 60, '{}', 'succeeded', %s, now() - interval '0.5 s', now()
    from generate_series(1, %s)
"""


def test_gpu_seconds_are_those_of_slots_with_a_gpu_and_cost_nothing_without_one(
    ledger: Ledger, database_url: str
) -> None:
    ada, cpu = ledger.owner("ada"), ledger.worker("cpu")
    with psycopg.connect(conninfo(database_url), autocommit=True) as connection:
        connection.execute(_ENDED, (ada, cpu, 300))
        with closing(Explained(database_url)) as explained:
            reads = explained.reads(quota_of, "ada", Limits())
        assert sum(read.rows for read in reads) < 100, reads
        connection.execute(_ENDED, (ada, ledger.worker("cuda:0"), 3))
    quota = ledger.database.run(quota_of, "ada", Limits())
    assert quota is not None
    assert 0 < quota.usage.gpu_seconds_today <= 1.5  # less in the second after midnight
