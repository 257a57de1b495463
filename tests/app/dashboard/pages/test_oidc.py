"""Sign-in at a real provider of OpenID Connect, in a process of its own."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.support.api import NO_TLS, Api, running_api
from tests.support.processes import free_port
from tests.support.waiting import until
from warpfold.app.auth.access import SESSION_COOKIE
from warpfold.app.auth.access_tokens import create_token
from warpfold.app.auth.oidc import Flow

FLOW = "warpfold_flow"
ROLES = {"admins": "admin", "lab": "user", "guests": "viewer"}


@dataclass(frozen=True)
class Provider:
    """The provider: its address, and what it says of people."""

    url: str

    def knows(self, sub: str, name: str | None, *groups: str) -> None:
        claims = {"groups": list(groups)} | ({} if name is None else {"preferred_username": name})
        assert httpx.put(f"{self.url}/users/{sub}", json=claims, verify=NO_TLS).status_code == 204


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    port = free_port()
    command = [sys.executable, "-m", "oidc_provider_mock", "--port", str(port), "--require-nonce", "true"]
    url = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def answers() -> bool:
        try:
            return httpx.get(f"{url}/jwks", verify=NO_TLS).is_success
        except httpx.TransportError:
            assert process.poll() is None
            return False

    try:
        until(answers)
        yield Provider(url)
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def signing(shared_api: Api, provider: Provider) -> Iterator[Api]:
    wanted = {
        "oidc_issuer": provider.url,
        "oidc_client_id": "warpfold",
        "oidc_client_secret": "a secret",
        "oidc_roles": ROLES,
    }
    with running_api(shared_api.settings.model_copy(update=wanted)) as api:
        yield api


@dataclass
class Browser:
    """A browser that goes to the provider and comes back."""

    api: Api
    http: httpx.Client

    def sign_in(self, sub: str, **form: str) -> httpx.Response:
        return self.http.get(self.back(self.leave(), sub, **form))

    def leave(self, next: str = "/jobs") -> str:
        answer = self.http.get("/sign-in/oidc", params={"next": next})
        assert answer.status_code == 303, answer.text
        return answer.headers["Location"]

    def back(self, address: str, sub: str, **form: str) -> str:
        answer = httpx.post(address, data={"sub": sub, **form}, verify=NO_TLS)
        assert answer.status_code == 302, answer.text
        return str(answer.headers["Location"])

    def whoami(self) -> tuple[str, str] | None:
        answer = self.http.get("/v1/users/me", headers={"Accept": "application/json"})
        return (answer.json()["name"], answer.json()["role"]) if answer.is_success else None


@pytest.fixture
def browser(signing: Api) -> Iterator[Browser]:
    with httpx.Client(base_url=signing.url, verify=NO_TLS) as http:
        yield Browser(signing, http)


def test_the_provider_signs_people_in_and_their_groups_are_their_role(browser: Browser, provider: Provider) -> None:
    provider.knows("sub-1", "lise", "lab", "another")
    address = browser.leave("/jobs?status=failed")
    asked = {name: value for name, [value] in parse_qs(urlsplit(address).query).items()}
    flow = Flow.of_cookie(browser.http.cookies[FLOW])
    assert flow is not None
    assert (asked["state"], asked["nonce"], asked["code_challenge"]) == (flow.state, flow.nonce, flow.challenge())
    assert (asked["response_type"], asked["code_challenge_method"]) == ("code", "S256")
    assert flow.verifier not in address
    arrived = browser.http.get(browser.back(address, "sub-1"))
    assert arrived.status_code == 200
    assert 'content="0; url=/jobs?status=failed"' in arrived.text
    kept = [value for value in arrived.headers.get_list("Set-Cookie") if value.startswith(SESSION_COOKIE)]
    assert all(word in kept[0] for word in ("HttpOnly", "SameSite=strict", "Max-Age=604800"))
    assert FLOW not in browser.http.cookies
    assert browser.whoami() == ("lise", "user")
    provider.knows("sub-1", "renamed", "admins")
    browser.sign_in("sub-1")
    assert browser.whoami() == ("lise", "admin")
    [entry] = browser.api.client("root").get("/v1/audit", params={"actor": "lise", "limit": 1}).json()["items"]
    assert (entry["action"], entry["key_id"], entry["details"]) == (
        "sign_in",
        None,
        {"by": "oidc", "role": "admin", "before": "user"},
    )
    sent = {"Origin": browser.api.url}
    made = browser.http.post("/account/keys", data={"label": "own", "scopes": ["read"]}, headers=sent)
    assert made.status_code == 200
    assert browser.http.post("/sign-out", data={"everywhere": "true"}, headers=sent).status_code == 303
    assert browser.whoami() is None


@pytest.mark.parametrize(
    ("name", "group", "reason"),
    [
        ("otto", "strangers", "None of your groups"),
        ("root", "lab", "another user &#39;root&#39;"),
        ("a/b", "lab", "cannot stand here"),
        (None, "lab", "says no &#39;preferred_username&#39;"),
    ],
)
def test_who_may_not_come_in_is_told_why(
    browser: Browser, provider: Provider, name: str | None, group: str, reason: str
) -> None:
    provider.knows(f"sub of {reason[:4]}", name, group)
    answer = browser.sign_in(f"sub of {reason[:4]}")
    assert (answer.status_code, reason in answer.text) == (401, True), answer.text
    assert SESSION_COOKIE not in browser.http.cookies


def test_only_the_browser_that_began_a_sign_in_can_finish_it_and_only_once(
    browser: Browser, provider: Provider
) -> None:
    provider.knows("sub-6", "emmy", "guests")
    back = browser.back(browser.leave(), "sub-6")
    with httpx.Client(base_url=browser.api.url, verify=NO_TLS) as other:
        assert other.get(back).status_code == 401
        mine = Flow.begin("/")
        other.cookies.set(FLOW, mine.cookie())
        assert other.get(back).status_code == 401
        # With a state that fits: the nonce of the token is another one.
        stolen = back.replace(parse_qs(urlsplit(back).query)["state"][0], mine.state)
        assert "not valid" in other.get(stolen).text
    assert browser.http.get(back).status_code == 401  # the code is used up
    flow = browser.leave()
    assert browser.http.get(browser.back(flow, "sub-6", action="deny")).status_code == 401
    assert browser.sign_in("sub-6").status_code == 200
    assert browser.whoami() == ("emmy", "viewer")


def test_nobody_is_sent_elsewhere_after_signing_in(browser: Browser, provider: Provider) -> None:
    provider.knows("sub-7", "marie", "lab")
    for address in ("https://evil.example", "//evil.example", "/\\evil.example"):
        arrived = browser.http.get(browser.back(browser.leave(address), "sub-7"))
        assert 'content="0; url=/"' in arrived.text


def test_a_removed_person_does_not_come_back_by_the_provider(browser: Browser, provider: Provider) -> None:
    provider.knows("sub-8", "rosa", "lab")
    assert browser.sign_in("sub-8").status_code == 200
    assert browser.api.client("root").delete("/v1/users/rosa").status_code == 200
    until(lambda: browser.whoami() is None)
    assert "removed" in browser.sign_in("sub-8").text


def test_a_user_of_the_name_is_taken_over_only_where_the_settings_say_so(signing: Api, provider: Provider) -> None:
    signing.database.run(create_token, "grete")
    provider.knows("sub-9", "grete", "lab")
    with (
        running_api(signing.settings.model_copy(update={"oidc_takes_over": True})) as willing,
        httpx.Client(base_url=willing.url, verify=NO_TLS) as http,
    ):
        browser = Browser(willing, http)
        assert browser.sign_in("sub-9").status_code == 200
        assert browser.whoami() == ("grete", "user")
        provider.knows("sub-10", "grete", "admins")
        assert browser.sign_in("sub-10").status_code == 401


def test_without_a_provider_there_is_nothing_of_it(shared_api: Api, signing: Api) -> None:
    for api, seen in ((shared_api, False), (signing, True)):
        with httpx.Client(base_url=api.url, verify=NO_TLS) as http:
            assert ("/sign-in/oidc" in http.get("/sign-in").text) == seen
            assert (http.get("/sign-in/oidc").status_code == 404) != seen


def test_a_provider_that_does_not_answer_is_told(signing: Api) -> None:
    gone = {"oidc_issuer": f"http://127.0.0.1:{free_port()}"}
    with (
        running_api(signing.settings.model_copy(update=gone)) as api,
        httpx.Client(base_url=api.url, verify=NO_TLS) as http,
    ):
        answer = http.get("/sign-in/oidc")
        assert (answer.status_code, "gave no good answer" in answer.text) == (401, True)
