"""What a request shows to say who it comes from."""

from starlette.requests import HTTPConnection

SESSION_COOKIE = "warpfold_session"


def presented(request: HTTPConnection) -> str:
    """The bearer token, or the session's secret of a request without `Authorization`; empty where there is neither."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme:
        return token.strip() if scheme.lower() == "bearer" else ""
    return request.cookies.get(SESSION_COOKIE, "") if "cookie" in request.headers else ""
