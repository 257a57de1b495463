"""HTTP of the audit log, which only admins read."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from warpfold.app.auth import audit
from warpfold.app.auth.audit import Action, Chosen, Entry
from warpfold.app.http.bearer import Admin
from warpfold.app.http.context import Context, Using
from warpfold.app.http.cursors import cursor_of, key_of
from warpfold.app.http.errors import Forbidden, Invalid
from warpfold.app.http.openapi import answers
from warpfold.app.http.parameters import DateTime, in_utc

_LISTING = "audit"
_Name = Annotated[str, Query(max_length=128, pattern=r"^[^\x00]*$")]

router = APIRouter(prefix="/v1", tags=["administration"])


class EntryView(BaseModel):
    """What somebody did that changed something."""

    at: datetime
    actor: str | None = Field(description="The user who did it; null for a command on the machine of the service.")
    key_id: int | None = Field(description="The token that the user showed, or that opened the user's session.")
    address: str = Field(description="The address that the request came from; empty for a command on the machine.")
    request_id: str | None
    action: str = Field(description="What was done, such as `cancel_job`.")
    thing: str = Field(description="The id of what was changed, or the name of a user or a worker.")
    owner: str | None = Field(description="The user whose thing it is; null where it is nobody's.")
    details: Mapping[str, Any] = Field(description="What else there is to know, by the action.")

    @classmethod
    def of(cls, entry: Entry) -> "EntryView":
        return cls.model_validate(entry, from_attributes=True)


class AuditPage(BaseModel):
    """A page of the audit log, the newest entry first."""

    items: list[EntryView]
    next_cursor: str | None = Field(description="The cursor of the next page; null on the last.")


class AuditQuery(BaseModel):
    """Which entries of the audit log are wanted."""

    actor: _Name | None = Field(None, description="What this user did.")
    action: Action | None = Field(None, description="What was done.")
    thing: _Name | None = Field(None, description="What was done to the thing with this id or name.")
    since: DateTime | None = Field(None, description="What was done at this time or later.")
    until: DateTime | None = Field(None, description="What was done before this time.")
    limit: int = Field(50, ge=1, le=200, description="How many entries a page has at most.")
    cursor: _Name | None = Field(None, description="`next_cursor` of the page before.")


@router.get("/audit", summary="Read the audit log", responses=answers(Forbidden, Invalid))
async def show_audit(*, admin: Admin, context: Using, query: Annotated[AuditQuery, Query()]) -> AuditPage:
    """Read what administrators and tokens did that changed something: sign-ins, tokens, roles, quotas, what was
    cancelled, deleted or shared, and from which address. Entries are kept for `WARPFOLD_AUDIT_DAYS`. Only admins may.
    """
    return await page_of(context, query)


async def page_of(context: Context, query: AuditQuery) -> AuditPage:
    """The page that is wanted."""
    chosen = Chosen(query.actor, query.action, query.thing, in_utc(query.since), in_utc(query.until))
    entries = await context.database.search(audit.page, chosen, query.limit + 1, key_of(_LISTING, query.cursor))
    shown = entries[: query.limit]
    following = cursor_of(_LISTING, shown[-1].id) if len(entries) > query.limit else None
    return AuditPage(items=[EntryView.of(entry) for entry in shown], next_cursor=following)
