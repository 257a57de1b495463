"""The table of routes and roles in docs/sharing.md, against a walk over every route of the OpenAPI document."""

import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.api import NO_TLS, THREE_VALUES, Api
from tests.support.private_things import ROLES, PrivateThings, made
from warpfold.app.auth.access import SESSION_COOKIE
from warpfold.app.auth.access_tokens import SCOPES, Role, create_token, issue_token
from warpfold.app.auth.scopes import Scope
from warpfold.app.auth.sessions import open_session

PAGE = Path(__file__).parents[3] / "docs/sharing.md"
_ROW = re.compile(r"^\| `([A-Z]+ /\S*)` \| (.+) \|$", re.MULTILINE)
OWN_THINGS = "/v1/users/me"
BODIES: Mapping[str, Any] = {
    "/v1/jobs": dict(THREE_VALUES),
    "/v1/batches": {"specs": [dict(THREE_VALUES)]},
    "/v1/uploads": None,
    "/v1/datasets/{dataset_id}": {"name": "renamed"},
}
LISTED: Mapping[str, tuple[Mapping[str, str], str]] = {
    "/v1/jobs": ({}, "job_id"),
    "/v1/batches": ({"owner": "ann"}, "batch_id"),
    "/v1/datasets": ({}, "dataset_id"),
    "/v1/results": ({}, "job_id"),
    "/v1/results/regressions": ({"worst": "1"}, ""),
}
"""The parameters with which a list is asked for, and which private thing it would have."""


def table() -> Mapping[str, Mapping[str, str]]:
    """What the page says of each route, by role."""
    columns = ("key", "owner", "admin", "named user", "other user", "viewer")
    lines = _ROW.findall(PAGE.read_text())
    rows = {route: dict(zip(columns, cells.split(" | "), strict=True)) for route, cells in lines}
    assert len(rows) > 40
    return rows


TABLE = table()


def test_the_table_has_every_route_and_no_other(shared: Api) -> None:
    paths = shared.client("ann").get("/openapi.json").json()["paths"]
    assert set(TABLE) == {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}


def ask(api: Api, role: str, route: str, things: PrivateThings) -> httpx.Response:
    """The answer of a route about these things; of a stream its head alone."""
    method, path = route.split(" ")
    user = ROLES[role]
    if path.startswith(OWN_THINGS):  # they may take the token away
        api.tokens["once"] = api.database.run(create_token, user)
        user = "once"
    names = asdict(things) | {"name": "sum", "suffix": "svg", "worker": "gone", "token_id": 1 << 60, "link_id": 1 << 60}
    filled = path.format(**names)
    parameters = LISTED.get(path, ({}, ""))[0] if method == "GET" else {}
    if path == "/v1/results/compare":
        parameters = {"baseline": things.job_id, "candidate": things.job_id}
    headers = {"Upload-Length": "100", "Upload-Offset": "0", "Upload-Complete": "?0"}
    sent = BODIES.get(path, {}) if method in ("POST", "PUT", "PATCH") else None
    body = {} if sent is None else {"json": sent}
    if route == "PATCH /v1/uploads/{upload_id}":
        body, headers = {"content": b"x" * 10}, headers | {"Content-Type": "application/partial-upload"}
    if path.endswith("/sharing") and method == "PUT":
        body = {"json": {"users": ["bob"]}}
    with api.client(user).stream(method, filled, params=parameters, headers=headers, **body) as answer:
        if "event-stream" not in answer.headers.get("content-type", ""):
            answer.read()
        return answer


def meaning(answer: httpx.Response, of_unknown: httpx.Response | None) -> str:
    if of_unknown is not None and answer.status_code == of_unknown.status_code == 404:
        return "404" if words(answer) == words(of_unknown) else "yes"
    return str(answer.status_code) if answer.status_code in (401, 403) else "yes"


def words(answer: httpx.Response) -> str:
    """The words of a refusal without the ids in it."""
    return re.sub(r"[0-9a-f]{8}[0-9a-f-]{24,}", "ID", str(answer.json()["detail"]))


@pytest.mark.parametrize("route", TABLE)
def test_each_route_answers_each_role_as_the_table_says(shared: Api, things: PrivateThings, route: str) -> None:
    seen = {}
    about_things = any(f"{{{name}}}" in route for name in asdict(things)) or route == "GET /v1/results/compare"
    for role in ROLES:
        own = made(shared) if route.startswith("DELETE") and about_things else things
        answer = ask(shared, role, route, own)
        of_unknown = ask(shared, role, route, PrivateThings.unknown()) if about_things else None
        seen[role] = meaning(answer, of_unknown)
        if TABLE[route][role] == "what they see" and (name := LISTED[route.split(" ")[1]][1]):
            listed = getattr(own, name) in answer.text
            assert listed == (role in ("owner", "admin", "named user")), (role, answer.text)
            seen[role] = "what they see"
        elif TABLE[route][role] == "what they see":
            seen[role] = "what they see" if answer.status_code == 200 else str(answer.status_code)
    assert seen == {role: TABLE[route][role] for role in ROLES}


SINGLE = {scope: (scope,) for scope in Scope}
BUT = {scope: tuple(other for other in Scope if other is not scope) for scope in Scope}


def issued(api: Api, user: str, role: Role, scopes: tuple[Scope, ...]) -> str:
    kept = [scope for scope in scopes if scope in SCOPES[role]] or [Scope.READ]
    return api.database.run(issue_token, user, role, scopes=kept).token


def test_a_key_may_do_what_the_table_says_and_no_more(shared: Api) -> None:
    unknown = PrivateThings.unknown()
    for route, row in TABLE.items():
        need = row["key"]
        if need == "none":
            continue
        role, user = (Role.ADMIN, "root") if need == Scope.ADMIN else (Role.USER, "ann")
        # With the one scope that the route needs, and then with all others.
        enough = tuple(Scope) if need == "whole" else SINGLE[Scope(need) if need != "any" else Scope.SUBMIT]
        shared.tokens["enough"] = issued(shared, user, role, enough)
        assert status_of(shared, "enough", route, unknown) not in (401, 403), route
        if need != "any":
            shared.tokens["other"] = issued(shared, user, role, BUT[Scope.MANAGE if need == "whole" else Scope(need)])
            assert status_of(shared, "other", route, unknown) == 403, route


def status_of(api: Api, user: str, route: str, things: PrivateThings) -> int:
    method, path = route.split(" ")
    filled = path.format(
        **(asdict(things) | {"name": user, "suffix": "svg", "worker": "gone", "token_id": 1 << 60, "link_id": 1 << 60})
    )
    filled = filled.replace("/v1/quotas/enough", "/v1/quotas/ann").replace("/v1/quotas/other", "/v1/quotas/ann")
    parameters = {"baseline": things.job_id, "candidate": things.job_id} if path == "/v1/results/compare" else {}
    return api.client(user).request(method, filled, params=parameters).status_code


def test_a_key_of_an_admin_without_that_scope_sees_what_any_user_sees(shared: Api, things: PrivateThings) -> None:
    shared.tokens["plain"] = issued(shared, "root", Role.ADMIN, (Scope.READ, Scope.MANAGE))
    plain = shared.client("plain")
    assert plain.get(f"/v1/jobs/{things.job_id}").status_code == 404
    assert plain.post(f"/v1/jobs/{things.job_id}/cancel").status_code == 404
    assert things.job_id not in plain.get("/v1/jobs").text


def test_nobody_gets_anything_without_a_token(shared: Api, things: PrivateThings) -> None:
    shared.tokens["nobody"] = "wf_none"
    ids = asdict(things) | {"name": "sum", "suffix": "svg", "worker": "gone", "token_id": 1, "link_id": 1}
    for route in TABLE:
        method, path = route.split(" ")
        status = shared.client("nobody").request(method, path.format(**ids)).status_code
        assert (status == 401) != (path in ("/healthz", "/readyz")), route


def test_the_dashboard_hides_what_the_api_hides(shared: Api) -> None:
    things = made(shared)  # the newest, on the first page of every list
    for role, user in ROLES.items():
        session = shared.database.run(open_session, shared.tokens[user], 1.0)
        assert session is not None
        hidden = role in ("viewer", "other user")
        with httpx.Client(base_url=shared.url, cookies={SESSION_COOKIE: session}, verify=NO_TLS) as browser:
            for path in (f"/jobs/{things.job_id}", f"/live/jobs/{things.job_id}", f"/batches/{things.batch_id}"):
                assert (browser.get(path).status_code == 404) == hidden, (role, path)
            assert (things.job_id[:8] in browser.get("/jobs?batched=on").text) != hidden, role
            assert (things.job_id in browser.get("/results").text) != hidden, role
