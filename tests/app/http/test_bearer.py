import httpx
import pytest

from tests.support.api import Api, until_refused
from warpfold.app.auth.access_tokens import list_tokens, revoke_token

OPEN = {"/healthz", "/readyz"}


def routes(api: Api) -> list[tuple[str, str]]:
    document = api.client().get("/openapi.json").json()
    nobody = "00000000-0000-4000-8000-000000000000"
    found = [(method, path) for path, methods in document["paths"].items() for method in methods]
    return [(method, path.replace("{job_id}", nobody)) for method, path in found]


def test_no_route_but_health_answers_without_a_token(api: Api) -> None:
    for method, path in [*routes(api), ("get", "/openapi.json")]:
        response = httpx.request(method, api.url + path)
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
    [token] = [one for one in own_api.database.run(list_tokens) if one.user == "ann"]
    own_api.database.run(revoke_token, token.id)
    until_refused(lambda: http.get("/v1/jobs"))
    assert own_api.client("bob").get("/v1/jobs").status_code == 200


@pytest.mark.parametrize("body", [b'{"kind": "nonsense"}', b"{", b""])
def test_a_token_is_checked_before_the_body(refusing: httpx.Client, body: bytes) -> None:
    response = refusing.post("/v1/jobs", content=body, headers={"Authorization": "Bearer wf_wrong"})
    assert response.status_code == 401
