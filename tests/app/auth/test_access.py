import threading
from datetime import timedelta

import httpx
import psycopg
import pytest

from tests.support.api import NO_TLS, THREE_VALUES, Api, until_refused
from tests.support.sse import events
from tests.support.waiting import until
from warpfold.app.auth import sessions
from warpfold.app.auth.access import SESSION_COOKIE
from warpfold.app.auth.access_tokens import Role, create_token, hash_of, list_tokens, revoke_token, rotate_token


def as_bearer(api: Api, token: str) -> httpx.Client:
    api.tokens["one"] = token
    return api.client("one")


def signed_in(api: Api, token: str, before: str | None = None) -> str:
    secret = api.database.run(sessions.open_session, token, 1.0, before)
    assert secret is not None
    return secret


def with_session(api: Api, secret: str) -> int:
    with httpx.Client(base_url=api.url, cookies={SESSION_COOKIE: secret}, verify=NO_TLS) as client:
        return client.get("/v1/ops").status_code


@pytest.mark.usefixtures("remembered")
def test_a_rotated_token_is_useless_at_once_and_the_new_one_is_good(own_api: Api) -> None:
    old = own_api.database.run(create_token, "cyd", None, "laptop", 30.0)
    http = as_bearer(own_api, old)
    session = signed_in(own_api, old)
    answer = http.post("/v1/users/me/tokens/rotate")
    assert answer.status_code == 201
    assert answer.headers["Cache-Control"] == "no-store"
    made = answer.json()
    assert (made["user"], made["label"]) == ("cyd", "laptop")
    assert http.get("/v1/ops").status_code == 401
    assert with_session(own_api, session) == 401
    new = as_bearer(own_api, made["token"])
    [listed] = new.get("/v1/users/me/tokens").json()["items"]
    assert (listed["id"], listed["hint"], listed["revoked_at"]) == (made["id"], made["token"][:9], None)
    assert listed["expires_at"] > listed["created_at"]
    assert listed["rotated_at"] == listed["old_secret_until"]
    assert "token" not in listed


def test_both_secrets_hold_for_a_while_if_that_is_asked_for(own_api: Api) -> None:
    old = own_api.database.run(create_token, "cyd")
    session = signed_in(own_api, old)
    http = as_bearer(own_api, old)
    [token] = http.get("/v1/users/me/tokens").json()["items"]
    path = f"/v1/users/me/tokens/{token['id']}/rotate"
    assert http.post(path, params={"both_hold_hours": -1}).status_code == 422
    new = http.post(path, params={"both_hold_hours": 2}).json()["token"]
    assert [as_bearer(own_api, each).get("/v1/ops").status_code for each in (old, new)] == [200, 200]
    late = signed_in(own_api, old)
    with psycopg.connect(own_api.settings.database_url, autocommit=True) as connection:
        ends = connection.execute("select max(expires_at) < now() + interval '2 hours' from sessions").fetchone()
        assert ends == (True,)
        connection.execute("update tokens set old_until = now()")
        connection.execute("update sessions set expires_at = now()")
        connection.execute("notify warpfold_access")
    until_refused(lambda: as_bearer(own_api, old).get("/v1/ops"))
    assert as_bearer(own_api, new).get("/v1/ops").status_code == 200
    assert [with_session(own_api, each) for each in (session, late)] == [401, 401]
    assert own_api.database.run(rotate_token, hash_of(old)) is None


def test_a_use_is_noted_once_a_minute(own_api: Api) -> None:
    token = own_api.database.run(create_token, "cyd")
    http = as_bearer(own_api, token)
    noted = []
    for _ in range(2):
        noted.append(http.get("/v1/users/me/tokens").json()["items"][0]["last_used_at"])
    assert noted[0] is not None
    assert noted[0] == noted[1]
    with psycopg.connect(own_api.settings.database_url, autocommit=True) as connection:
        connection.execute("update tokens set last_used_at = last_used_at - interval '61 seconds'")
        connection.execute("notify warpfold_access")
    until(lambda: http.get("/v1/users/me/tokens").json()["items"][0]["last_used_at"] > noted[0])


def test_a_key_makes_keys_that_may_and_last_no_more_than_itself(own_api: Api) -> None:
    http = as_bearer(own_api, own_api.database.run(create_token, "cyd", None, "", 7.0))
    made = http.post("/v1/users/me/tokens", json={"label": "sensor", "scopes": ["submit"]}).json()
    assert (made["scopes"], made["made_by"], made["label"]) == (["submit"], "cyd", "sensor")
    assert made["expires_at"] is not None
    for field, value in (("scopes", ["admin"]), ("scopes", []), ("scopes", ["all"]), ("expires_in_days", 8)):
        refused = http.post("/v1/users/me/tokens", json={field: value})
        assert (refused.status_code, refused.json()["errors"][0]["field"].partition(".")[0]) == (422, field)
    sensor = as_bearer(own_api, made["token"])
    assert sensor.post("/v1/jobs", json=dict(THREE_VALUES)).status_code == 202
    for path in ("/v1/jobs", "/v1/users/me/tokens"):
        assert "scope read" in sensor.get(path).json()["detail"]
    assert sensor.post("/v1/users/me/tokens", json={}).status_code == 403
    assert sensor.get("/v1/users/me").json()["name"] == "cyd"


def test_a_key_follows_the_role_of_its_user_down(own_api: Api) -> None:
    http = as_bearer(own_api, own_api.database.run(create_token, "cyd"))
    made = http.post("/v1/users/me/tokens", json={"scopes": ["submit", "read"]}).json()
    assert own_api.client("root").put("/v1/users/cyd", json={"role": "viewer"}).is_success
    own = as_bearer(own_api, made["token"])
    until_refused(lambda: own.post("/v1/jobs", json=dict(THREE_VALUES)), 403)
    assert {tuple(token["scopes"]) for token in http.get("/v1/users/me/tokens").json()["items"]} == {("read",)}


def test_a_viewer_may_rotate_and_sign_out_and_still_changes_nothing_else(own_api: Api) -> None:
    http = as_bearer(own_api, own_api.database.run(create_token, "vic", Role.VIEWER))
    assert http.delete("/v1/users/me/sessions").status_code == 204
    made = http.post("/v1/users/me/tokens/rotate")
    assert made.status_code == 201
    new = as_bearer(own_api, made.json()["token"])
    assert new.post("/v1/jobs", json=dict(THREE_VALUES)).status_code == 403


def test_an_expired_token_opens_nothing(own_api: Api) -> None:
    token = own_api.database.run(create_token, "cyd", None, "", 1e-9)
    assert as_bearer(own_api, token).get("/v1/ops").status_code == 401
    assert own_api.database.run(sessions.open_session, token, 1.0) is None
    assert own_api.database.run(rotate_token, hash_of(token)) is None


def test_a_session_ends_when_its_token_expires(own_api: Api) -> None:
    token = own_api.database.run(create_token, "cyd", None, "", 1.0)
    session = signed_in(own_api, token)
    with psycopg.connect(own_api.settings.database_url, autocommit=True) as connection:
        connection.execute("update tokens set expires_at = now() where expires_at is not null")
    assert with_session(own_api, session) == 401


def test_an_admin_makes_a_token_that_expires(api: Api) -> None:
    root = api.client("root")
    made = root.post("/v1/tokens", json={"user": "dee", "expires_in_days": 2}).json()
    [token] = [token for token in api.database.run(list_tokens) if token.id == made["id"]]
    assert token.expires_at is not None
    assert timedelta(days=2) - timedelta(minutes=1) < token.expires_at - token.created_at <= timedelta(days=2)
    refused = root.post("/v1/tokens", json={"user": "dee", "expires_in_days": 0})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "expires_in_days")


def test_own_tokens_are_revoked_and_others_are_not(own_api: Api) -> None:
    token = own_api.database.run(create_token, "cyd")
    http = as_bearer(own_api, token)
    [other] = [token for token in own_api.database.run(list_tokens) if token.user == "ann"]
    [own] = http.get("/v1/users/me/tokens").json()["items"]
    assert http.delete(f"/v1/users/me/tokens/{other.id}").status_code == 404
    assert own_api.client("ann").get("/v1/ops").status_code == 200
    assert http.delete(f"/v1/users/me/tokens/{own['id']}").status_code == 204
    until_refused(lambda: http.get("/v1/ops"))


def test_signing_in_again_ends_the_session_that_the_browser_had(own_api: Api) -> None:
    first = signed_in(own_api, own_api.tokens["ann"])
    other = signed_in(own_api, own_api.tokens["ann"])
    browser = {"token": own_api.tokens["ann"]}
    with httpx.Client(base_url=own_api.url, cookies={SESSION_COOKIE: first}) as client:
        answer = client.post("/sign-in", data=browser, headers={"Sec-Fetch-Site": "same-origin"})
        assert answer.status_code == 303
    second = answer.cookies[SESSION_COOKIE]
    assert [with_session(own_api, cookie) for cookie in (first, second, other)] == [401, 200, 200]


def test_signing_out_everywhere_ends_all_sessions_of_the_user_alone(own_api: Api) -> None:
    more = own_api.database.run(create_token, "ann")
    mine = [signed_in(own_api, token) for token in (own_api.tokens["ann"], more)]
    bobs = signed_in(own_api, own_api.tokens["bob"])
    with httpx.Client(base_url=own_api.url, cookies={SESSION_COOKIE: mine[0]}) as client:
        form = {"everywhere": "true"}
        assert client.post("/sign-out", data=form, headers={"Sec-Fetch-Site": "same-origin"}).status_code == 303
    assert [with_session(own_api, cookie) for cookie in (*mine, bobs)] == [401, 401, 200]


@pytest.mark.usefixtures("remembered", "without_timer")
def test_a_stream_ends_with_its_token(own_api: Api) -> None:
    token = own_api.database.run(create_token, "cyd")
    job = own_api.submit()
    http = as_bearer(own_api, token)
    with http.stream("GET", f"/v1/jobs/{job}/events") as response:
        came = events(response)
        assert next(came).event == "submitted"
        own_api.until_watched(job)
        assert own_api.database.run(rotate_token, hash_of(token)) is not None
        assert list(came) == []


@pytest.mark.usefixtures("remembered")
def test_a_held_request_ends_with_its_token(own_api: Api) -> None:
    token = own_api.database.run(create_token, "cyd")
    [revoked] = [token for token in own_api.database.run(list_tokens) if token.user == "cyd"]
    job = own_api.submit()
    http = as_bearer(own_api, token)

    def revoking() -> None:
        own_api.until_watched(job)
        own_api.database.run(revoke_token, revoked.id)

    thread = threading.Thread(target=revoking)
    thread.start()
    assert http.get(f"/v1/jobs/{job}", headers={"Prefer": "wait=60"}).status_code == 401
    thread.join()
