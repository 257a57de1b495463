"""Style, scripts and pictures."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from warpfold.app.dashboard.assets import VEGA, assets, url_of
from warpfold.app.dashboard.shared import Sharing
from warpfold.app.http.errors import NotFound, Unavailable

router = APIRouter(include_in_schema=False)


@router.get("/assets/{mark}/{name}")
async def serve(mark: str, name: str, request: Request, shared: Sharing) -> Response:
    """An asset under the address that pages name; under any other there is none, so that nobody keeps a wrong one."""
    if name not in (VEGA, *assets()) or request.url.path != url_of(name):
        raise NotFound("There is no such file, or a newer one has taken its place.")
    if name != VEGA:
        return assets()[name].response(request)
    try:
        return (await shared.vega.asset()).response(request)
    except OSError as error:
        raise Unavailable("The charts' script could not be made; the log says why.", 30) from error
