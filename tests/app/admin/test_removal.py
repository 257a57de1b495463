from sqlalchemy import func, select, text

from tests.support.api import Api, until_refused
from tests.support.private_things import npy
from warpfold.app.admin.removal import forget_removed
from warpfold.app.auth.access_tokens import create_token
from warpfold.app.tables.jobs import jobs
from warpfold.app.tables.users import users


def test_what_a_removal_does_is_said_before_and_is_what_happens(own_api: Api) -> None:
    root, ann = own_api.client("root"), own_api.client("ann")
    array = ann.post("/v1/datasets", content=npy([1.0, 2.0])).json()
    ended, waiting = own_api.submit(), own_api.submit()
    own_api.finish(own_api.claim(ended))
    running = own_api.submit()
    own_api.claim(running)
    planned = root.get("/v1/users/ann/removal").json()
    assert planned == {
        "user": "ann",
        "tokens": 1,
        "jobs_cancelled": 2,
        "jobs_kept": 1,
        "arrays_deleted": 1,
        "bytes_deleted": array["bytes"],
    }
    assert ann.get(f"/v1/jobs/{waiting}").json()["status"] == "queued"
    assert root.delete("/v1/users/ann").json() == planned
    until_refused(lambda: ann.get("/v1/jobs"))
    assert root.get(f"/v1/jobs/{waiting}").json()["status"] == "cancelled"
    assert root.get(f"/v1/jobs/{running}").json()["cancel_requested"] is True
    assert own_api.client("bob").get(f"/v1/jobs/{ended}").json()["owner"] == "ann"
    assert root.get(f"/v1/datasets/{array['id']}").status_code == 404
    assert "ann" not in {user["name"] for user in root.get("/v1/users").json()["items"]}
    assert root.get("/v1/quotas/ann").status_code == 404


def test_the_name_is_free_again_once_the_last_job_is_gone(own_api: Api) -> None:
    root = own_api.client("root")
    own_api.submit()
    assert root.delete("/v1/users/ann").status_code == 200
    for refused in (root.post("/v1/tokens", json={"user": "ann"}), root.put("/v1/users/ann", json={"role": "user"})):
        assert refused.status_code == 409
        assert "was removed" in refused.json()["detail"]
    assert root.put(f"/v1/jobs/{own_api.submit('bob')}/sharing", json={"users": ["ann"]}).status_code == 422
    assert own_api.database.run(forget_removed) == 0
    own_api.database.run(lambda connection: connection.execute(text("delete from jobs where owner_id = 1")))
    assert own_api.database.run(forget_removed) == 1
    count = select(func.count()).select_from(users.outerjoin(jobs, jobs.c.owner_id == users.c.id))
    assert own_api.database.run(lambda connection: connection.execute(count).scalar_one()) == 2
    assert own_api.database.run(create_token, "ann").startswith("wf_")


def test_nobody_removes_themselves_or_a_stranger(own_api: Api) -> None:
    root = own_api.client("root")
    assert root.delete("/v1/users/root").status_code == 409
    for method, path in (("DELETE", "/v1/users/nobody"), ("GET", "/v1/users/nobody/removal")):
        assert root.request(method, path).status_code == 404
    assert own_api.client("bob").delete("/v1/users/ann").status_code == 403
