import httpx
import pytest

from tests.support.api import THREE_VALUES, Api
from warpfold.app.auth.access_tokens import Role, create_token

OWN_ACCESS = ("/v1/users/me/tokens/rotate", "/v1/users/me/tokens/{token_id}", "/v1/users/me/sessions")
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
        if method not in ("get", "head") and path not in OWN_ACCESS
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
