"""Data: the uploaded files that a visitor may read, and the page of each, with its arrays or columns and its jobs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Form, Path, Query
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from warpfold.app.auth.access_tokens import Principal
from warpfold.app.auth.scopes import Scope
from warpfold.app.auth.visibility import Viewer
from warpfold.app.batches import repository as batch_rows
from warpfold.app.batches.repository import Batch
from warpfold.app.dashboard.rendering import page, part
from warpfold.app.dashboard.routes import LargeFormRoute
from warpfold.app.dashboard.routes import router as pages
from warpfold.app.dashboard.rows import row_of
from warpfold.app.dashboard.visitors import Visitor
from warpfold.app.datasets import repository, service, uses
from warpfold.app.datasets.endpoints import DatasetView
from warpfold.app.datasets.repository import Dataset
from warpfold.app.datasets.service import Upload
from warpfold.app.http.bodies import body_of
from warpfold.app.http.context import Using
from warpfold.app.http.cursors import cursor_of, key_of
from warpfold.app.http.errors import ApiError
from warpfold.app.http.requests import declared_bytes
from warpfold.app.jobs import listing
from warpfold.app.jobs.store import Job
from warpfold.app.sources import InspectRequest, look
from warpfold.contract.sources.dataset import DatasetSource
from warpfold.kernels.formats.signature import is_text

_LISTING = "datasets"
_PAGE = 50

Id = Annotated[str, Path(pattern=r"^[0-9a-f]{64}$")]
Name = Annotated[str, Query(max_length=1024, pattern=r"^[^\x00]*$")]
_LONGEST_NAME = 128

router = pages()
uploads = pages(LargeFormRoute)


@dataclass(frozen=True, slots=True)
class DatasetRow:
    """An uploaded file as a page shows it. `called` is its name, or the beginning of its id where it has none."""

    view: DatasetView
    called: str
    shape: str
    own: bool

    @classmethod
    def of(cls, dataset: Dataset, visitor: Principal) -> "DatasetRow":
        view = DatasetView.of(dataset)
        return cls(
            view=view,
            called=view.name or view.id[:12],
            shape=" × ".join(f"{length:,}" for length in view.shape),
            own=(visitor.is_admin or dataset.owner_id == visitor.id) and visitor.may(Scope.MANAGE),
        )


@router.get("/datasets")
async def show_all(
    request: Request,
    visitor: Visitor,
    context: Using,
    owner: Annotated[str, Query(max_length=64, pattern=r"^[^\x00]*$")] = "",
    cursor: Annotated[str, Query(max_length=321, pattern=r"^[^\x00]*$")] = "",
) -> Response:
    """The list, newest first, of all owners or of one."""
    before = key_of(_LISTING, cursor or None)
    listed = await context.database.read(
        repository.page, owner.strip() or None, None, _PAGE + 1, before, viewer=context.viewer(visitor)
    )
    older = cursor_of(_LISTING, listed[_PAGE - 1].seq) if len(listed) > _PAGE else None
    rows = [DatasetRow.of(dataset, visitor) for dataset in listed[:_PAGE]]
    return page(request, "datasets", user=visitor, rows=rows, owner=owner.strip(), older=older, paged=bool(cursor))


@uploads.post("/datasets")
async def upload(request: Request, visitor: Visitor, context: Using, name: Name) -> Response:
    """Keep the file that the body is. The answer names its page, and has its id and its name."""
    named = name[-_LONGEST_NAME:]
    wanted = Upload(name=named, raw=None, declared=declared_bytes(request.headers), text=is_text(named))
    async with body_of(request) as body:
        kept, new = await service.upload(context, visitor, wanted, body)
    headers = {"Location": f"/datasets/{kept.contents.id}", "Cache-Control": "no-store"}
    return Response(DatasetView.of(kept).model_dump_json(), 201 if new else 200, headers, "application/json")


@router.get("/datasets/{dataset_id}")
async def show(dataset_id: Id, request: Request, visitor: Visitor, context: Using) -> Response:
    """The page of a file: what the service knows of it, and which jobs read it."""
    dataset = await service.get(context, visitor, dataset_id)
    read_by = await context.database.read(_readers, dataset_id, context.viewer(visitor))
    rows = [row_of(reader, visitor) for reader in read_by]
    return page(request, "dataset", user=visitor, row=DatasetRow.of(dataset, visitor), readers=rows)


@router.get("/datasets/{dataset_id}/contents")
async def contents(dataset_id: Id, request: Request, visitor: Visitor, context: Using) -> Response:
    """The arrays or columns of a file, which a process of its own finds."""
    dataset = await service.get(context, visitor, dataset_id)
    source = DatasetSource(type="dataset", id=dataset_id, name=dataset.name)
    model: dict[str, Any] = {"id": dataset_id, "inspection": None, "why": ""}
    try:
        model["inspection"] = await look(context, visitor, InspectRequest(source=source))
    except ApiError as error:
        model["why"] = "; ".join(problem.message for problem in error.errors) or str(error.detail)
    return part("dataset_contents", **model).response(request)


@router.post("/datasets/{dataset_id}/name")
async def rename(
    dataset_id: Id, visitor: Visitor, context: Using, name: Annotated[str, Form(max_length=_LONGEST_NAME)] = ""
) -> Response:
    """Give a file another name."""
    await service.rename(context, visitor, dataset_id, name.strip())
    return RedirectResponse(f"/datasets/{dataset_id}", 303)


@router.post("/datasets/{dataset_id}/delete")
async def delete(dataset_id: Id, visitor: Visitor, context: Using) -> Response:
    """Give up a file, and go back to the list."""
    await service.delete(context, visitor, dataset_id)
    return RedirectResponse("/datasets", 303)


def _readers(connection: Connection, dataset_id: str, viewer: Viewer) -> Sequence[Job | Batch]:
    """The newest jobs and batches that read an array, of those that the viewer sees."""
    used = uses.newest(connection, dataset_id, viewer, service.MOST_USES)
    brought = batch_rows.listed(connection, used.batches)
    return [*listing.listed(connection, [seq for seq, _ in used.jobs]), *brought]
