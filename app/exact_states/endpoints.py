"""HTTP of exact states."""

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool

from warpfold.app.exact_states import service
from warpfold.app.exact_states.views import Merged, MergeRequest
from warpfold.app.http.bearer import User
from warpfold.app.http.errors import BadRequest, Forbidden, Invalid, TooLarge, UnsupportedMedia
from warpfold.app.http.openapi import answers
from warpfold.app.http.requests import JsonRoute

router = APIRouter(prefix="/v1/states", tags=["exact states"], route_class=JsonRoute)

_PROBLEMS = (BadRequest, Forbidden, TooLarge, UnsupportedMedia, Invalid)


@router.post("/merge", summary="Merge exact states", responses=answers(*_PROBLEMS))
async def merge(request: MergeRequest, user: User) -> Merged:
    """Add exact states of any jobs and machines, in any order, to the state and the value that one job over all their
    elements would have given: the same bits."""
    # Thousands of states take tenths of a second.
    return await run_in_threadpool(service.merge, request)
