"""Jobs: a list with filters that keeps itself current."""

from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlencode
from uuid import UUID

from fastapi import Depends, Form, Header, Query
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from warpfold.app.auth.access_tokens import Principal
from warpfold.app.dashboard.rendering import Rendered, etag, page, part, unchanged
from warpfold.app.dashboard.routes import router as pages
from warpfold.app.dashboard.rows import JobRow
from warpfold.app.dashboard.shared import Shared, Sharing
from warpfold.app.dashboard.visitors import Contributor, Visitor, safe_path
from warpfold.app.http.context import Context, Using
from warpfold.app.http.cursors import cursor_of, key_of
from warpfold.app.http.headers import matches
from warpfold.app.jobs import service
from warpfold.app.jobs.store import Filter, Job
from warpfold.app.jobs.store import page as page_of_jobs
from warpfold.contract.jobs import KINDS
from warpfold.contract.states import Status

_PAGE = 50
_LISTING = "jobs"

Text = Annotated[str, Query(max_length=321, pattern=r"^[^\x00]*$")]


@dataclass(frozen=True, slots=True)
class Asked:
    """The filters of a list of jobs, as the address says them; an empty one does not restrict."""

    status: str
    kind: str
    owner: str
    tag: str
    parts: str
    cursor: str

    def filter(self) -> Filter:
        name, colon, value = self.tag.partition(":")
        return Filter(
            status=Status(self.status) if self.status in list(Status) else None,
            kind=self.kind or None,
            owner=self.owner or None,
            tags=((name, value if colon else None),) if name else (),
            parent=None if self.parts else False,
        )

    def query(self, **changed: str) -> str:
        facts = {
            "status": self.status,
            "kind": self.kind,
            "owner": self.owner,
            "tag": self.tag,
            "parts": self.parts,
        } | changed
        return urlencode({name: value for name, value in facts.items() if value})


async def _asked(
    *, status: Text = "", kind: Text = "", owner: Text = "", tag: Text = "", parts: Text = "", cursor: Text = ""
) -> Asked:
    return Asked(status, kind, owner.strip(), tag.strip(), parts and "on", cursor)


Asking = Annotated[Asked, Depends(_asked)]

router = pages()


@router.get("/jobs")
async def show(request: Request, visitor: Visitor, context: Using, shared: Sharing, asked: Asking) -> Response:
    """The whole page."""
    found = await _found(context, shared, asked)
    return page(request, "jobs", user=visitor, statuses=list(Status), kinds=KINDS, **_model(asked, found, visitor))


@router.get("/live/jobs")
async def live(
    *,
    request: Request,
    visitor: Visitor,
    context: Using,
    shared: Sharing,
    asked: Asking,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """The list alone, for polls."""
    found = await _found(context, shared, asked)
    tag = _etag(asked, found, visitor)
    if if_none_match is not None and matches(if_none_match, tag):
        return unchanged(tag)

    async def rendered() -> Rendered:
        return part("jobs_list", **_model(asked, found, visitor))

    # The tag names all that the part shows, so that windows with the same one share it.
    return (await shared.polls.get(("jobs part", tag), rendered)).response(request)


@router.post("/jobs/{job_id}/cancel")
async def cancel(
    job_id: UUID, visitor: Contributor, context: Using, next: Annotated[str, Form(max_length=2048)] = ""
) -> Response:
    """Ask for a job's end, and go back to where the button was."""
    await service.cancel(context, visitor, job_id)
    return RedirectResponse(safe_path(next) if next else f"/jobs/{job_id}", 303)


async def _found(context: Context, shared: Shared, asked: Asked) -> list[Job]:
    before = key_of(_LISTING, asked.cursor or None)
    chosen = asked.filter()

    async def read() -> list[Job]:
        return await context.database.search(page_of_jobs, chosen, _PAGE + 1, before)

    return await shared.polls.get(("jobs", chosen, before), read)


def _etag(asked: Asked, found: list[Job], visitor: Principal) -> str:
    return etag(asked, visitor, [(job.id, job.version, job.queue_position) for job in found])


def _model(asked: Asked, found: list[Job], visitor: Principal) -> dict[str, Any]:
    query = asked.query(cursor=asked.cursor)
    return {
        "asked": asked,
        "rows": [JobRow.of(job, visitor) for job in found[:_PAGE]],
        "etag": _etag(asked, found, visitor),
        "live": "/live/jobs" + (f"?{query}" if query else ""),
        "back": "/jobs" + (f"?{query}" if query else ""),
        "older": asked.query(cursor=cursor_of(_LISTING, found[_PAGE - 1].seq)) if len(found) > _PAGE else None,
        "newest": asked.query() if asked.cursor else None,
    }
