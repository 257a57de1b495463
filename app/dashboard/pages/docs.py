"""The page of the api: every operation and every body, from the document at `/openapi.json`."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from warpfold.app.dashboard.rendering import page
from warpfold.app.dashboard.routes import router as pages
from warpfold.app.dashboard.visitors import Visitor
from warpfold.app.http.openapi import document_of

router = pages()


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of the document: its method in capitals, its path, and what the document says of it."""

    method: str
    path: str
    about: Mapping[str, Any]


@router.get("/docs")
async def show(request: Request, visitor: Visitor) -> Response:
    """Show the api. A thread makes the page, which is long."""
    document = await document_of(request.app)
    return await asyncio.to_thread(
        page,
        request,
        "docs",
        user=visitor,
        about=document["info"]["description"],
        by_tag=_by_tag(document["paths"]),
        schemas=dict(sorted(document["components"]["schemas"].items())),
    )


def _by_tag(paths: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Sequence[Operation]]:
    by_tag = defaultdict(list)
    for path, methods in paths.items():
        for method, about in methods.items():
            by_tag[about["tags"][0]].append(Operation(method.upper(), path, about))
    return by_tag
