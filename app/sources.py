"""HTTP of looking first: the contents of a file, before a job reads it."""

from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from warpfold.app.auth.access_tokens import Principal
from warpfold.app.datasets import repository
from warpfold.app.http.bearer import User
from warpfold.app.http.context import Context, Using
from warpfold.app.http.error_handlers import as_api_error
from warpfold.app.http.errors import BadRequest, Forbidden, Invalid, TooLarge, TooMany, Unavailable, UnsupportedMedia
from warpfold.app.http.openapi import answers
from warpfold.app.http.requests import JsonRoute
from warpfold.app.inspection.inspections import TooManyInspections
from warpfold.contract.sources.inspection import FileSources, Inspection
from warpfold.kernels import errors

router = APIRouter(prefix="/v1/sources", tags=["sources"], route_class=JsonRoute)

_RETRY_AFTER_S = 2
_PROBLEMS = (BadRequest, Forbidden, TooLarge, UnsupportedMedia, Invalid, TooMany)


class InspectRequest(BaseModel):
    """The files to inspect, named as a job names them."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        json_schema_extra={"examples": [{"source": {"type": "table", "path": "sales.parquet"}}]},
    )

    source: FileSources
    timeout_s: Annotated[float, Field(gt=0, le=60, description="The time limit of the inspection, in seconds.")] = 10.0


@router.post("/inspect", summary="Look into a file", responses=answers(*_PROBLEMS))
async def inspect_source(request: InspectRequest, user: User, context: Using) -> Inspection:
    """List the arrays or the columns of a file, of an upload, or of the first file of many, with their dtypes and
    shapes. The list has nulls, chunks and sizes as far as the file's metadata tell. Elements are not read, except for
    the first block of a table of text. `column`, `array`, `select` and `filter` of the source make no difference.

    The api reads the files of its own machine, which should have the same data roots as the workers. It reads them
    in a separate process, with limits of time and memory. A user may have two inspections under way at most.
    """
    return await look(context, user, request)


async def look(context: Context, user: Principal, request: InspectRequest) -> Inspection:
    """Look into the files of a request, which the user may read. Raises ApiError."""
    for dataset_id, field in request.source.dataset_ids.items():
        if not await context.database.read(repository.get, dataset_id, context.viewer(user)):
            raise Invalid.of(f"source.{field}", "there is no dataset with this id that you may read, or it was deleted")
    try:
        settings = context.settings
        request.source.check("source", settings.data_roots, settings.max_values, settings.listed_places)
        return await context.inspections.inspect(user.id, request.source, request.timeout_s)
    except errors.InvalidInput as error:
        raise as_api_error(error) from None
    except TooManyInspections as error:
        raise TooMany(str(error), _RETRY_AFTER_S) from None
    except errors.Unavailable as error:
        raise Unavailable(f"{error}.") from None
