import httpx
import pytest

from tests.support.api import THREE_VALUES, WORKER, Api, until_refused
from warpfold.app.jobs import workers


@pytest.fixture
def root(own_api: Api) -> httpx.Client:
    return own_api.client("root")


def with_token(api: Api, token: str) -> httpx.Client:
    api.tokens["new"] = token
    return api.client("new")


@pytest.mark.usefixtures("remembered")
def test_a_token_is_made_shown_once_used_and_revoked(own_api: Api, root: httpx.Client) -> None:
    made = root.post("/v1/tokens", json={"user": "ada", "role": "viewer", "label": "hall"})
    assert (made.status_code, made.headers["Cache-Control"]) == (201, "no-store")
    token = made.json()["token"]
    assert with_token(own_api, token).get("/v1/users/me").json()["role"] == "viewer"
    listed = root.get("/v1/tokens")
    assert token not in listed.text
    [info] = [token for token in listed.json()["items"] if token["user"] == "ada"]
    assert (info["id"], info["label"], info["hint"]) == (made.json()["id"], "hall", token[:9])
    assert root.delete(f"/v1/tokens/{info['id']}").status_code == 204
    until_refused(lambda: with_token(own_api, token).get("/v1/users/me"))
    assert root.delete(f"/v1/tokens/{info['id']}").status_code == 404


@pytest.mark.usefixtures("remembered")
def test_a_role_changes_at_once(own_api: Api, root: httpx.Client) -> None:
    ann = own_api.client("ann")
    assert ann.post("/v1/jobs", json=THREE_VALUES).status_code == 202
    assert root.put("/v1/users/ann", json={"role": "viewer"}).json()["role"] == "viewer"
    until_refused(lambda: ann.post("/v1/jobs", json=THREE_VALUES), 403)
    roles = {user["name"]: (user["role"], user["tokens"]) for user in root.get("/v1/users").json()["items"]}
    assert roles == {"ann": ("viewer", 1), "bob": ("user", 1), "root": ("admin", 1)}


def test_a_user_may_be_made_before_the_first_token(root: httpx.Client) -> None:
    assert root.put("/v1/users/eve", json={"role": "user"}).json()["tokens"] == 0


def test_an_admin_cannot_lock_themselves_out(root: httpx.Client) -> None:
    refused = root.put("/v1/users/root", json={"role": "user"})
    assert refused.status_code == 409
    assert root.get("/v1/users").status_code == 200


def test_a_token_does_not_change_a_role(root: httpx.Client) -> None:
    refused = root.post("/v1/tokens", json={"user": "ann", "role": "admin"})
    assert refused.status_code == 409
    assert "has the role user" in refused.json()["detail"]


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v1/tokens", {"user": ""}, "user"),
        ("/v1/tokens", {"user": "a\nb"}, "user"),
        ("/v1/tokens", {"user": "x" * 65}, "user"),
        ("/v1/tokens", {"user": "a/b"}, "user"),
        ("/v1/tokens", {"user": "ann "}, "user"),
        ("/v1/tokens", {"user": "a\u202eb"}, "user"),
        ("/v1/tokens", {"user": "ann", "label": "a\u200bb"}, "label"),
        ("/v1/users/%2e%2e", {"role": "user"}, "name"),
        ("/v1/tokens", {"user": "ada", "role": "king"}, "role"),
        ("/v1/tokens", {"user": "ada", "colour": "red"}, "colour"),
        ("/v1/quotas/ann", {"queued": -1}, "queued"),
        ("/v1/quotas/ann", {"running": "many"}, "running"),
        ("/v1/users/ann", {"role": "king"}, "role"),
    ],
)
def test_what_cannot_be_is_422_and_named(root: httpx.Client, path: str, body: dict[str, object], field: str) -> None:
    response = root.request("POST" if path == "/v1/tokens" else "PUT", path, json=body)
    assert response.status_code == 422
    assert [error["field"] for error in response.json()["errors"]] == [field]


def test_quotas_are_set_for_a_user_and_otherwise_follow_the_settings(own_api: Api, root: httpx.Client) -> None:
    own_api.submit("ann")
    before = root.get("/v1/quotas/ann").json()
    assert before["own"] == {"running": None, "queued": None, "gpu_seconds_per_day": None, "high_per_hour": None}
    assert before["limits"] == {
        "running": None,
        "queued": own_api.settings.max_queued_per_user,
        "gpu_seconds_per_day": None,
        "high_per_hour": 5,
    }
    assert before["used"] == {"running": 0, "queued": 1, "gpu_seconds_today": 0.0}
    set_ = root.put("/v1/quotas/ann", json={"running": 2, "gpu_seconds_per_day": 3600})
    assert set_.json()["limits"] == {
        "running": 2,
        "queued": own_api.settings.max_queued_per_user,
        "gpu_seconds_per_day": 3600,
        "high_per_hour": 5,
    }
    assert root.put("/v1/quotas/ann", json={}).json()["limits"] == before["limits"]
    assert root.put("/v1/quotas/nobody", json={}).status_code == 404
    assert root.get("/v1/quotas/nobody").status_code == 404


def test_users_see_their_own_quotas_only(own_api: Api, root: httpx.Client) -> None:
    assert [quota["user"] for quota in own_api.client("ann").get("/v1/quotas").json()["items"]] == ["ann"]
    assert own_api.client("ann").get("/v1/quotas/ann").status_code == 200
    assert [quota["user"] for quota in root.get("/v1/quotas").json()["items"]] == ["ann", "bob", "root"]


def state(http: httpx.Client) -> str:
    [worker] = http.get("/v1/workers").json()["items"]
    return str(worker["state"])


def test_a_drained_worker_is_shown_as_such_until_it_is_resumed(own_api: Api, root: httpx.Client) -> None:
    own_api.database.run(workers.report, WORKER, "idle", None, 60.0)
    assert root.post(f"/v1/workers/{WORKER.id}/drain").status_code == 204
    assert state(root) == "drained"
    own_api.database.run(workers.report, WORKER, "running", None, 60.0)  # its heartbeat changes nothing of it
    assert state(root) == "draining"
    assert root.post(f"/v1/workers/{WORKER.id}/drain").status_code == 204  # again is fine
    assert root.get("/readyz").status_code == 503  # nobody would take a job
    assert root.post(f"/v1/workers/{WORKER.id}/resume").status_code == 204
    assert state(root) == "running"


def test_a_worker_that_never_reported_itself_is_404(root: httpx.Client) -> None:
    assert root.post("/v1/workers/nowhere:cpu/drain").status_code == 404
    assert root.post("/v1/workers/nowhere:cpu/resume").status_code == 404
