"""The page of the api: every operation and every body, from the document at `/openapi.json`. What all users see of it
takes a tenth of a second, so it is made once and kept, as the document is."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from warpfold.app.dashboard.rendering import page, part
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
    """Show the api."""
    kept: Markup | None = getattr(request.app.state, "docs", None)
    if kept is None:
        kept = request.app.state.docs = await asyncio.to_thread(_about, await document_of(request.app))
    return await asyncio.to_thread(page, request, "docs", user=visitor, about_all=kept)


def _about(document: Mapping[str, Any]) -> Markup:
    made = part(
        "docs_of_all",
        about=document["info"]["description"],
        by_tag=_by_tag(document["paths"]),
        schemas=dict(sorted(document["components"]["schemas"].items())),
    )
    return Markup(made.content.decode())  # noqa: S704 - of a template, which has escaped what it was given


def _by_tag(paths: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Sequence[Operation]]:
    by_tag = defaultdict(list)
    for path, methods in paths.items():
        for method, about in methods.items():
            by_tag[about["tags"][0]].append(Operation(method.upper(), path, about))
    return by_tag
