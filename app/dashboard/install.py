"""Puts the dashboard into the api's app."""

from fastapi import APIRouter, FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from warpfold.app.auth.oidc import provider_of
from warpfold.app.config import Settings
from warpfold.app.dashboard.assets import VEGA, VegaBundle, assets, url_of
from warpfold.app.dashboard.pages import (
    account,
    admin,
    audit,
    batches,
    compare,
    datasets,
    docs,
    job,
    jobs,
    links,
    new_batch,
    new_job,
    now,
    oidc,
    presets,
    results,
)
from warpfold.app.dashboard.routes import error_page
from warpfold.app.dashboard.shared import KEPT_S, Shared, Sharing
from warpfold.app.dashboard.visitors import to_sign_in
from warpfold.app.http.errors import ApiError, NotFound, Unauthorized, Unavailable
from warpfold.app.http.headers import preferred
from warpfold.app.polls import PollCache


def install(app: FastAPI, settings: Settings) -> None:
    """Serve the dashboard at `/`. This reads and makes nothing yet. Call it after the handlers of errors were added,
    because the dashboard replaces two of them for browsers that ask for a page."""
    vega = VegaBundle(settings.data_dir / "cache")
    app.state.dashboard = Shared(PollCache(KEPT_S), vega, provider_of(settings))
    app.include_router(_assets)
    # `/jobs/new` comes before `/jobs/{id}`, which would take it for an id; and so with batches.
    of_jobs = (now, jobs, new_job, links, job, new_batch, batches, compare, results, presets)
    for module in (account, oidc, *of_jobs, admin, audit, docs):
        app.include_router(module.router)
    for router in (datasets.router, datasets.uploads):
        app.include_router(router)
    others, problems = app.exception_handlers[HTTPException], app.exception_handlers[ApiError]

    async def no_such_page(request: Request, error: Exception) -> Response:
        if _wants_page(request) and isinstance(error, HTTPException) and error.status_code == 404:
            return error_page(request, NotFound(f"There is no page at {request.url.path[:200]}."))
        return await others(request, error)  # type: ignore[misc, no-any-return]

    async def not_signed_in(request: Request, error: Exception) -> Response:
        if _wants_page(request) and request.method == "GET" and "authorization" not in request.headers:
            return to_sign_in(request)  # somebody followed a link to the api after the session was over
        return await problems(request, error)  # type: ignore[misc, no-any-return]

    app.add_exception_handler(HTTPException, no_such_page)
    app.add_exception_handler(Unauthorized, not_signed_in)


def _wants_page(request: Request) -> bool:
    return preferred(request.headers.get("accept"), ("application/json", "text/html")) == "text/html"


_assets = APIRouter(include_in_schema=False)


@_assets.get("/assets/{mark}/{name}")
async def serve_asset(mark: str, name: str, request: Request, shared: Sharing) -> Response:
    """Serve an asset at the address that pages name, and at no other, lest a browser keep the wrong version."""
    if name not in (VEGA, *assets()) or request.url.path != url_of(name):
        raise NotFound("There is no such file, or a newer one has taken its place.")
    if name != VEGA:
        return assets()[name].response(request)
    try:
        return (await shared.vega.asset()).response(request)
    except OSError as error:
        raise Unavailable("The charts' script could not be made; the log says why.", 30) from error
