import time
from collections.abc import Mapping
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OctKey

from warpfold.app.auth.access_tokens import Role
from warpfold.app.auth.oidc import Flow, Person, Provider, Registration, SignInFailed

ISSUER = "https://id.example.org"
PROVIDER = Provider(Registration(ISSUER, "warpfold", "secret", "openid", "preferred_username", "groups"))
KEY = ECKey.generate_key("P-256", {"kid": "one"})
KEYS: Mapping[str, Any] = KeySet([KEY]).as_dict(private=False)


def signed(key: Any = KEY, algorithm: str = "ES256", **changes: Any) -> str:
    now = int(time.time())
    good = {"iss": ISSUER, "aud": "warpfold", "sub": "1", "iat": now, "exp": now + 60, "nonce": "n", **changes}
    claims = {name: value for name, value in good.items() if value is not None}
    return str(jwt.encode({"alg": algorithm, "kid": "one"}, claims, key, algorithms=[algorithm]))


def test_a_token_that_was_signed_for_us_and_this_flow_is_believed() -> None:
    assert PROVIDER.verified(signed(), KEYS, "n")["sub"] == "1"
    assert PROVIDER.verified(signed(aud=["warpfold", "other"], azp="warpfold"), KEYS, "n")["sub"] == "1"


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "https://other.example.org"},
        {"aud": "other"},
        {"aud": None},
        {"azp": "other"},
        {"sub": None},
        {"nonce": "another"},
        {"nonce": None},
        {"exp": 1},
        {"exp": None},
        {"iat": None},
        {"nbf": 1 << 40},
    ],
)
def test_a_token_for_others_or_for_another_time_is_not(changes: Mapping[str, Any]) -> None:
    with pytest.raises(SignInFailed):
        PROVIDER.verified(signed(**changes), KEYS, "n")


def test_a_token_that_nobody_or_somebody_else_signed_is_not() -> None:
    other = ECKey.generate_key("P-256", {"kid": "one"})
    shared = OctKey.import_key("0123456789abcdef0123456789abcdef")
    head, body, _ = signed().split(".")
    for token in (signed(other), signed(shared, "HS256"), f"{head}.{body}.", "eyJhbGciOiJub25lIn0.e30.", "x", ""):
        with pytest.raises(SignInFailed):
            PROVIDER.verified(token, KEYS, "n")


@pytest.mark.parametrize(
    ("groups", "roles", "role"),
    [
        (["lab"], {"lab": "user"}, Role.USER),
        (["lab", "admins"], {"lab": "user", "admins": "admin"}, Role.ADMIN),
        (["lab"], {"*": "viewer", "lab": "user"}, Role.USER),
        ([], {"*": "viewer"}, Role.VIEWER),
        (["others"], {"lab": "user"}, None),
        (["*"], {"lab": "user"}, None),
    ],
)
def test_the_highest_role_of_the_groups_is_the_role(
    groups: list[str], roles: Mapping[str, str], role: Role | None
) -> None:
    assert Person("i", "n", groups).role(roles) is role


def test_a_flow_survives_its_cookie_and_nothing_else_is_one() -> None:
    flow = Flow.begin("/jobs?status=failed")
    assert Flow.of_cookie(flow.cookie()) == flow
    assert len({flow.state, flow.nonce, flow.verifier}) == 3
    for broken in ("", "x", "w6k=", flow.state):
        assert Flow.of_cookie(broken) is None


def test_the_challenge_is_the_example_of_rfc_7636() -> None:
    flow = Flow("", "", "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", "/")
    assert flow.challenge() == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
