"""HTTP of stored results: clients download them, and may delete them before they expire."""

import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO
from uuid import UUID

import structlog
from fastapi import APIRouter, Query, Request
from fastapi.routing import APIRoute
from starlette.concurrency import iterate_in_threadpool, run_in_threadpool
from starlette.responses import Response
from structlog.typing import FilteringBoundLogger

from warpfold.app.artefacts import formats, repository
from warpfold.app.artefacts.store import ArtefactStore
from warpfold.app.auth.access_tokens import Principal
from warpfold.app.auth.audit import Action, Deed
from warpfold.app.http.bearer import User, authenticate
from warpfold.app.http.context import Context, Using, context_of
from warpfold.app.http.errors import (
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    RangeNotSatisfiable,
    TooMany,
    Unavailable,
)
from warpfold.app.http.file_bytes import ByteRange, IfNoneMatch, IfRange, StoredFile
from warpfold.app.http.headers import matches
from warpfold.app.http.openapi import answers
from warpfold.app.jobs import service
from warpfold.contract.artefact import Artefact, ArtefactFormat, ArtefactPart, PartName

log: FilteringBoundLogger = structlog.get_logger()

MEDIA_TYPES: dict[str, str] = {
    "npy": "application/octet-stream",
    "arrow": "application/vnd.apache.arrow.file",
    "parquet": "application/vnd.apache.parquet",
    "csv": "text/csv",
}
_RETRY_WITHOUT_PACKAGE_S = 3600


class _DownloadRoute(APIRoute):
    """A route that refuses CSV, which is never stored, before it looks at anything but the user where no place is free:
    of 250 such requests at once FastAPI takes as long for the parameters as for all the rest."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def placed(request: Request) -> Response:
            asked = request.query_params
            if asked.get("format") != "csv" or "part" in asked:
                return await handle(request)
            user, context = await authenticate(request), await context_of(request)
            async with context.heavy_answers.place(user.id):
                return await handle(request)

        return placed


router = APIRouter(prefix="/v1/jobs", tags=["jobs"], route_class=_DownloadRoute)


@router.get(
    "/{job_id}/artefact",
    summary="Download the stored result of a job",
    response_class=Response,
    responses={
        200: {
            "description": "The file. The length of a stored file is known; other formats are made while they are "
            "sent.",
            "content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind in MEDIA_TYPES.values()},
            "headers": {
                "ETag": {"description": "The entity tag of the file.", "schema": {"type": "string"}},
                "Repr-Digest": {
                    "description": "The SHA-256 of a stored file (RFC 9530).",
                    "schema": {"type": "string"},
                },
            },
        },
        206: {"description": "The bytes of a stored file that `Range` asks for."},
        304: {"description": "The file is the one that the ETag in `If-None-Match` stands for."},
        **answers(NotFound, Conflict, Gone, RangeNotSatisfiable, Invalid, TooMany),
    },
)
async def download_artefact(
    *,
    job_id: UUID,
    user: User,
    context: Using,
    format: Annotated[
        ArtefactFormat | None,
        Query(description="Format of the answer, one of the `formats` of the artefact; by default the stored format."),
    ] = None,
    part: Annotated[
        PartName | None,
        Query(
            description="The stored file to send as it is, one of the `parts` of the artefact; by default the first "
            "part."
        ),
    ] = None,
    byte_range: ByteRange = None,
    if_range: IfRange = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Download a result that was too large to stand in the job. A job whose whole result stands in it has no
    artefact (404). A job that has not succeeded has no artefact yet (409). An artefact that has expired or was
    deleted is gone (410)."""
    artefact, folder = await _stored(context, user, job_id)
    stored = _part(artefact, format, part)
    chosen = stored.format if stored is not None else format or "npy"
    name = f"{job_id}{'' if stored is None or stored is artefact.parts[0] else f'-{stored.name}'}.{chosen}"
    etag = f'"{stored.sha256}"' if stored is not None else f'W/"{artefact.sha256}-{chosen}"'
    headers = {"ETag": etag, "Content-Disposition": f'attachment; filename="{name}"'}
    if if_none_match is not None and matches(if_none_match, etag.removeprefix("W/")):
        return Response(status_code=304, headers={"ETag": etag})
    if stored is None:
        pieces = _csv(context, user, artefact, folder) if chosen == "csv" else _converted(chosen, artefact, folder)
        unranged = {**headers, "Accept-Ranges": "none"}
        return await context.heavy_answers.answer(user.id, pieces, MEDIA_TYPES[chosen], unranged)
    whole = StoredFile(stored.bytes, stored.sha256)
    span = whole.span(byte_range, if_range)
    file = await run_in_threadpool(_opened, folder / f"{stored.name}.{stored.format}")
    return whole.response(file, span, {**headers, "Content-Type": MEDIA_TYPES[stored.format]})


@router.delete(
    "/{job_id}/artefact",
    status_code=204,
    summary="Delete the stored result of a job",
    responses=answers(Forbidden, NotFound, Conflict, Gone, Invalid),
)
async def delete_artefact(job_id: UUID, user: User, context: Using) -> Response:
    """Delete a stored result before it expires; it then no longer counts towards the quota. The job stays, with its
    preview. Only the owner of the job and admins may do this."""
    job = await service.get(context, user, job_id)
    await _stored(context, user, job_id)
    if job.owner_id != user.id and not user.is_admin:
        raise Forbidden(f"The job belongs to {job.owner}; only its owner and admins may delete its stored result.")
    kept = await context.database.read(repository.get, job_id)
    deed = Deed(user, Action.DELETE_RESULT, str(job_id), job.owner)
    if kept is None or not await context.database.run(deed.done, repository.release, job_id):
        raise _gone()
    await run_in_threadpool(_store(context).remove, kept.name)
    return Response(status_code=204)


async def _stored(context: Context, user: Principal, job_id: UUID) -> tuple[Artefact, Path]:
    """The stored result of a job and its folder. Raises NotFound, Conflict and Gone."""
    result = json.loads(await service.result(context, user, job_id))
    described = result.get("artefact")
    if described is None:
        raise NotFound(f"No part of this job's result is stored in files: all of it is in /v1/jobs/{job_id}/result.")
    kept = await context.database.read(repository.get, job_id)
    if kept is None:
        raise _gone()
    return Artefact.model_validate(described, strict=False), _store(context).path(kept.name)


def _store(context: Context) -> ArtefactStore:
    return ArtefactStore(context.settings.artefacts_dir())


def _gone() -> Gone:
    return Gone("The stored result was deleted, or removed when its time was over. The job can be run again.")


def _part(artefact: Artefact, format: ArtefactFormat | None, part: PartName | None) -> ArtefactPart | None:
    """The stored file of the requested format; None for a format that is converted on the way. Raises Invalid."""
    if format is not None and format not in artefact.formats:
        raise Invalid.of("format", f"should be one of {', '.join(artefact.formats)}")
    if part is None:
        first = artefact.parts[0]
        return first if format in (None, first.format) else None
    stored = artefact.part(part)
    if stored is None:
        raise Invalid.of("part", f"should be one of {', '.join(each.name for each in artefact.parts)}")
    if format not in (None, stored.format):
        raise Invalid.of("format", f"should be {stored.format} or left out: a part comes as it is stored")
    return stored


async def _csv(context: Context, user: Principal, artefact: Artefact, folder: Path) -> AsyncIterator[bytes]:
    """A file of CSV in pieces, each of which is made in the process apart once the network has taken the one before."""
    place: formats.CsvPlace | None = formats.CSV_BEGIN
    while place is not None:
        with _faults(folder):
            piece, place = await context.heavy_answers.made(user.id, formats.csv_piece, artefact, folder, place)
        yield piece


async def _converted(format: str, artefact: Artefact, folder: Path) -> AsyncIterator[bytes]:
    """A file of another format in pieces. pyarrow makes them on a thread, without the interpreter's lock."""
    make = formats.arrow_of if format == "arrow" else formats.parquet_of
    with _faults(folder):
        async for piece in iterate_in_threadpool(make(artefact, folder)):
            yield piece


@contextmanager
def _faults(folder: Path) -> Iterator[None]:
    """Turn what goes wrong while a file is made into Unavailable."""
    try:
        yield
    except ImportError:
        raise Unavailable(
            "This server cannot make files of this format: pyarrow is not installed there. Stored files "
            "(format=npy) need no package.",
            _RETRY_WITHOUT_PACKAGE_S,
        ) from None
    except OSError as error:
        raise _unreadable(folder, error) from error


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> Unavailable:
    log.error("a stored result cannot be read", path=str(path), error=str(error))
    return Unavailable("The service cannot read the stored result from its disk.", 60)
