"""Jobs: a list with filters that keeps itself current, in which a batch is one row."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from urllib.parse import urlencode
from uuid import UUID

from fastapi import Depends, Form, Header, Query
from pydantic import StringConstraints, TypeAdapter, ValidationError
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from warpfold.app.auth.access_tokens import Principal
from warpfold.app.auth.scopes import Scope
from warpfold.app.auth.visibility import Viewer
from warpfold.app.batches import folding, repository
from warpfold.app.batches.repository import Batch
from warpfold.app.dashboard.forms.reading import APART
from warpfold.app.dashboard.rendering import Rendered, etag, page, part, unchanged
from warpfold.app.dashboard.routes import router as pages
from warpfold.app.dashboard.rows import row_of, stamp_of
from warpfold.app.dashboard.shared import Shared, Sharing
from warpfold.app.dashboard.visitors import Visitor, safe_path
from warpfold.app.http.context import Context, Using
from warpfold.app.http.cursors import cursor_of, key_of
from warpfold.app.http.errors import Conflict, Forbidden, Invalid, NotFound, TooMany
from warpfold.app.http.headers import matches
from warpfold.app.jobs import listing, service
from warpfold.app.jobs.editing import JobEdit
from warpfold.app.jobs.listing import Filter, Tally
from warpfold.app.jobs.placing import placed
from warpfold.app.jobs.store import Job
from warpfold.app.jobs.tags import words_of
from warpfold.contract.id_beginning import is_beginning
from warpfold.contract.jobs import KINDS, JobSpec
from warpfold.contract.moments import HOW, moment
from warpfold.contract.states import Status

_PAGE = 50
_LISTING = "jobs"

_MOST_OWNERS = 16
_MOST_TICKED = 200
_SPEC: TypeAdapter[JobSpec] = TypeAdapter(JobSpec)
_SHORTEST_ID = 8
"""So much of an id in the field of words is taken for an id: lists show so much, and few words look like it."""
_SEARCHED_S = 0.2
"""How long a search goes on to older jobs while it has found nothing."""

Text = Annotated[str, Query(max_length=321, pattern=r"^[^\x00]*$")]
Texts = Annotated[list[Annotated[str, StringConstraints(max_length=321, pattern=r"^[^\x00]*$")]], Query(max_length=16)]


@dataclass(frozen=True, slots=True)
class JobsPage:
    """A page of the list, and how many rows all pages have. Without `batches` no row of the list can be a batch."""

    rows: Sequence[Job | Batch]
    following: int | None
    jobs: Tally
    batches: Tally | None = None


@dataclass(frozen=True, slots=True)
class JobsQuery:
    """The filters of a list of jobs, as the address says them; an empty one does not restrict. Owners and words stand
    side by side in one text, as people type them; `since` and `until` are as `moment` reads them, so that "2h" keeps
    its meaning in an address that is kept. `batch` is the id of a batch whose jobs are listed; `batched` lists the jobs
    of all batches, where else a batch is one row."""

    statuses: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    owner: str = ""
    tags: tuple[str, ...] = ()
    text: str = ""
    since: str = ""
    until: str = ""
    parts: str = ""
    batch: str = ""
    batched: str = ""
    cursor: str = ""

    def filter(self, viewer: Viewer) -> Filter:
        """The restrictions of the list, and who looks at it. Raises Invalid that names the field."""
        if self.text and not words_of(self.text):
            raise Invalid.of("text", "should have a letter or a digit")
        now = datetime.now(UTC)
        return Filter(
            statuses=tuple(status for status in Status if status in self.statuses),
            kinds=self.kinds,
            owners=tuple(dict.fromkeys(APART.split(self.owner)))[:_MOST_OWNERS] if self.owner else (),
            tags=tuple((name, value if colon else None) for name, colon, value in map(_parted, self.tags) if name),
            text=self.text or None,
            parent=None if self.parts else False,
            batch=_batch(self.batch) if self.batch else None,
            since=_moment("since", self.since, now),
            until=_moment("until", self.until, now),
            viewer=viewer,
        )

    @property
    def open(self) -> bool:
        """Whether a filter is in force that the form shows only when it is opened."""
        return bool(self.kinds or self.tags or self.since or self.until or self.parts or self.batched)

    @property
    def folded(self) -> bool:
        """Whether a batch is one row."""
        return not self.batch and not self.batched

    def query(self, cursor: str = "") -> str:
        """The address's query, of the page that `cursor` names."""
        filters = {
            "status": self.statuses,
            "kind": self.kinds,
            "owner": self.owner,
            "tag": self.tags,
            "text": self.text,
            "since": self.since,
            "until": self.until,
            "parts": self.parts,
            "batch": self.batch,
            "batched": self.batched,
            "cursor": cursor,
        }
        return urlencode({name: value for name, value in filters.items() if value}, doseq=True)

    def query_within(self, batch: UUID) -> str:
        """The query of the jobs of a batch that this list's filters leave."""
        return replace(self, batch=str(batch)).query()


def _parted(tag: str) -> tuple[str, str, str]:
    return tag.partition(":")


def _batch(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise Invalid.of("batch", "should be the id of a batch") from None


def _moment(field: str, text: str, now: datetime) -> datetime | None:
    try:
        return moment(text, now) if text else None
    except ValueError as error:
        raise Invalid.of(field, str(error)) from None


async def _query_of(
    *,
    status: Texts = [],  # noqa: B006 - FastAPI copies it
    kind: Texts = [],  # noqa: B006
    owner: Text = "",
    tag: Texts = [],  # noqa: B006
    text: Text = "",
    since: Text = "",
    until: Text = "",
    parts: Text = "",
    batch: Text = "",
    batched: Text = "",
    cursor: Text = "",
) -> JobsQuery:
    def stripped(texts: list[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(filter(None, map(str.strip, texts))))

    return JobsQuery(
        statuses=stripped(status),
        kinds=stripped(kind),
        owner=owner.strip(),
        tags=stripped(tag),
        text=text.strip(),
        since=since.strip(),
        until=until.strip(),
        parts=parts and "on",
        batch=batch.strip(),
        batched=batched and "on",
        cursor=cursor,
    )


AddressQuery = Annotated[JobsQuery, Depends(_query_of)]

router = pages()


@router.get("/jobs")
async def show(request: Request, visitor: Visitor, context: Using, shared: Sharing, asked: AddressQuery) -> Response:
    """The whole page; where the text is an id, or the beginning of one, the page of that job or batch."""
    viewer = context.viewer(visitor)
    if asked.text and (named := await context.database.search(_page_named, asked.text, viewer)):
        return RedirectResponse(named, 303)
    listed = await _page_of(context, shared, asked, viewer, anew=True)
    model = _model(asked, listed, visitor)
    return page(request, "jobs", user=visitor, statuses=list(Status), kinds=KINDS, how=HOW, **model)


@router.get("/live/jobs")
async def live(
    *,
    request: Request,
    visitor: Visitor,
    context: Using,
    shared: Sharing,
    asked: AddressQuery,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """The list alone, for polls."""
    listed = await _page_of(context, shared, asked, context.viewer(visitor))
    tag = _etag(asked, listed, visitor)
    if if_none_match is not None and matches(if_none_match, tag):
        return unchanged(tag)

    async def rendered() -> Rendered:
        return part("jobs_list", user=visitor, **_model(asked, listed, visitor))

    # The tag names all that the part shows, so that windows with the same one share it.
    return (await shared.polls.get(("jobs part", tag), rendered)).response(request)


@router.post("/jobs/{job_id}/cancel")
async def cancel(
    job_id: UUID, visitor: Visitor, context: Using, next: Annotated[str, Form(max_length=2048)] = ""
) -> Response:
    """Ask for a job's end, and go back to where the button was."""
    await service.cancel(context, visitor, job_id)
    return RedirectResponse(safe_path(next) if next else f"/jobs/{job_id}", 303)


@router.post("/jobs/selected")
async def change_selected(
    *,
    visitor: Visitor,
    context: Using,
    job: Annotated[list[UUID], Form(max_length=_MOST_TICKED)] = [],  # noqa: B006
    do: Annotated[Literal["cancel", "again", "delete", "tag"], Form()],
    tag: Annotated[str, Form(max_length=321)] = "",
    next: Annotated[str, Query(max_length=2048)] = "/jobs",
) -> Response:
    """Cancel, run again, delete or tag the ticked jobs, each as the api does it by itself, and go back to the list; or
    say which were refused, and why."""
    if do == "again" and not visitor.may(Scope.SUBMIT):
        raise Forbidden("This key may not submit jobs.")
    if do == "tag" and not tag.strip():
        raise Invalid.of("tag", "should be a name, or name:value")
    refused = []
    for job_id in dict.fromkeys(job):
        try:
            await _do(context, visitor, job_id, do, tag.strip())
        except (Conflict, Forbidden, NotFound, TooMany) as error:
            refused.append(f"{str(job_id)[:8]}: {error.detail}")
    if refused:
        raise Conflict(f"{len(refused)} of {len(job)} jobs stay as they are. {' '.join(refused)}")
    return RedirectResponse(safe_path(next), 303)


async def _do(context: Context, visitor: Principal, job_id: UUID, deed: str, tag: str) -> None:
    if deed == "cancel":
        await service.cancel(context, visitor, job_id)
    elif deed == "delete":
        await service.delete(context, visitor, job_id)
    else:
        job = await service.get(context, visitor, job_id)
        if deed == "again":
            await service.submit(context, visitor, _SPEC.validate_json(job.spec), None)
        else:
            name, _, value = _parted(tag)
            await service.edit(context, visitor, job_id, edit_of({"tags": {**job.tags, name: value}}))


@router.post("/jobs/{job_id}/edit")
async def edit(
    *,
    job_id: UUID,
    visitor: Visitor,
    context: Using,
    name: Annotated[str | None, Form(max_length=1000)] = None,
    note: Annotated[str, Form(max_length=10_000)] = "",
    tags: Annotated[str, Form(max_length=10_000)] = "",
) -> Response:
    """Change the name, the note and the tags of a job, and go back to its page."""
    lines = map(_parted, map(str.strip, tags.splitlines()))
    wanted = {"note": note, "tags": {tag: value for tag, _, value in lines if tag}}
    await service.edit(context, visitor, job_id, edit_of(wanted if name is None else {**wanted, "name": name}))
    return RedirectResponse(f"/jobs/{job_id}", 303)


@router.post("/jobs/{job_id}/delete")
async def delete(job_id: UUID, visitor: Visitor, context: Using) -> Response:
    """Delete a job, and go to the list."""
    await service.delete(context, visitor, job_id)
    return RedirectResponse("/jobs", 303)


def edit_of(wanted: Mapping[str, object]) -> JobEdit:
    """What a form says, as the api takes it. Raises Invalid that names the field."""
    try:
        return JobEdit.model_validate(wanted)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        raise Invalid.of(str(fault["loc"][0]), str(fault["msg"])) from None


def _page_named(connection: Connection, text: str, viewer: Viewer) -> str | None:
    """The address of the one job or batch, of those that the viewer sees, that `text` names: its id, the beginning of
    it, or its address."""
    beginning = text.rstrip("/").rpartition("/")[2]
    if len(beginning) < _SHORTEST_ID or not is_beginning(beginning):
        return None
    chosen = Filter(beginning=beginning, viewer=viewer)
    pages = [f"/jobs/{job.id}" for job in listing.page(connection, chosen, 2).jobs]
    pages += [f"/batches/{batch}" for batch in repository.beginning_with(connection, beginning, viewer)]
    return pages[0] if len(pages) == 1 else None


async def _page_of(
    context: Context, shared: Shared, asked: JobsQuery, viewer: Viewer, *, anew: bool = False
) -> JobsPage:
    """The page as it was within the last second, or with `anew` as it is now."""
    before = key_of(_LISTING, asked.cursor or None)
    chosen = asked.filter(viewer)
    look = _folded if asked.folded else _each

    async def read() -> JobsPage:
        give_up = time.monotonic() + _SEARCHED_S
        listed = await context.database.search(look, chosen, before)
        while not listed.rows and listed.following is not None and time.monotonic() < give_up:
            listed = await context.database.search(look, chosen, listed.following)
        return replace(listed, rows=await placed(context, listed.rows))

    # The key is the query and not the filter: "2h ago" is another moment at each look.
    answer = shared.polls.renewed if anew else shared.polls.get
    return await answer(("jobs", asked, viewer), read)


def _each(connection: Connection, chosen: Filter, before: int | None) -> JobsPage:
    listed = listing.page(connection, chosen, _PAGE, before)
    return JobsPage(listed.jobs, listed.following, listing.count(connection, chosen))


def _folded(connection: Connection, chosen: Filter, before: int | None) -> JobsPage:
    listed = folding.page(connection, chosen, _PAGE, before, counted=True)
    count = listed.tally or folding.count(connection, chosen)
    return JobsPage(listed.rows, listed.following, count.jobs, count.batches)


def _etag(asked: JobsQuery, listed: JobsPage, visitor: Principal) -> str:
    return etag(
        asked, visitor, [stamp_of(row) for row in listed.rows], listed.following is None, listed.jobs, listed.batches
    )


def _model(asked: JobsQuery, listed: JobsPage, visitor: Principal) -> dict[str, Any]:
    query = asked.query(asked.cursor)
    following = listed.following
    return {
        "asked": asked,
        "filtered": bool(asked.query()),
        "rows": [row_of(row, visitor) for row in listed.rows],
        "count": listed.jobs,
        "batches": listed.batches,
        "etag": _etag(asked, listed, visitor),
        "live": "/live/jobs" + (f"?{query}" if query else ""),
        "back": "/jobs" + (f"?{query}" if query else ""),
        "older": None if following is None else asked.query(cursor_of(_LISTING, following)),
        "newest": asked.query() if asked.cursor else None,
    }
