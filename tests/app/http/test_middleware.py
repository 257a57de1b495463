"""A request's id: taken, made, sent back, kept with the job."""

import asyncio
import re

import httpx
import psycopg
import pytest

from tests.support.api import THREE_VALUES, Api
from warpfold.app.config import Settings
from warpfold.app.main import create_app

MADE = re.compile(r"[0-9a-f]{32}")


def test_an_id_of_the_caller_comes_back(refusing: httpx.Client) -> None:
    answer = refusing.get("/healthz", headers={"X-Request-ID": "build-7.step:3"})
    assert answer.headers["X-Request-ID"] == "build-7.step:3"


@pytest.mark.parametrize("request_id", ["", "a" * 65, "two words", 'quote"', "new%0Aline", "\xe9"])
def test_any_other_is_replaced(refusing: httpx.Client, request_id: str) -> None:
    answer = refusing.get("/healthz", headers={b"X-Request-ID": request_id.encode("latin-1")})
    assert MADE.fullmatch(answer.headers["X-Request-ID"])


def test_refusals_have_one_too(refusing: httpx.Client) -> None:
    for answer in (refusing.get("/nowhere"), refusing.post("/v1/jobs", json={}), refusing.get("/v1/jobs?limit=0")):
        assert MADE.fullmatch(answer.headers["X-Request-ID"])


def test_the_job_keeps_the_id_of_the_request_that_brought_it(api: Api) -> None:
    answer = api.client().post("/v1/jobs", json=THREE_VALUES, headers={"X-Request-ID": "from-here"})
    with psycopg.connect(api.settings.database_url) as connection:
        row = connection.execute("select request_id, traceparent from jobs where id = %s", (answer.json()["id"],))
        assert row.fetchone() == ("from-here", None)  # nothing is traced here


def test_an_unforeseen_error_names_the_request_in_its_answer_and_in_the_log(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    app = create_app(settings)

    @app.get("/breaks")
    async def breaks() -> None:
        raise RuntimeError("secret detail")

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as http:
            return await http.get("/breaks", headers={"X-Request-ID": "what-broke"})

    answer = asyncio.run(ask())
    assert (answer.status_code, answer.headers["X-Request-ID"]) == (500, "what-broke")
    assert "under request what-broke" in answer.json()["detail"]
    assert "secret" not in answer.text
    logged = capsys.readouterr().out
    assert "request broke off" in logged
    assert "request_id=what-broke" in re.sub(r"\x1b\[[0-9;]*m", "", logged)
    assert "secret detail" in logged


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
