import httpx
import pytest

from tests.support.api import NO_TLS, THREE_VALUES, Api, until_refused
from warpfold.app.auth.access_tokens import Role, create_token, list_tokens, revoke_token

OPEN = {"/healthz", "/readyz"}


def routes(api: Api) -> list[tuple[str, str]]:
    document = api.client().get("/openapi.json").json()
    nobody = "00000000-0000-4000-8000-000000000000"
    routes = [(method, path) for path, methods in document["paths"].items() for method in methods]
    return [(method, path.replace("{job_id}", nobody)) for method, path in routes]


def test_no_route_but_health_answers_without_a_token(api: Api) -> None:
    for method, path in [*routes(api), ("get", "/openapi.json")]:
        response = httpx.request(method, api.url + path, verify=NO_TLS)
        if path in OPEN:
            assert response.status_code != 401, path
        else:
            assert response.status_code == 401, path
            assert response.headers["Content-Type"] == "application/problem+json"
            assert response.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer  x", "Basic YTpi", "wf_x", "Bearer wf_wrong", "Bearer wrong", "Bearer wf_é"]
)
def test_a_wrong_token_is_401(refusing: httpx.Client, header: str) -> None:
    response = refusing.get("/v1/jobs", headers={b"Authorization": header.encode("latin-1")})
    assert response.status_code == 401


def test_the_scheme_is_read_without_regard_to_case(api: Api) -> None:
    response = httpx.get(f"{api.url}/v1/jobs", headers={"Authorization": f"bearer {api.tokens['ann']}"})
    assert response.status_code == 200


@pytest.mark.usefixtures("remembered")
def test_a_revoked_token_is_refused_at_once_though_it_was_remembered(own_api: Api) -> None:
    http = own_api.client()
    assert http.get("/v1/jobs").status_code == 200
    [token] = [token for token in own_api.database.run(list_tokens) if token.user == "ann"]
    own_api.database.run(revoke_token, token.id)
    until_refused(lambda: http.get("/v1/jobs"))
    assert own_api.client("bob").get("/v1/jobs").status_code == 200


@pytest.mark.parametrize("body", [b'{"kind": "nonsense"}', b"{", b""])
def test_a_token_is_checked_before_the_body(refusing: httpx.Client, body: bytes) -> None:
    response = refusing.post("/v1/jobs", content=body, headers={"Authorization": "Bearer wf_wrong"})
    assert response.status_code == 401


OWN_ACCESS = "/v1/users/me/"
NOBODY = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def viewer(api: Api) -> httpx.Client:
    """The HTTP client of a viewer."""
    if "vic" not in api.tokens:
        api.tokens["vic"] = api.database.run(create_token, "vic", Role.VIEWER)
    return api.client("vic")


def writing_routes(api: Api) -> list[tuple[str, str]]:
    document = api.client().get("/openapi.json").json()
    return [
        (method, path.replace("{job_id}", NOBODY))
        for path, methods in document["paths"].items()
        for method in methods
        if method not in ("get", "head") and not path.startswith(OWN_ACCESS)
    ]


def test_a_viewer_reads_everything_that_a_user_reads(api: Api, viewer: httpx.Client) -> None:
    job_id = api.submit()
    for path in ("/v1/jobs", f"/v1/jobs/{job_id}", "/v1/results", "/v1/ops", "/v1/workers", "/v1/quotas", "/metrics"):
        assert viewer.get(path).status_code == 200, path


def test_a_viewer_can_change_nothing_whichever_route_it_is(api: Api, viewer: httpx.Client) -> None:
    routes = writing_routes(api)
    assert ("post", "/v1/jobs") in routes
    for method, path in routes:
        response = viewer.request(method, path)
        assert response.status_code == 403, (method, path)
        assert response.headers["Content-Type"] == "application/problem+json"
        assert response.json()["type"] == "urn:warpfold:forbidden"


def test_a_viewers_submission_is_refused_and_stores_nothing(api: Api, viewer: httpx.Client) -> None:
    assert viewer.post("/v1/jobs", json=THREE_VALUES).status_code == 403
    assert viewer.get("/v1/jobs").json()["items"] == []


def test_a_viewer_cannot_cancel(api: Api, viewer: httpx.Client) -> None:
    job_id = api.submit()
    assert viewer.post(f"/v1/jobs/{job_id}/cancel").status_code == 403
    assert viewer.get(f"/v1/jobs/{job_id}").json()["status"] == "queued"


@pytest.mark.parametrize("user", ["ann", "vic"])
def test_who_is_no_admin_does_not_even_see_users_and_tokens(api: Api, viewer: httpx.Client, user: str) -> None:
    for path in ("/v1/users", "/v1/tokens", "/v1/quotas/root"):
        assert api.client(user).get(path).status_code == 403, path


def test_a_user_cannot_administer(api: Api) -> None:
    http = api.client("ann")
    assert http.put("/v1/users/ann", json={"role": "admin"}).status_code == 403
    assert http.post("/v1/tokens", json={"user": "root"}).status_code == 403
    assert http.put("/v1/quotas/ann", json={"queued": 10**6}).status_code == 403
    assert http.delete("/v1/tokens/1").status_code == 403
    assert http.post("/v1/workers/gpu1:cpu/drain").status_code == 403
    assert http.get("/v1/users/me").json()["role"] == "user"
