"""Puts the dashboard into the api's app."""

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from warpfold.app.config import Settings
from warpfold.app.dashboard.pages import (
    account,
    admin,
    assets,
    compare,
    job,
    jobs,
    new_job,
    now,
    presets,
    results,
    sign_in,
)
from warpfold.app.dashboard.recent import Recent
from warpfold.app.dashboard.routes import error_page
from warpfold.app.dashboard.shared import Shared
from warpfold.app.dashboard.vega import VegaBundle
from warpfold.app.dashboard.visitors import to_sign_in
from warpfold.app.http.errors import ApiError, NotFound, Unauthorized
from warpfold.app.http.headers import preferred


def install(app: FastAPI, settings: Settings) -> None:
    """Serve the dashboard at `/`. Reads and makes nothing yet. Comes after the handlers of errors: it has its own for
    browsers that ask for a page that there is none of."""
    app.state.dashboard = Shared(Recent(), VegaBundle(settings.data_dir / "cache"))
    # `/jobs/new` before `/jobs/{id}`.
    for one in (assets, sign_in, now, jobs, new_job, job, compare, results, presets, admin, account):
        app.include_router(one.router)
    others, problems = app.exception_handlers[HTTPException], app.exception_handlers[ApiError]

    async def nowhere(request: Request, error: Exception) -> Response:
        if _wants_page(request) and isinstance(error, HTTPException) and error.status_code == 404:
            return error_page(request, NotFound(f"There is no page at {request.url.path[:200]}."))
        return await others(request, error)  # type: ignore[misc, no-any-return]

    async def nobody(request: Request, error: Exception) -> Response:
        if _wants_page(request) and request.method == "GET" and "authorization" not in request.headers:
            return to_sign_in(request)  # a link to the api, followed when the session was over
        return await problems(request, error)  # type: ignore[misc, no-any-return]

    app.add_exception_handler(HTTPException, nowhere)
    app.add_exception_handler(Unauthorized, nobody)


def _wants_page(request: Request) -> bool:
    return preferred(request.headers.get("accept"), ("application/json", "text/html")) == "text/html"
