"""HTTP of uploads that may be resumed, as the IETF's draft "Resumable Uploads for HTTP" has it."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from warpfold.app.datasets import resumable
from warpfold.app.datasets.endpoints import NAME_HELP, DatasetView, Name
from warpfold.app.datasets.endpoints import PREFIX as DATASETS
from warpfold.app.datasets.partial import UploadMetadata
from warpfold.app.datasets.resumable import UploadState
from warpfold.app.http.bearer import User
from warpfold.app.http.bodies import body_of
from warpfold.app.http.context import Using
from warpfold.app.http.errors import (
    Conflict,
    Invalid,
    NoRoom,
    NotFound,
    TimedOut,
    TooLarge,
    UnsupportedMedia,
)
from warpfold.app.http.openapi import answers
from warpfold.contract.fields import DTypeName

PREFIX = "/v1/uploads"
MEDIA_TYPES = ("application/partial-upload", "application/octet-stream")
_JSON = "application/json"
_TRUTH = {"?0": False, "?1": True}

Id = Annotated[str, Path(pattern=r"^[0-9a-f]{32}$", description="The id of the upload.")]
Count = Annotated[int, Header(ge=0, le=1 << 62)]
Complete = Annotated[
    str, Header(pattern=r"^\?[01]$", description="`?1` if the upload ends with these bytes, else `?0`.")
]


class UploadView(BaseModel):
    """An unfinished upload."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "0d9a2f6e3b1c4a5897d0e1f2a3b4c5d6",
                    "name": "samples.npy",
                    "dtype": None,
                    "length": 8000128,
                    "offset": 4194304,
                    "expires_at": "2026-11-22T03:59:25.977248+00:00",
                }
            ]
        }
    )

    id: str
    name: str = Field(description="A name for people; empty if none was given.")
    dtype: str | None = Field(description="The dtype of bare elements; null for a .npy file.")
    length: int = Field(description="How many bytes are to be sent.")
    offset: int = Field(description="How many bytes were received: the next request goes on from here.")
    expires_at: datetime = Field(description="When the upload is removed if nothing is added to it.")

    @classmethod
    def of(cls, state: UploadState) -> "UploadView":
        metadata = state.metadata
        return cls(
            id=state.id,
            name=metadata.name,
            dtype=metadata.dtype,
            length=metadata.length,
            offset=state.offset,
            expires_at=state.expires_at,
        )


class UploadList(BaseModel):
    """All unfinished uploads of a user."""

    items: list[UploadView]


router = APIRouter(prefix=PREFIX, tags=["datasets"])


@router.post(
    "",
    status_code=201,
    response_model=UploadView,
    summary="Begin an upload that may be resumed",
    responses={
        201: {"headers": {"Location": {"description": "The path of the upload.", "schema": {"type": "string"}}}},
        **answers(Conflict, TooLarge, Invalid, NoRoom),
    },
)
async def begin_upload(
    *,
    user: User,
    context: Using,
    upload_length: Annotated[Count, Header(description="How many bytes are to be sent in all.")],
    upload_complete: Complete = "?0",
    dtype: Annotated[
        DTypeName | None,
        Query(description="The dtype of bare elements in little-endian order; leave it out for a .npy file."),
    ] = None,
    name: Annotated[Name, Query(description=NAME_HELP)] = "",
) -> Response:
    """Begin an upload whose bytes come in later requests: `PATCH` its path. Its whole length counts towards your quota
    from now on, until the upload ends, or expires because nothing is added to it."""
    if _TRUTH[upload_complete]:
        raise Invalid.of("Upload-Complete", "is ?0 here: send the bytes to the path that the answer names")
    metadata = UploadMetadata(
        name=name, dtype=dtype, length=upload_length, lives_s=context.settings.upload_hours * 3600
    )
    state = await resumable.create(context, user, metadata)
    return _answer(state, 201, {"Location": f"{PREFIX}/{state.id}"})


@router.get("", summary="List your unfinished uploads", responses=answers(Invalid))
async def list_uploads(user: User, context: Using) -> UploadList:
    """List your unfinished uploads. Each holds its whole length of your quota."""
    return UploadList(items=[UploadView.of(state) for state in await resumable.mine(context, user)])


@router.get(
    "/{upload_id}",
    response_model=UploadView,
    summary="Show an unfinished upload",
    responses=answers(NotFound, Invalid),
)
async def show_upload(upload_id: Id, user: User, context: Using) -> Response:
    """Show how many bytes of an upload were received; `HEAD` answers the same in headers only. An upload that was
    finished is not found."""
    return _answer(await resumable.show(context, user, upload_id), 200)


@router.patch(
    "/{upload_id}",
    status_code=201,
    response_model=DatasetView,
    summary="Go on with an upload",
    responses={
        200: {"model": DatasetView, "description": "The upload is whole, and you held the array already."},
        201: {"headers": {"Location": {"description": "The path of the dataset.", "schema": {"type": "string"}}}},
        204: {"description": "The bytes were added; more are to come."},
        **answers(NotFound, TimedOut, Conflict, TooLarge, UnsupportedMedia, Invalid, NoRoom),
    },
    openapi_extra={
        "requestBody": {
            "required": False,
            "content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind in MEDIA_TYPES},
        }
    },
)
async def append_to_upload(
    *,
    upload_id: Id,
    request: Request,
    user: User,
    context: Using,
    upload_offset: Annotated[Count, Header(description="How many bytes were received before these.")],
    upload_complete: Complete,
) -> Response:
    """Add bytes to an upload, and with `Upload-Complete: ?1` make an array of it. If the connection is cut, the
    received bytes stay: ask by `HEAD` how many there are, and go on from there. An offset that does not fit is a 409
    that names the right one. A later request takes over from one that still waits for its bytes."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() not in MEDIA_TYPES:
        raise UnsupportedMedia(f"The body must be {' or '.join(MEDIA_TYPES)}.")
    async with body_of(request) as body:
        ended = await resumable.append(context, user, upload_id, upload_offset, body, complete=_TRUTH[upload_complete])
    if isinstance(ended, UploadState):
        return _answer(ended, 204)
    kept, new = ended
    headers = {"Location": f"{DATASETS}/{kept.contents.id}", "Upload-Complete": "?1"}
    return Response(DatasetView.of(kept).model_dump_json(), 201 if new else 200, headers, _JSON)


@router.delete("/{upload_id}", status_code=204, summary="Give up an upload", responses=answers(NotFound, Invalid))
async def give_up_upload(upload_id: Id, user: User, context: Using) -> Response:
    """Give up an unfinished upload; the bytes that were received are removed."""
    await resumable.delete(context, user, upload_id)
    return Response(status_code=204)


def _answer(state: UploadState, status: int, headers: dict[str, str] | None = None) -> Response:
    lives_s = max(0, int((state.expires_at - datetime.now(UTC)).total_seconds()))
    every = {
        "Upload-Offset": str(state.offset),
        "Upload-Complete": "?0",
        "Upload-Length": str(state.metadata.length),
        "Upload-Limit": f"max-age={lives_s}",
        "Cache-Control": "no-store",
        **(headers or {}),
    }
    return Response(b"" if status == 204 else UploadView.of(state).model_dump_json(), status, every, _JSON)
