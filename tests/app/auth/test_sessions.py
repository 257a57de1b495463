from datetime import timedelta

import httpx
import pytest
from sqlalchemy import func, select, update

from tests.support.api import NO_TLS, Api, until_refused
from warpfold.app.auth import sessions
from warpfold.app.auth.access import SESSION_COOKIE
from warpfold.app.auth.access_tokens import list_tokens, revoke_token
from warpfold.app.tables.users import sessions as table


def opened(api: Api, user: str = "ann", days: float = 1.0) -> str:
    secret = api.database.run(sessions.open_session, api.tokens[user], days)
    assert secret is not None
    return secret


def asking(api: Api, secret: str, method: str = "GET", path: str = "/v1/jobs") -> httpx.Response:
    with httpx.Client(base_url=api.url, cookies={SESSION_COOKIE: secret}, verify=NO_TLS) as client:
        return client.request(method, path, json=None if method == "GET" else {})


def test_a_session_reads_the_api_as_its_user(api: Api) -> None:
    assert asking(api, opened(api)).status_code == 200


@pytest.mark.parametrize("token", ["", "wf_unknown", "ws_unknown"])
def test_an_unknown_token_opens_no_session(api: Api, token: str) -> None:
    assert api.database.run(sessions.open_session, token, 1.0) is None


def test_a_session_changes_nothing_through_the_api(api: Api) -> None:
    job = api.submit()
    assert asking(api, opened(api), "POST", f"/v1/jobs/{job}/cancel").status_code == 401
    assert api.client().get(f"/v1/jobs/{job}").json()["status"] == "queued"


def test_a_session_is_no_token_and_a_token_no_session(api: Api) -> None:
    secret = opened(api)
    assert asking(api, api.tokens["ann"]).status_code == 401
    assert api.client(Authorization=f"Bearer {secret}").get("/v1/jobs").status_code == 401


@pytest.mark.usefixtures("remembered")
def test_a_closed_session_is_refused_at_once_though_it_was_remembered(api: Api) -> None:
    secret = opened(api)
    assert asking(api, secret).status_code == 200
    api.database.run(sessions.close_session, secret)
    until_refused(lambda: asking(api, secret))


@pytest.mark.usefixtures("remembered")
def test_a_session_ends_with_its_token(own_api: Api) -> None:
    secret = opened(own_api)
    assert asking(own_api, secret).status_code == 200
    [token] = [token for token in own_api.database.run(list_tokens) if token.user == "ann"]
    own_api.database.run(revoke_token, token.id)
    until_refused(lambda: asking(own_api, secret))


def test_an_expired_session_is_refused_and_cleared_away_at_the_next_sign_in(own_api: Api) -> None:
    secret = opened(own_api)
    past = update(table).values(expires_at=func.now() - timedelta(seconds=1))
    own_api.database.run(lambda connection: connection.execute(past))
    assert asking(own_api, secret).status_code == 401
    opened(own_api)
    kept = own_api.database.run(lambda connection: connection.execute(select(func.count()).select_from(table)).scalar())
    assert kept == 1


def test_only_a_hash_of_a_session_is_kept(own_api: Api) -> None:
    secret = opened(own_api)
    [row] = own_api.database.run(lambda connection: connection.execute(select(table)).all())
    assert secret.encode() not in row.hash
    assert len(row.hash) == 32
