"""HTTP of uploaded arrays: upload, list, show and delete, and what the api says of them."""

from datetime import datetime
from math import prod
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from warpfold.app.datasets import repository, service
from warpfold.app.datasets.repository import Dataset
from warpfold.app.datasets.service import MOST_USES, Upload
from warpfold.app.http.bearer import MaybeWorker, User
from warpfold.app.http.bodies import body_of
from warpfold.app.http.context import Using
from warpfold.app.http.cursors import cursor_of, key_of
from warpfold.app.http.errors import (
    BadRequest,
    Forbidden,
    Invalid,
    NoRoom,
    NotFound,
    RangeNotSatisfiable,
    TimedOut,
    TooLarge,
    UnsupportedMedia,
)
from warpfold.app.http.file_bytes import ByteRange, IfNoneMatch, IfRange
from warpfold.app.http.headers import matches
from warpfold.app.http.openapi import answers
from warpfold.app.http.requests import JsonRoute, declared_bytes
from warpfold.contract.fields import DTypeName
from warpfold.kernels.dtypes import dtype_named
from warpfold.kernels.formats.npy import is_stored_name
from warpfold.kernels.formats.signature import is_text

PREFIX = "/v1/datasets"
_LISTING = "datasets"
_JSON = "application/json"
_TEXT = ("text/csv", "text/tab-separated-values")
NAME_HELP = "A name for people, such as the file's; a table of plain text needs one that ends in .csv, .tsv or .tab."

Id = Annotated[str, Path(pattern=r"^[0-9a-f]{64}$", description="The SHA-256 of the file.")]
Name = Annotated[str, Query(max_length=128, pattern=r"^[^\x00]*$")]
Text = Annotated[str, StringConstraints(max_length=128, pattern=r"^[^\x00]*$")]


class DatasetView(BaseModel):
    """An uploaded array, as one of its owners holds it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "6ae7a5f22ac4dbdcf606a179a2b62bdd93055e5a37993d04e0a47864e12858aa",
                    "name": "samples.npy",
                    "owner": "ann",
                    "format": ".npy",
                    "dtype": "float64",
                    "shape": [1000, 1000],
                    "count": 1000000,
                    "bytes": 8000128,
                    "created_at": "2026-11-21T03:59:25.977248+00:00",
                    "last_used_at": "2026-11-21T04:10:02.114201+00:00",
                }
            ]
        }
    )

    id: str = Field(description="The SHA-256 of the file: a `dataset` source names the array by it.")
    name: str = Field(description="A name for people; empty if none was given.")
    owner: str
    format: str = Field(
        ".npy",
        description="The format of the file: .npy, .npz (or another zip archive), HDF5, Parquet, Arrow, "
        "Arrow stream, text, gzip or zstd.",
    )
    dtype: str = Field(description="The dtype of a .npy file; empty for another format, which only jobs look into.")
    shape: list[int]
    count: int = Field(description="The number of elements of a .npy file; 0 for another format.")
    bytes: int = Field(description="The size of the file in bytes.")
    created_at: datetime
    last_used_at: datetime = Field(
        description="When the array was uploaded, or last needed by a job; unused arrays are removed after a while."
    )

    @classmethod
    def of(cls, dataset: Dataset) -> "DatasetView":
        contents = dataset.contents
        is_array = is_stored_name(contents.dtype)
        return cls(
            id=contents.id,
            name=dataset.name,
            owner=dataset.owner,
            format=".npy" if is_array else contents.dtype,
            dtype=contents.dtype if is_array else "",
            shape=list(contents.shape),
            count=prod(contents.shape) if is_array else 0,
            bytes=contents.bytes,
            created_at=dataset.created_at,
            last_used_at=dataset.last_used_at,
        )


class DatasetPage(BaseModel):
    """A page of uploaded arrays, newest first."""

    items: list[DatasetView]
    next_cursor: str | None = Field(description="The `cursor` of the next page; null on the last page.")


router = APIRouter(prefix=PREFIX, tags=["datasets"])
for_workers = APIRouter(prefix=PREFIX, tags=["datasets"])
"""The routes that workers use, too."""
changes = APIRouter(prefix=PREFIX, tags=["datasets"], route_class=JsonRoute)
"""The routes that take JSON and no file."""


@router.post(
    "",
    status_code=201,
    response_model=DatasetView,
    summary="Upload an array",
    responses={
        200: {"model": DatasetView, "description": "You had uploaded the array before."},
        201: {"headers": {"Location": {"description": "The path of the dataset.", "schema": {"type": "string"}}}},
        **answers(TooLarge, Invalid, TimedOut, NoRoom),
    },
    openapi_extra={
        "requestBody": {
            "required": False,  # no bytes are an array of no elements
            "content": {
                kind: {"schema": {"type": "string", "format": "binary"}}
                for kind in ("application/octet-stream", *_TEXT)
            },
        }
    },
)
async def upload_dataset(
    *,
    request: Request,
    user: User,
    context: Using,
    dtype: Annotated[
        DTypeName | None,
        Query(description="The dtype of bare elements in little-endian order; leave it out for a .npy file."),
    ] = None,
    name: Annotated[Name, Query(description=NAME_HELP)] = "",
) -> Response:
    """Keep an array or a table for `dataset` sources. The body is a .npy file, or with `dtype` the bare elements, which
    are kept as a .npy file of one dimension; or it is an .npz archive, a Zarr hierarchy in a zip archive, an HDF5,
    NetCDF-4, Parquet or Arrow file, or CSV, TSV or JSON lines, which may be compressed by gzip or zstd. The first
    bytes tell the format; plain text is taken where `name` ends in .csv, .tsv or .tab, or the `Content-Type` is
    `text/csv` or `text/tab-separated-values`. A file is kept once however often it is uploaded; its id is the SHA-256
    of the file. An upload that does not come whole is not kept; while it is on its way, it counts towards your quota as
    soon as its length is known."""
    raw = None if dtype is None else dtype_named(dtype)
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    text = is_text(name) or media_type in _TEXT
    upload = Upload(name=name, raw=raw, declared=declared_bytes(request.headers), text=text)
    async with body_of(request) as body:
        kept, new = await service.upload(context, user, upload, body)
    headers = {"Location": f"{PREFIX}/{kept.contents.id}"}
    return Response(DatasetView.of(kept).model_dump_json(), 201 if new else 200, headers, _JSON)


class DatasetQuery(BaseModel):
    """The parameters of a list of uploaded arrays."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    owner: Text | None = None
    bytes: int | None = Field(None, ge=0, le=1 << 62, description="List arrays whose file has this size in bytes.")
    limit: int = Field(50, ge=1, le=200)
    cursor: Text | None = Field(None, description="The `next_cursor` of the page before.")


@router.get("", summary="List uploaded arrays", responses=answers(Invalid))
async def list_datasets(*, user: User, context: Using, query: Annotated[DatasetQuery, Query()]) -> DatasetPage:
    """List the uploaded arrays that you may read, newest first. An array that several users hold is listed for each of
    them who shares it."""
    before = key_of(_LISTING, query.cursor)
    datasets = await context.database.read(
        repository.page, query.owner, query.bytes, query.limit + 1, before, viewer=context.viewer(user)
    )
    following = cursor_of(_LISTING, datasets[query.limit - 1].seq) if len(datasets) > query.limit else None
    return DatasetPage(items=[DatasetView.of(dataset) for dataset in datasets[: query.limit]], next_cursor=following)


@router.get("/{dataset_id}", summary="Show an uploaded array", responses=answers(NotFound, Invalid))
async def show_dataset(dataset_id: Id, user: User, context: Using) -> DatasetView:
    """Show your entry of an uploaded array, or else the entry of its first owner who shares it with you."""
    return DatasetView.of(await service.get(context, user, dataset_id))


@for_workers.get(
    "/{dataset_id}/file",
    summary="Download an uploaded array",
    response_class=Response,
    responses={
        200: {
            "description": "The file, as it was uploaded; bare elements are a .npy file.",
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
            "headers": {
                "ETag": {"description": "The entity tag of the file.", "schema": {"type": "string"}},
                "Repr-Digest": {"description": "The SHA-256 of the file (RFC 9530).", "schema": {"type": "string"}},
            },
        },
        206: {"description": "The bytes of the file that `Range` asks for."},
        304: {"description": "The file is the one that the ETag in `If-None-Match` stands for."},
        **answers(NotFound, RangeNotSatisfiable, Invalid),
    },
)
async def download_dataset(
    *,
    dataset_id: Id,
    user: MaybeWorker,
    context: Using,
    byte_range: ByteRange = None,
    if_range: IfRange = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Download an uploaded array. Its owners, those whom they share it with, admins and the workers of the service
    may do this; the workers have a token of their own. Where each api of a service has its own folder, the file may be
    with another api (404)."""
    whole = await service.stored(context, user, dataset_id)
    if if_none_match is not None and matches(if_none_match, whole.etag):
        return Response(status_code=304, headers={"ETag": whole.etag})
    span = whole.span(byte_range, if_range)
    file = await run_in_threadpool(service.opened, context, dataset_id)
    attachment = f'attachment; filename="{dataset_id}"'
    return whole.response(file, span, {"Content-Type": "application/octet-stream", "Content-Disposition": attachment})


class DatasetUses(BaseModel):
    """What reads an uploaded array, newest first."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"jobs": ["5f0c2a60-1f3d-4c55-9a52-0c1de1b4f0aa"], "batches": []}]}
    )

    jobs: list[UUID] = Field(
        description=f"The ids of the jobs, {MOST_USES} at most; those of batches are not among them."
    )
    batches: list[UUID] = Field(description=f"The ids of the batches of which a job reads it, {MOST_USES} at most.")


@router.get("/{dataset_id}/uses", summary="List what reads an uploaded array", responses=answers(NotFound, Invalid))
async def list_uses_of_dataset(dataset_id: Id, user: User, context: Using) -> DatasetUses:
    """List the jobs and batches that name an array, newest first, of those that you see among its newest 1,000 uses;
    parts of presets do not count."""
    used = await service.uses_of(context, user, dataset_id)
    return DatasetUses(jobs=[job_id for _, job_id in used.jobs], batches=list(used.batches))


class DatasetChange(BaseModel):
    """What its owner changes about an uploaded array."""

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra={"examples": [{"name": "march.npy"}]})

    name: Text = Field(description="The new name; empty for none. The name is for people: the id stays.")


@changes.patch(
    "/{dataset_id}",
    summary="Rename an uploaded array",
    responses=answers(BadRequest, Forbidden, NotFound, TooLarge, UnsupportedMedia, Invalid),
)
async def rename_dataset(dataset_id: Id, change: DatasetChange, user: User, context: Using) -> DatasetView:
    """Give your entry of an uploaded array another name. Jobs that were accepted before keep the name that they have
    for it."""
    return DatasetView.of(await service.rename(context, user, dataset_id, change.name))


@router.delete(
    "/{dataset_id}",
    status_code=204,
    summary="Delete an uploaded array",
    responses=answers(Forbidden, NotFound, Invalid),
)
async def delete_dataset(dataset_id: Id, user: User, context: Using) -> Response:
    """Give up an array. The file is removed when its last owner gives it up; a job that still needs the file fails
    and says so."""
    await service.delete(context, user, dataset_id)
    return Response(status_code=204)
