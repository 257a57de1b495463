"""Account: one's own tokens, and the way out of every browser."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from warpfold.app.auth.access_tokens import list_tokens, revoke_token
from warpfold.app.dashboard.rendering import page
from warpfold.app.dashboard.routes import router as pages
from warpfold.app.dashboard.visitors import Visitor
from warpfold.app.http.context import Using
from warpfold.app.http.errors import NotFound

router = pages()


@router.get("/account")
async def show(request: Request, visitor: Visitor, context: Using) -> Response:
    """The whole page."""
    found = await context.database.read(list_tokens, of_user=visitor.id)
    return page(request, "account", user=visitor, tokens=found)


@router.post("/account/tokens/{token_id}/revoke")
async def revoke(token_id: int, visitor: Visitor, context: Using) -> Response:
    """Make a token of the visitor's useless, and with it the sessions that were opened with it."""
    if not await context.database.run(revoke_token, token_id, of_user=visitor.id):
        raise NotFound(f"There is no token {token_id} of yours in force.")
    return RedirectResponse("/account", 303)
