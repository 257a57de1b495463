"""The parameters by which a list of jobs is asked for."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from warpfold.app.auth.visibility import Viewer
from warpfold.app.http.errors import Invalid
from warpfold.app.http.parameters import DateTime, in_utc
from warpfold.app.jobs.listing import Filter
from warpfold.app.jobs.tags import words_of
from warpfold.contract.fields import in_words
from warpfold.contract.id_beginning import IdBeginning
from warpfold.contract.jobs import KINDS, Kind
from warpfold.contract.states import Status
from warpfold.contract.unions import said_as

_MOST_OWNERS = 16
_MOST_WORDS = 8
_OWNERS = f"Should be the name of a user, or of up to {_MOST_OWNERS} users, each by a parameter of its own"

Name = Annotated[str, StringConstraints(max_length=321, pattern=r"^[^\x00]*$")]


class JobQuery(BaseModel):
    """The parameters of a list of jobs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: IdBeginning | None = Field(None, description="List the job with this id, or the jobs whose ids begin so.")
    status: Annotated[tuple[Status, ...], said_as(f"Input should be {in_words(Status)}")] = Field(
        (), description="List jobs in this state, or in one of several."
    )
    kind: Annotated[tuple[Kind, ...], said_as(f"Input should be {in_words(KINDS)}")] = Field(
        (), description="List jobs of this kind, or of one of several."
    )
    owner: Annotated[tuple[Name, ...], Field(max_length=_MOST_OWNERS), said_as(_OWNERS)] = Field(
        (), description="List jobs of this user, or of one of several."
    )
    tag: tuple[Name, ...] = Field(
        (),
        description="List jobs with this tag: `name` or `name:value`. Of several tags a job must have all.",
        max_length=8,
    )
    text: str | None = Field(
        None,
        description="List jobs of which a tag's name or value, or the name within a preset, has a word that begins "
        "with this text. Of several words a job must have all. Case does not matter.",
        max_length=128,
        pattern=r"^[^\x00]*$",
        examples=["learning rate"],
    )
    parent: Annotated[UUID | Literal["none"] | None, said_as("Should be the id of a preset, or none")] = Field(
        None, description="List the jobs of this preset, or with `none` the jobs that are part of no preset."
    )
    batch: UUID | None = Field(None, description="List the jobs that this batch brought.")
    since: DateTime | None = Field(
        None,
        description="List jobs that were accepted at this time or later. A time without an offset is in UTC.",
        examples=["2026-11-21T04:00:00Z"],
    )
    until: DateTime | None = Field(
        None, description="List jobs that were accepted before this time.", examples=["2026-11-22"]
    )
    count: bool = Field(False, description="Whether to count the jobs of all pages.")
    limit: int = Field(50, ge=1, le=200)
    cursor: Name | None = Field(None, description="The `next_cursor` of the page before.")

    def chosen(self, viewer: Viewer) -> Filter:
        """The filter of what the viewer sees. Raises Invalid that names the field."""
        words = () if self.text is None else words_of(self.text)
        if self.text is not None and not 1 <= len(words) <= _MOST_WORDS:
            raise Invalid.of("text", f"should have a word, and no more than {_MOST_WORDS}")
        return Filter(
            beginning=self.id,
            statuses=tuple(dict.fromkeys(self.status)),
            kinds=tuple(dict.fromkeys(self.kind)),
            owners=tuple(dict.fromkeys(self.owner)),
            tags=tuple(_tag(tag) for tag in self.tag),
            text=self.text,
            parent=False if self.parent == "none" else self.parent,
            batch=self.batch,
            since=in_utc(self.since),
            until=in_utc(self.until),
            viewer=viewer,
        )


def _tag(text: str) -> tuple[str, str | None]:
    name, colon, value = text.partition(":")
    if not name:
        raise Invalid.of("tag", "must be a name, or a name and a value as name:value")
    return name, value if colon else None
