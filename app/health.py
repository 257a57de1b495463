"""Liveness, readiness and metrics. The first two are open to everybody: balancers and supervisors hold no token."""

import asyncio
from typing import Literal

import redis.asyncio
from fastapi import APIRouter
from pydantic import BaseModel
from redis import RedisError
from starlette.responses import PlainTextResponse, Response

from warpfold.app.auth.bearer import User
from warpfold.app.context import Context, Using
from warpfold.app.db import DATABASE_LOST
from warpfold.app.errors import Unavailable
from warpfold.app.metrics.metrics import CONTENT_TYPE
from warpfold.app.monitoring import live_workers
from warpfold.app.openapi import answers, open_answers

_PATIENCE_S = 2.0


class Alive(BaseModel):
    """The process answers."""

    status: Literal["ok"]


class Ready(BaseModel):
    """Everything that a job needs is there."""

    postgres: Literal["ok"]
    redis: Literal["ok"]
    workers: int


router = APIRouter(tags=["health"])


@router.get("/healthz", summary="Is the process alive", responses=open_answers())
async def healthz() -> Alive:
    """Always 200: it says nothing about servers or workers."""
    return Alive(status="ok")


@router.get("/readyz", summary="Would a job run", responses=open_answers(Unavailable))
async def readyz(context: Using) -> Ready:
    """200 if Postgres and Redis answer and a live worker is there, else a 503 problem with `checks`. Jobs are accepted
    without Redis or workers, too: they wait."""
    (postgres, workers), redis_state = await asyncio.gather(_postgres(context), _redis(context.settings.redis_url))
    if postgres == "ok" and redis_state == "ok" and workers:
        return Ready(postgres="ok", redis="ok", workers=workers)
    checks = {"postgres": postgres, "redis": redis_state, "workers": workers}
    missing = [name for name, state in checks.items() if state in ("unreachable", 0)]
    raise Unavailable(f"Not ready: {', '.join(missing)}.", extension={"checks": checks})


async def _postgres(context: Context) -> tuple[str, int]:
    try:
        async with asyncio.timeout(_PATIENCE_S):
            return "ok", await context.database.read(live_workers)
    except (*DATABASE_LOST, TimeoutError):
        return "unreachable", 0


async def _redis(url: str) -> str:
    try:
        async with asyncio.timeout(_PATIENCE_S), redis.asyncio.Redis.from_url(url) as client:
            await client.ping()
    except (RedisError, OSError, TimeoutError, ValueError):
        return "unreachable"
    return "ok"


@router.get(
    "/metrics",
    summary="Prometheus metrics",
    response_class=PlainTextResponse,
    responses={200: {"description": "Prometheus' text format"}, **answers()},
)
async def metrics(user: User, context: Using) -> Response:
    """Queue, workers, ended jobs and their times, devices: the same from every api process; and the requests of this
    one. Needs a token, like all but the two above."""
    return Response(await context.metrics.exposition(context.database), media_type=CONTENT_TYPE)
