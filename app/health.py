"""Liveness, readiness and metrics. The first two are open to everybody: balancers and supervisors hold no token."""

import asyncio
from collections.abc import AsyncIterator
from typing import Literal

import redis.asyncio
from fastapi import APIRouter
from pydantic import BaseModel
from redis import RedisError
from starlette.responses import PlainTextResponse, Response

from warpfold.app.db import DATABASE_LOST
from warpfold.app.http.bearer import User
from warpfold.app.http.context import Context, Using
from warpfold.app.http.errors import TooMany, Unavailable
from warpfold.app.http.openapi import answers, open_answers
from warpfold.app.metrics.metrics import CONTENT_TYPE
from warpfold.app.metrics.monitoring import drained_workers, live_workers, somebody_leads

_PATIENCE_S = 2.0
_UNREACHABLE = ("unreachable", 0, 0, False)


class Alive(BaseModel):
    """The process answers."""

    status: Literal["ok"]


class Ready(BaseModel):
    """Everything that a job needs is running."""

    postgres: Literal["ok"]
    redis: Literal["ok"]
    workers: int
    dispatcher: Literal["leads"]


router = APIRouter(tags=["health"])


@router.get("/healthz", summary="Check that the process is alive", responses=open_answers())
async def healthz() -> Alive:
    """Always answer 200. The answer says nothing about Postgres, Redis or workers."""
    return Alive(status="ok")


@router.get("/readyz", summary="Check that a job would run", responses=open_answers(Unavailable))
async def readyz(context: Using) -> Ready:
    """Answer 200 if Postgres and Redis answer, a worker is live and a dispatcher leads; otherwise answer a 503
    problem with `checks`, and `all_drained` says whether nothing is missing but workers that an admin has
    drained. Without Redis, workers or a dispatcher the service accepts jobs, too, and the jobs wait."""
    (postgres, workers, drained, leads), redis_state = await asyncio.gather(
        _postgres(context), _redis(context.settings.redis_url)
    )
    if postgres == "ok" and redis_state == "ok" and workers and leads:
        return Ready(postgres="ok", redis="ok", workers=workers, dispatcher="leads")
    dispatcher = "leads" if leads else "none leads" if postgres == "ok" else "unknown"
    checks = {"postgres": postgres, "redis": redis_state, "workers": workers, "dispatcher": dispatcher}
    missing = [name for name, state in checks.items() if state in ("unreachable", 0, "none leads")]
    all_drained = missing == ["workers"] and drained > 0
    detail = "every worker is drained" if all_drained else ", ".join(missing)
    raise Unavailable(f"Not ready: {detail}.", extension={"checks": checks, "all_drained": all_drained})


async def _postgres(context: Context) -> tuple[str, int, int, bool]:
    """Whether Postgres answers, how many workers could take a job and how many are drained, and whether a dispatcher
    leads."""

    async def look() -> tuple[str, int, int, bool]:
        try:
            workers = await context.database.read(live_workers)
            drained = 0 if workers else await context.database.read(drained_workers)
            return "ok", workers, drained, await context.database.read(somebody_leads)
        except DATABASE_LOST:
            return _UNREACHABLE

    looking = asyncio.create_task(look())
    try:
        done, _ = await asyncio.wait({looking}, timeout=_PATIENCE_S)
    finally:
        # The answer does not wait for the cancellation: psycopg asks a Postgres that hangs for ten seconds to cancel.
        looking.cancel()
    return looking.result() if done else _UNREACHABLE


async def _redis(url: str) -> str:
    try:
        async with asyncio.timeout(_PATIENCE_S), redis.asyncio.Redis.from_url(url) as client:
            await client.ping()
    except (RedisError, OSError, TimeoutError, ValueError):
        return "unreachable"
    return "ok"


@router.get(
    "/metrics",
    summary="Show metrics for Prometheus",
    response_class=PlainTextResponse,
    responses={200: {"description": "The metrics in Prometheus' text format."}, **answers(TooMany)},
)
async def metrics(user: User, context: Using) -> Response:
    """Show the queue, the workers, ended jobs and their times, and the devices, which are the same from every api
    process; and the requests of this process. This route needs a token, unlike `/healthz` and `/readyz`."""

    async def pieces() -> AsyncIterator[bytes]:
        yield await context.metrics.exposition(context.database)

    return await context.heavy_answers.answer(user.id, pieces(), CONTENT_TYPE)
