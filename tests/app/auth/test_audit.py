from datetime import timedelta

import psycopg
import pytest
from sqlalchemy import text

from tests.support.api import WORKER, Api
from tests.support.private_things import npy
from tests.support.window import Window
from warpfold.app.auth import audit
from warpfold.app.auth.audit import Action, Deed
from warpfold.app.db import BlockingDatabase
from warpfold.app.jobs import workers


def logged(api: Api, **chosen: str) -> list[tuple[str | None, str, str, str | None]]:
    items = api.client("root").get("/v1/audit", params=chosen).json()["items"]
    return [(item["actor"], item["action"], item["thing"], item["owner"]) for item in items]


def test_each_change_has_one_entry_with_who_what_whose_and_from_where(own_api: Api) -> None:
    ann, root = own_api.client("ann"), own_api.client("root")
    own_api.database.run(workers.report, WORKER, "idle", None, 60.0)
    job, array = own_api.submit(), ann.post("/v1/datasets", content=npy([1.0, 2.0])).json()["id"]
    batch = ann.post("/v1/batches", json={"specs": [{"kind": "reduce", "source": {"type": "dataset", "id": array}}]})
    ann.put(f"/v1/jobs/{job}/sharing", json={"users": ["bob"]})
    for _ in range(2):  # the second one changes nothing
        root.post(f"/v1/jobs/{job}/cancel")
        ann.post(f"/v1/batches/{batch.json()['id']}/cancel")
    ann.delete(f"/v1/datasets/{array}")
    ann.post("/v1/webhooks/secret")
    key = str(ann.post("/v1/users/me/tokens", json={"label": "sensor", "scopes": ["read"]}).json()["id"])
    ann.post(f"/v1/users/me/tokens/{key}/rotate")
    root.delete(f"/v1/tokens/{key}")
    root.put("/v1/users/eve", json={"role": "viewer"})
    root.put("/v1/quotas/eve", json={"running": 2})
    root.delete("/v1/users/eve")
    root.post(f"/v1/workers/{WORKER.id}/drain")
    root.post(f"/v1/workers/{WORKER.id}/resume")
    assert logged(own_api)[::-1] == [
        ("ann", "share", job, "ann"),
        ("root", "cancel_job", job, "ann"),
        ("ann", "cancel_batch", batch.json()["id"], "ann"),
        ("ann", "delete_array", array, "ann"),
        ("ann", "make_secret", "", "ann"),
        ("ann", "make_key", key, "ann"),
        ("ann", "rotate_key", key, "ann"),
        ("root", "remove_key", key, "ann"),
        ("root", "set_role", "eve", "eve"),
        ("root", "set_quota", "eve", "eve"),
        ("root", "remove_user", "eve", "eve"),
        ("root", "drain", WORKER.id, None),
        ("root", "resume", WORKER.id, None),
    ]
    request = {"X-Request-ID": "the-cancel"}
    own_api.client("ann", **request).post(f"/v1/jobs/{own_api.submit()}/cancel")
    [latest] = root.get("/v1/audit", params={"limit": 1}).json()["items"]
    [own] = ann.get("/v1/users/me/tokens").json()["items"][:1]
    assert (latest["address"], latest["request_id"], latest["key_id"]) == ("127.0.0.1", "the-cancel", own["id"])


def test_what_was_refused_or_undone_has_no_entry(own_api: Api) -> None:
    job = own_api.submit()
    bob = own_api.client("bob")
    assert bob.post(f"/v1/jobs/{job}/cancel").status_code == 403
    assert own_api.client("root").delete("/v1/tokens/999999").status_code == 404

    def undone(connection: psycopg.Connection) -> None:
        audit.record(connection, Deed(None, Action.DRAIN))  # type: ignore[arg-type]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        own_api.database.run(undone)  # type: ignore[arg-type]
    assert logged(own_api) == []


def test_signing_in_and_out_is_logged_with_the_address_of_the_browser(own_api: Api) -> None:
    with Window(own_api) as browser:
        browser.headers["X-Forwarded-For"] = "192.0.2.7"
        browser.post("/sign-in", data={"token": "wf_wrong"})
        browser.sign_in("ann").post("/sign-out", data={"everywhere": "true"})
    assert logged(own_api) == [("ann", "sign_out", "", "ann"), ("ann", "sign_in", "", "ann")]
    [out, _] = own_api.client("root").get("/v1/audit").json()["items"]
    assert (out["address"], out["details"]) == ("192.0.2.7", {"everywhere": True})


def test_the_log_is_filtered_and_paged(own_api: Api) -> None:
    root = own_api.client("root")
    for name in ("eve", "fay", "gil"):
        root.put(f"/v1/users/{name}", json={"role": "viewer"})
    first = root.get("/v1/audit", params={"limit": 2}).json()
    second = root.get("/v1/audit", params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert [item["thing"] for item in first["items"] + second["items"]] == ["gil", "fay", "eve"]
    assert second["next_cursor"] is None
    assert [row[2] for row in logged(own_api, thing="fay", actor="root", action="set_role")] == ["fay"]
    assert logged(own_api, actor="ann") == logged(own_api, action="drain") == []
    moment = first["items"][0]["at"]
    assert [row[2] for row in logged(own_api, since=moment)] == ["gil"]
    assert [row[2] for row in logged(own_api, until=moment)] == ["fay", "eve"]
    for wrong in ({"action": "king"}, {"since": "soon"}, {"limit": "0"}, {"cursor": "x"}):
        assert root.get("/v1/audit", params=wrong).status_code == 422


def test_only_what_is_past_its_time_is_removed(database: BlockingDatabase) -> None:
    for _ in range(3):
        database.run(audit.record, Deed(None, Action.DRAIN, "w"))
    database.run(lambda connection: connection.execute(text("update audit_log set at = at - interval '2 days'")))
    database.run(audit.record, Deed(None, Action.RESUME, "w"))
    assert database.run(audit.remove_old, timedelta(days=1), 2) == 2
    assert database.run(audit.remove_old, timedelta(days=1), 2) == 1
    assert [entry.action for entry in database.run(audit.page, audit.Chosen(), 10, None)] == ["resume"]
