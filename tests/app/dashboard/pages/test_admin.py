import re
from collections.abc import Callable

import pytest

from tests.support.api import WORKER, Api
from tests.support.window import Window
from warpfold.app.auth.access_tokens import Role, create_token, list_tokens
from warpfold.app.auth.scopes import Scope

ALL = [scope.value for scope in Scope]
Windows = Callable[[str], Window]


@pytest.fixture
def root(window: Windows) -> Window:
    return window("root")


def test_a_token_is_shown_once_and_works(root: Window, api: Api) -> None:
    answer = root.post("/admin/keys", data={"user": "gil", "role": "viewer", "label": "the hall", "scopes": ALL})
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    [token] = re.findall(r"wf_[\w-]{40,}", answer.text)
    assert token not in root.get("/admin").text
    nobody = root.__class__(api)
    assert nobody.post("/sign-in", data={"token": token}).status_code == 303
    nobody.close()
    [made] = [token for token in api.database.run(list_tokens) if token.user == "gil" and token.revoked_at is None]
    assert (made.role, made.label) == (Role.VIEWER, "the hall")
    assert root.post(f"/admin/keys/{made.id}/remove").status_code == 303


@pytest.mark.parametrize(
    "fields", [{"user": ""}, {"user": "a/b"}, {"user": "root", "role": "viewer"}, {"user": "x", "role": "king"}]
)
def test_a_token_that_cannot_be_made_is_told_and_what_was_typed_stays(root: Window, fields: dict[str, str]) -> None:
    answer = root.post("/admin/keys", data={"label": "what I typed", "scopes": ALL, **fields})
    assert answer.status_code in (409, 422)
    assert 'role="alert"' in answer.text
    assert "what I typed" in answer.text


def test_limits_are_set_and_taken_back(root: Window, api: Api) -> None:
    fields = {"role": "user", "running": "2", "queued": "", "gpu_seconds_per_day": "3600", "high_per_hour": "7"}
    assert root.post("/admin/users/bob", data=fields).status_code == 303
    quota = api.client("root").get("/v1/quotas/bob").json()
    assert quota["own"] == {"running": 2, "queued": None, "gpu_seconds_per_day": 3600.0, "high_per_hour": 7}
    assert root.post("/admin/users/bob", data={"role": "user"}).status_code == 303
    quota = api.client("root").get("/v1/quotas/bob").json()
    assert quota["own"] == {"running": None, "queued": None, "gpu_seconds_per_day": None, "high_per_hour": None}


@pytest.mark.parametrize(
    "limits", [{"running": "-1"}, {"running": "some"}, {"role": "king"}, {"gpu_seconds_per_day": "nan"}]
)
def test_a_bad_limit_is_told_and_changes_nothing(root: Window, api: Api, limits: dict[str, str]) -> None:
    before = api.client("root").get("/v1/quotas/bob").json()
    answer = root.post("/admin/users/bob", data={"role": "user", **limits})
    assert answer.status_code == 422
    assert api.client("root").get("/v1/quotas/bob").json() == before


def test_admins_cannot_lock_themselves_out(root: Window) -> None:
    assert root.post("/admin/users/root", data={"role": "viewer"}).status_code == 409
    assert root.get("/admin").status_code == 200


def test_a_worker_is_drained_and_resumed(root: Window, api: Api) -> None:
    from warpfold.app.jobs import workers

    api.database.run(workers.report, WORKER, "idle", None, 60.0)
    assert root.post(f"/admin/workers/{WORKER.id}/drain").status_code == 303
    assert "drained" in root.get("/admin").text
    assert root.post(f"/admin/workers/{WORKER.id}/resume").status_code == 303
    assert "drained" not in root.get("/admin").text
    assert root.post("/admin/workers/nobody/drain").status_code == 404


def test_a_user_is_removed_after_the_page_has_said_what_happens(root: Window, api: Api) -> None:
    token = api.database.run(create_token, "rex")
    api.tokens["rex"] = token
    job = api.submit("rex")
    page = root.get("/admin/users/rex/removal")
    assert page.status_code == 200
    assert "<b>1</b> waiting or running job is cancelled" in page.text
    assert api.client("rex").get(f"/v1/jobs/{job}").json()["status"] == "queued"
    assert root.post("/admin/users/rex/remove").status_code == 303
    assert api.client("root").get(f"/v1/jobs/{job}").json()["status"] == "cancelled"
    assert "rex" not in re.findall(r"Save<span class=\"unseen\"> (\w+)<", root.get("/admin").text)
    assert root.get("/admin/users/rex/removal").status_code == 404
    themselves = "root"
    assert root.post(f"/admin/users/{themselves}/remove").status_code == 409


def test_a_key_of_anybody_is_rotated(root: Window, api: Api) -> None:
    api.database.run(create_token, "gil")
    made = [token for token in api.database.run(list_tokens) if token.user == "gil"][-1]
    answer = root.post(f"/admin/keys/{made.id}/rotate", data={"both_hold_hours": "1"})
    assert (answer.status_code, answer.headers["Cache-Control"]) == (200, "no-store")
    assert re.findall(r"wf_[\w-]{40,}", answer.text)
    assert root.post("/admin/keys/999999/rotate").status_code == 404


def test_the_audit_log_is_shown_filtered_and_paged(root: Window, api: Api) -> None:
    job = api.submit()
    api.client("ann").post(f"/v1/jobs/{job}/cancel")
    shown = root.get("/admin/audit", params={"action": "cancel_job", "actor": "ann", "thing": "", "limit": "1"})
    assert shown.status_code == 200
    assert f'href="/jobs/{job}"' in shown.text
    assert "Older entries" in root.get("/admin/audit", params={"limit": "1"}).text
    assert root.get("/admin/audit", params={"action": "king"}).status_code == 422
