import httpx
import pytest

from tests.support.api import Api

PATHS = ["/healthz", "/v1/jobs", "/v1/ops", "/openapi.json", "/sign-in"]


@pytest.mark.parametrize("path", PATHS)
def test_head_is_get_without_its_body(http: httpx.Client, path: str) -> None:
    got, asked = http.get(path), http.head(path)
    assert (asked.status_code, asked.content) == (got.status_code, b"") == (200, b"")
    for name in ("Content-Type", "Content-Length", "Cache-Control"):
        assert asked.headers.get(name) == got.headers.get(name)


def test_head_is_as_conditional_as_get(api: Api, http: httpx.Client) -> None:
    path = f"/v1/jobs/{api.submit()}"
    etag = http.head(path).headers["ETag"]
    assert http.head(path, headers={"If-None-Match": etag}).status_code == 304


def test_head_of_a_stream_ends(api: Api, http: httpx.Client) -> None:
    asked = http.head(f"/v1/jobs/{api.submit()}/events")
    assert asked.status_code == 200
    assert asked.headers["Content-Type"].startswith("text/event-stream")


def test_head_needs_a_token_where_get_does(api: Api) -> None:
    assert httpx.head(f"{api.url}/v1/jobs").status_code == 401


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/v1/jobs", "GET, HEAD, OPTIONS, POST"),
        ("/v1/states/merge", "OPTIONS, POST"),
        ("/healthz", "GET, HEAD, OPTIONS"),
        ("/sign-out", "OPTIONS, POST"),
    ],
)
def test_options_says_which_methods_a_path_takes(api: Api, path: str, methods: str) -> None:
    answer = httpx.options(f"{api.url}{path}")
    assert (answer.status_code, answer.headers["Allow"]) == (204, methods)


def test_options_of_what_is_not_there_is_404(api: Api) -> None:
    assert httpx.options(f"{api.url}/v2").status_code == 404


@pytest.mark.parametrize("path", ["/healthz", "/v1/jobs", "/v1/users/me", "/metrics"])
def test_no_answer_is_guessed_at_or_kept(http: httpx.Client, path: str) -> None:
    headers = http.get(path).headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "private, no-cache"


def test_a_problem_is_kept_by_nobody(http: httpx.Client) -> None:
    headers = http.get("/v1/jobs/x").headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
