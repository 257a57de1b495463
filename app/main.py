"""The api, as an ASGI app: `warpfold api` serves it, with the limits of `app.server` on heads, time and connections."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import APIRouter, Depends, FastAPI, Request
from starlette.responses import Response

from warpfold.app import exact_states, health, sources
from warpfold.app.admin import audit, own_access
from warpfold.app.admin import endpoints as administration
from warpfold.app.artefacts import endpoints as artefacts
from warpfold.app.auth.access import Access
from warpfold.app.batches import endpoints as batches
from warpfold.app.catalogue import endpoints as catalogue
from warpfold.app.catalogue import presets
from warpfold.app.charts.renderer import ChartRenderer
from warpfold.app.config import Settings, load_settings
from warpfold.app.dashboard import install as dashboard
from warpfold.app.datasets import endpoints as datasets
from warpfold.app.datasets import resumable_endpoints as resumable_uploads
from warpfold.app.datasets.store import Store
from warpfold.app.datasets.sweep import ABANDONED_S
from warpfold.app.db import Database
from warpfold.app.fairness.rates import Failures
from warpfold.app.http import error_handlers, openapi
from warpfold.app.http.bearer import User
from warpfold.app.http.context import QUEUE_KEPT_S, Context, Using
from warpfold.app.http.guard import Guard
from warpfold.app.http.heavy_answers import HeavyAnswers
from warpfold.app.http.large_bodies import LargeBodies
from warpfold.app.http.middleware import Methods, RequestIds, ResponseHeaders
from warpfold.app.http.requests import BodyLimit, known_parameters, known_parameters_for_workers
from warpfold.app.inspection.inspections import Inspections
from warpfold.app.jobs import endpoints as jobs
from warpfold.app.metrics.metrics import Metrics, RequestTimes
from warpfold.app.notifications import Notifications
from warpfold.app.polls import PollCache
from warpfold.app.reports import endpoints as reports
from warpfold.app.results import endpoints as results
from warpfold.app.sharing import endpoints as sharing
from warpfold.app.sharing import link_endpoints as links
from warpfold.app.tracing.tracing import start_tracing
from warpfold.app.webhooks import endpoints as webhooks

_DESCRIPTION = """Submit a reduction, wait for a worker, read the correctly rounded value with its timings and
provenance. Every error is a problem (RFC 9457, `application/problem+json`). All routes but `/healthz` and `/readyz`
need a bearer token."""


def create_app(settings: Settings | None = None) -> FastAPI:
    """The api on the servers that `settings` name (the environment's by default). Nothing is connected yet."""
    context = _context_of(settings or load_settings())
    app = FastAPI(
        title="Warpfold",
        summary="Exact reductions and reduction benchmarks on a shared GPU server",
        description=_DESCRIPTION,
        version=version("warpfold"),
        lifespan=_lifespan,
        openapi_url=None,  # `_document` serves it, with a token
        generate_unique_id_function=lambda route: route.name,  # of the function; generated clients call theirs so, too
        redirect_slashes=False,
    )
    app.state.context = context
    _add_middleware(app, context)
    _include_routes(app)
    error_handlers.install(app)
    dashboard.install(app, context.settings)
    openapi.install(app)
    context.tracing.watch(app)
    return app


def _context_of(settings: Settings) -> Context:
    """The parts of an api process. Raises ValueError where `settings` name no database."""
    if not settings.database_url:
        raise ValueError("WARPFOLD_DATABASE_URL names no database; `warpfold serve` starts one")
    database = Database(settings.database_url, application="warpfold api")
    access = Access(database)
    return Context(
        settings,
        database,
        Notifications(settings.database_url, on_access=access.forget),
        access,
        Failures(),
        LargeBodies(),
        HeavyAnswers(),
        Inspections(settings.folders()),
        Metrics(),
        ChartRenderer(),
        start_tracing(settings, "api"),
        PollCache(QUEUE_KEPT_S),
    )


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Start what runs beside requests, and close all parts of the process in the end."""
    context: Context = app.state.context
    context.notifications.start()
    # Uploads that a killed api left unfinished: its successor is the first to find them.
    await asyncio.to_thread(Store(context.settings.datasets_dir()).remove_abandoned, ABANDONED_S)
    yield
    context.chart_renderer.close()
    context.large_bodies.close()
    context.heavy_answers.close()
    context.inspections.close()
    await context.notifications.close()
    await context.database.close()
    context.tracing.close()


def _add_middleware(app: FastAPI, context: Context) -> None:
    """What every request passes; the last one that is added is the first one that a request meets."""
    settings = context.settings
    app.add_middleware(
        BodyLimit,
        max_bytes=settings.max_body_bytes,
        others={
            datasets.PREFIX: settings.max_dataset_bytes,
            resumable_uploads.PREFIX: settings.max_dataset_bytes,
            batches.PREFIX: settings.max_batch_bytes,
        },
    )
    app.add_middleware(Methods)
    app.add_middleware(Guard, settings=settings, access=context.access)
    app.add_middleware(ResponseHeaders)
    app.add_middleware(RequestTimes, requests=context.metrics.requests)
    app.add_middleware(RequestIds)


def _include_routes(app: FastAPI) -> None:
    for part in (
        jobs,
        artefacts,
        batches,
        results,
        reports,
        exact_states,
        sources,
        catalogue,
        presets,
        own_access,
        administration,
        audit,
        webhooks,
        datasets,
        resumable_uploads,
        sharing,
        links,
    ):
        app.include_router(part.router, dependencies=[Depends(known_parameters)])
    app.include_router(datasets.changes, dependencies=[Depends(known_parameters)])
    app.include_router(datasets.for_workers, dependencies=[Depends(known_parameters_for_workers)])
    app.include_router(health.router)
    app.include_router(_document())


def _document() -> APIRouter:
    router = APIRouter()

    @router.get("/openapi.json", include_in_schema=False)
    async def document(user: User, request: Request, context: Using) -> Response:
        text = await openapi.text_of(request.app)
        return await context.heavy_answers.text(user.id, text, "application/json")

    return router


def __getattr__(name: str) -> FastAPI:
    # `uvicorn warpfold.app.main:app`: made when asked for, so that importing this module reads and connects nothing.
    if name == "app":
        return create_app()
    raise AttributeError(name)
