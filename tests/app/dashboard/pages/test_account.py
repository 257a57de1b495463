import re
from collections.abc import Callable

import pytest

from tests.support.api import Api
from tests.support.window import Window
from warpfold.app.auth.access_tokens import issue_token, list_tokens
from warpfold.app.auth.scopes import Scope

Windows = Callable[[str | None], Window]


def test_the_cookie_is_strict_and_expires(window: Windows, api: Api) -> None:
    answer = window(None).post("/sign-in", data={"token": api.tokens["ann"]})
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Max-Age=604800" in cookie
    assert "Secure" not in cookie  # plain HTTP here; see below


def test_over_https_the_cookie_is_secure(window: Windows, api: Api) -> None:
    # What uvicorn makes of a proxy on the same machine, as `docker-compose.yml` has one.
    headers = {"X-Forwarded-Proto": "https"}
    answer = window(None).post("/sign-in", data={"token": api.tokens["ann"]}, headers=headers)
    assert "Secure" in answer.headers["Set-Cookie"]


@pytest.mark.parametrize("token", ["", "wf_wrong", "x" * 100])
def test_a_wrong_token_is_told_and_opens_nothing(window: Windows, token: str) -> None:
    answer = window(None).post("/sign-in", data={"token": token})
    assert answer.status_code == 401
    assert "Set-Cookie" not in answer.headers
    assert 'aria-invalid="true"' in answer.text


@pytest.mark.parametrize(
    ("after", "goes_to"),
    [
        ("/jobs?status=failed", "/jobs?status=failed"),
        ("https://example.org/", "/"),
        ("//example.org/", "/"),
        ("/\\example.org", "/"),
        ("jobs", "/"),
        ("/jobs\r\nX: y", "/"),
    ],
)
def test_nobody_is_sent_elsewhere_after_signing_in(window: Windows, api: Api, after: str, goes_to: str) -> None:
    answer = window(None).post("/sign-in", data={"token": api.tokens["ann"], "next": after})
    assert answer.headers["Location"] == goes_to


def test_without_a_session_a_page_sends_to_the_sign_in_and_back(window: Windows) -> None:
    nobody = window(None)
    answer = nobody.get("/jobs?status=failed")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/sign-in?next=%2Fjobs%3Fstatus%3Dfailed")
    part = nobody.get("/live/jobs", headers={"HX-Request": "true", "HX-Current-URL": "http://x/jobs?kind=reduce"})
    assert (part.status_code, part.headers["HX-Redirect"]) == (401, "/sign-in?next=%2Fjobs%3Fkind%3Dreduce")
    form = nobody.post("/jobs/new", headers={"Referer": "http://here/jobs/new?kind=benchmark"})
    assert form.headers["Location"] == "/sign-in?next=%2Fjobs%2Fnew%3Fkind%3Dbenchmark"
    unnamed = nobody.post("/jobs/new")
    assert unnamed.headers["Location"] == "/sign-in"


def test_the_api_asks_a_browser_to_sign_in_and_tells_a_program_that_its_token_is_wrong(window: Windows) -> None:
    nobody, page = window(None), {"Accept": "text/html,*/*;q=0.8"}
    assert nobody.get("/v1/jobs", headers=page).headers["Location"] == "/sign-in?next=%2Fv1%2Fjobs"
    for headers in ({}, {**page, "Authorization": "Bearer wf_wrong"}):
        answer = nobody.get("/v1/jobs", headers=headers)
        assert (answer.status_code, answer.headers["Content-Type"]) == (401, "application/problem+json")


def test_signing_out_ends_the_session_itself(window: Windows) -> None:
    ann = window("ann")
    cookie = ann.cookies["warpfold_session"]
    assert ann.post("/sign-out").status_code == 303
    ann.cookies.set("warpfold_session", cookie)
    assert ann.get("/jobs").status_code == 303


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://example.org"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
    ],
)
@pytest.mark.parametrize("path", ["/sign-out", "/sign-in", "/jobs/new", "/admin/keys"])
def test_a_form_of_another_site_is_refused(window: Windows, path: str, headers: dict[str, str]) -> None:
    root = window("root")
    assert root.post(path, headers=headers).status_code == 403
    assert root.get("/jobs").status_code == 200


def test_a_form_that_says_nothing_of_its_origin_is_refused(window: Windows) -> None:
    ann = window("ann")
    del ann.headers["Origin"]
    assert ann.post("/sign-out").status_code == 403
    assert ann.post("/sign-out", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 303


def test_a_key_is_made_rotated_and_removed(window: Windows, api: Api) -> None:
    ann = window("ann")
    answer = ann.post("/account/keys", data={"label": "sensor", "days": "3", "scopes": ["submit"]})
    assert (answer.status_code, answer.headers["Cache-Control"]) == (200, "no-store")
    [secret] = re.findall(r"wf_[\w-]{40,}", answer.text)
    api.tokens["sensor"] = secret
    assert api.client("sensor").get("/v1/jobs").status_code == 403
    [key] = [token for token in api.database.run(list_tokens) if token.label == "sensor"]
    assert (key.scopes, key.made_by) == ({Scope.SUBMIT}, "ann")
    rotated = ann.post(f"/account/keys/{key.id}/rotate", data={"both_hold_hours": "0"})
    [new] = re.findall(r"wf_[\w-]{40,}", rotated.text)
    assert new != secret
    assert ann.post(f"/account/keys/{key.id}/remove").status_code == 303
    assert ann.post(f"/account/keys/{key.id}/rotate").status_code == 404
    assert window("bob").post(f"/account/keys/{key.id}/remove").status_code == 404


def test_a_key_that_cannot_be_made_is_told_and_what_was_typed_stays(window: Windows) -> None:
    for fields in ({"scopes": ["admin"]}, {"days": "soon", "scopes": ["read"]}, {}):
        answer = window("ann").post("/account/keys", data={"label": "what I typed", **fields})
        assert answer.status_code == 422
        assert 'role="alert"' in answer.text
        assert "what I typed" in answer.text


def test_a_session_may_do_what_its_key_may(window: Windows, api: Api) -> None:
    nobody = window(None)
    api.tokens["reads"] = api.database.run(issue_token, "ann", scopes=[Scope.READ]).token
    assert nobody.post("/sign-in", data={"token": api.tokens["reads"]}).status_code == 303
    assert nobody.get("/jobs").status_code == 200
    assert "New job</a>" not in nobody.get("/jobs").text
    assert nobody.get("/jobs/new").status_code == 403
    assert nobody.post("/account/keys", data={"scopes": ["read"]}).status_code == 403
