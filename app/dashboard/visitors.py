"""Finds out who looks at the dashboard, and whether a form came from one of its own pages."""

from typing import Annotated
from urllib.parse import quote, urlsplit

from fastapi import Depends, Request
from starlette.responses import RedirectResponse, Response

from warpfold.app.auth.access import SESSION_COOKIE
from warpfold.app.auth.access_tokens import Principal
from warpfold.app.http.bearer import permit
from warpfold.app.http.context import context_of
from warpfold.app.http.errors import Forbidden


class SignInFirst(Exception):
    """Nobody is signed in, or the session is over."""


async def _visitor(request: Request) -> Principal:
    secret = request.cookies.get(SESSION_COOKIE)
    visitor = None if secret is None else await (await context_of(request)).access.of_session(secret)
    if visitor is None:
        raise SignInFirst
    request.state.visitor = visitor  # for the page that shows an error
    permit(visitor, request)
    return visitor


async def _admin(visitor: Annotated[Principal, Depends(_visitor)]) -> Principal:
    if not visitor.is_admin:
        raise Forbidden("Only administrators may see this page.")
    return visitor


Visitor = Annotated[Principal, Depends(_visitor)]
"""The user who is signed in, and who may do with this key what the page is for."""
Administrator = Annotated[Principal, Depends(_admin)]
"""The user who is signed in, and who is an admin."""


def remember(answer: Response, request: Request, secret: str, days: float) -> None:
    """Have the browser keep a session, out of the reach of scripts and of other sites."""
    answer.set_cookie(
        SESSION_COOKIE,
        secret,
        max_age=int(days * 86400),
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )


async def own_form(request: Request) -> None:
    """Raise Forbidden for a request that changes something and does not come from one of our pages.

    Browsers say where a request comes from in headers that no page can forge: `Sec-Fetch-Site` (to https and to
    localhost), and `Origin` with every POST. The cookie is SameSite=Strict as well. A request with neither header does
    not come from a browser of recent years, and is refused.
    """
    if request.method in ("GET", "HEAD"):
        return
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    ours = site == "same-origin" if site is not None else _is_here(origin, request)
    if not ours:
        raise Forbidden("This form was sent from another site. Open the page here and send it again.")


def _is_here(origin: str | None, request: Request) -> bool:
    return origin is not None and urlsplit(origin).netloc == request.headers.get("host")


def to_sign_in(request: Request) -> Response:
    """Send a browser to the sign-in page, and back afterwards. A request for a part of a page sends the whole page to
    the sign-in page; a form comes back to the page that it stands on."""
    if request.headers.get("hx-request"):
        back = _path_of(request.headers.get("hx-current-url", "/"))
        return Response(status_code=401, headers={"HX-Redirect": _sign_in(back), "Cache-Control": "no-store"})
    back = _path_of(str(request.url) if request.method == "GET" else request.headers.get("referer", "/"))
    return RedirectResponse(_sign_in(back), 303, {"Cache-Control": "no-store"})


def _path_of(url: str) -> str:
    here = urlsplit(url)
    return here.path + (f"?{here.query}" if here.query else "")


def safe_path(path: str) -> str:
    """`path` if it is a path of this server, else "/", so that signing in never leads to another server."""
    return path if path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable() else "/"


def _sign_in(back: str) -> str:
    return "/sign-in" if back == "/" else f"/sign-in?next={quote(safe_path(back), safe='')}"
