"""Sign-in by OpenID Connect: the provider says who somebody is. Authorization code with PKCE, state and nonce; the
signature and the claims of the ID token are checked by joserfc."""

import base64
import hashlib
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote_plus, urlencode, urlsplit

from pydantic import BaseModel, ValidationError
from sqlalchemy import Connection, func, insert, select, update

from warpfold.app.auth import audit
from warpfold.app.auth.access_tokens import Principal, Role
from warpfold.app.auth.audit import Action, Deed
from warpfold.app.auth.sessions import close_session, open_session_of
from warpfold.app.config import Settings
from warpfold.app.db import ACCESS
from warpfold.app.tables.users import users

if TYPE_CHECKING:
    import httpx

_ASYMMETRIC = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"]
_TIMEOUT_S = 10.0
_KEPT_S = 3600.0
_LEEWAY_S = 60


class SignInFailed(Exception):
    """Nobody was signed in; the words are for the person who tried."""


class _Metadata(BaseModel):
    """What the provider says of itself."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None = None


class _Tokens(BaseModel):
    id_token: str
    access_token: str


@dataclass(frozen=True, slots=True)
class Flow:
    """What the browser keeps while its user is at the provider. Only this browser can finish what it began."""

    state: str
    nonce: str
    verifier: str
    next: str

    @classmethod
    def begin(cls, next: str) -> Self:
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        return cls(state, nonce, verifier, next)

    @classmethod
    def of_cookie(cls, value: str) -> Self | None:
        """The flow of a cookie; None for what is none."""
        try:
            parts = base64.urlsafe_b64decode(value.encode()).decode().split("\n")
        except ValueError:
            return None
        return cls(*parts) if len(parts) == 4 else None

    def cookie(self) -> str:
        return base64.urlsafe_b64encode("\n".join((self.state, self.nonce, self.verifier, self.next)).encode()).decode()

    def challenge(self) -> str:
        """The hash of the verifier, as PKCE's S256 has it."""
        return base64.urlsafe_b64encode(hashlib.sha256(self.verifier.encode()).digest()).decode().rstrip("=")


@dataclass(frozen=True, slots=True)
class Person:
    """Whom the provider signed in: `identity` names them for good, `name` is what the service calls them at first."""

    identity: str
    name: str
    groups: Sequence[str]

    def role(self, roles: Mapping[str, str]) -> Role | None:
        """The highest role that a group of theirs has; of `*` it is everybody's. None: they may not come in."""
        theirs = {roles[group] for group in (*self.groups, "*") if group in roles}
        return next((role for role in (Role.ADMIN, Role.USER, Role.VIEWER) if role in theirs), None)


@dataclass(frozen=True, slots=True)
class Registration:
    """What the settings say of a provider, and how it knows us."""

    issuer: str
    client_id: str
    client_secret: str
    scopes: str
    name_claim: str
    groups_claim: str


def provider_of(settings: Settings) -> "Provider | None":
    """The provider that the settings name; None if they name none."""
    if not settings.oidc_issuer or not settings.oidc_client_id:
        return None
    return Provider(
        Registration(
            settings.oidc_issuer,
            settings.oidc_client_id,
            settings.oidc_client_secret,
            settings.oidc_scopes,
            settings.oidc_name_claim,
            settings.oidc_groups_claim,
        )
    )


class Provider:
    """A provider of OpenID Connect. What it says of itself is asked for once in an hour, its keys at each sign-in."""

    def __init__(self, registration: Registration) -> None:
        self._of = registration
        self._kept: tuple[_Metadata, float] | None = None

    async def address(self, flow: Flow, back: str) -> str:
        """Where the browser goes to sign in; it comes back to `back`. Raises SignInFailed."""
        async with _http() as http:
            metadata = await self._metadata(http)
        query = {
            "response_type": "code",
            "client_id": self._of.client_id,
            "redirect_uri": back,
            "scope": self._of.scopes,
            "state": flow.state,
            "nonce": flow.nonce,
            "code_challenge": flow.challenge(),
            "code_challenge_method": "S256",
        }
        joint = "&" if "?" in metadata.authorization_endpoint else "?"
        return f"{metadata.authorization_endpoint}{joint}{urlencode(query)}"

    async def person(self, flow: Flow, code: str, back: str) -> Person:
        """Whom the provider signed in, by the code that the browser brought back. Raises SignInFailed."""
        async with _http() as http:
            metadata = await self._metadata(http)
            form = {
                "grant_type": "authorization_code",
                "code": code,
                "redirect_uri": back,
                "code_verifier": flow.verifier,
            }
            credentials = quote_plus(self._of.client_id), quote_plus(self._of.client_secret)  # as RFC 6749 says
            answer = await _answer(http, "POST", metadata.token_endpoint, data=form, auth=credentials)
            try:
                tokens = _Tokens.model_validate(answer)
            except ValidationError:
                raise SignInFailed("The sign-in provider gave no ID token.") from None
            claims = self.verified(tokens.id_token, await _answer(http, "GET", metadata.jwks_uri), flow.nonce)
            wanted = (self._of.name_claim, self._of.groups_claim)
            if metadata.userinfo_endpoint is not None and not all(claim in claims for claim in wanted):
                bearer = {"Authorization": f"Bearer {tokens.access_token}"}
                more = await _answer(http, "GET", metadata.userinfo_endpoint, headers=bearer)
                if more.get("sub") == claims["sub"]:  # else it speaks of somebody else
                    claims = {**more, **claims}
        name, groups = claims.get(self._of.name_claim), claims.get(self._of.groups_claim, ())
        if not isinstance(name, str):
            raise SignInFailed(f"The sign-in provider says no {self._of.name_claim!r} of you, which is your name here.")
        listed = [groups] if isinstance(groups, str) else [str(group) for group in groups or ()]
        return Person(f"{self._of.issuer} {claims['sub']}", name, listed)

    def verified(self, id_token: str, keys: Mapping[str, Any], nonce: str) -> Mapping[str, Any]:
        """The claims of an ID token that one of the provider's keys signed for us, now, for this flow. Raises
        SignInFailed."""
        from joserfc import jwt
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        rules = jwt.JWTClaimsRegistry(
            leeway=_LEEWAY_S,
            iss={"essential": True, "value": self._of.issuer},
            aud={"essential": True, "value": self._of.client_id},
            sub={"essential": True},
            exp={"essential": True},
            iat={"essential": True},
            nonce={"essential": True, "value": nonce},
        )
        try:
            token = jwt.decode(id_token, KeySet.import_key_set(dict(keys)), algorithms=_ASYMMETRIC)  # type: ignore[arg-type]
            rules.validate(token.claims)
        except (JoseError, ValueError, KeyError, TypeError) as error:
            raise SignInFailed(f"The sign-in provider's ID token is not valid ({type(error).__name__}).") from error
        if token.claims.get("azp", self._of.client_id) != self._of.client_id:
            raise SignInFailed("The sign-in provider's ID token is for another client.")
        return token.claims

    async def _metadata(self, http: "httpx.AsyncClient") -> _Metadata:
        if self._kept is not None and self._kept[1] > time.monotonic():
            return self._kept[0]
        address = f"{self._of.issuer.rstrip('/')}/.well-known/openid-configuration"
        try:
            metadata = _Metadata.model_validate(await _answer(http, "GET", address))
        except ValidationError:
            raise SignInFailed("The sign-in provider does not say where to sign in.") from None
        named = (metadata.authorization_endpoint, metadata.token_endpoint, metadata.jwks_uri)
        plain = urlsplit(self._of.issuer).scheme == "http"  # which the settings allow of this machine alone
        if metadata.issuer != self._of.issuer or not (plain or all(url.startswith("https://") for url in named)):
            raise SignInFailed("The sign-in provider is not the one that the settings name.")
        self._kept = (metadata, time.monotonic() + _KEPT_S)
        return metadata


def _http() -> "httpx.AsyncClient":
    import httpx  # and joserfc above: only those who sign in so need them

    return httpx.AsyncClient(timeout=_TIMEOUT_S, follow_redirects=False)


async def _answer(http: "httpx.AsyncClient", method: str, url: str, **request: Any) -> dict[str, Any]:
    import httpx

    try:
        response = await http.request(method, url, **request)
        response.raise_for_status()
        answer = response.json()
    except (httpx.HTTPError, ValueError) as error:
        raise SignInFailed("The sign-in provider gave no good answer; try again.") from error
    if not isinstance(answer, dict):
        raise SignInFailed("The sign-in provider gave no good answer; try again.")
    return answer


def sign_in(
    connection: Connection, person: Person, role: Role, *, days: float, takes_over: bool, instead_of: str | None
) -> str:
    """Open a session for a person, who becomes a user at the first time and has the role from now on; returns its
    secret. A user of that name without an identity is theirs only if it `takes_over`. Raises SignInFailed."""
    user = connection.execute(select(users).where(users.c.identity == person.identity).with_for_update()).one_or_none()
    if user is None:
        named = connection.execute(select(users).where(users.c.name == person.name).with_for_update()).one_or_none()
        if named is not None and (named.identity is not None or named.removed_at is not None or not takes_over):
            raise SignInFailed(f"There is another user {person.name!r} here; an administrator has to help.")
        if named is None:
            new = {"name": person.name, "role": role.value, "identity": person.identity}
            user = connection.execute(insert(users).values(new).returning(users)).one()
        else:
            linked = update(users).where(users.c.id == named.id).values(identity=person.identity)
            user = connection.execute(linked.returning(users)).one()
    if user.removed_at is not None:
        raise SignInFailed("You were removed from this service; an administrator has to help.")
    if user.role != role.value:
        connection.execute(update(users).where(users.c.id == user.id).values(role=role.value))
        connection.execute(select(func.pg_notify(ACCESS, "")))
    principal = Principal(user.id, user.name, role)
    details = {"by": "oidc", "role": role.value, "before": user.role if user.role != role.value else None}
    audit.record(connection, Deed(principal, Action.SIGN_IN, owner=user.name, details=details))
    if instead_of is not None:
        close_session(connection, instead_of)
    return open_session_of(connection, user.id, days)
