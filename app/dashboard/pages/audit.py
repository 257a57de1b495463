"""The page Audit log: what administrators and keys did that changes something."""

from urllib.parse import urlencode

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response

from warpfold.app.admin.audit import AuditPage, AuditQuery, page_of
from warpfold.app.auth.audit import Action
from warpfold.app.dashboard.rendering import page
from warpfold.app.dashboard.routes import router as pages
from warpfold.app.dashboard.visitors import Administrator
from warpfold.app.http.context import Using
from warpfold.app.http.error_handlers import as_api_error
from warpfold.app.http.errors import ApiError

router = pages()


@router.get("/admin/audit")
async def show(request: Request, visitor: Administrator, context: Using) -> Response:
    """Show the newest entries that the address chooses; fields that were left empty choose nothing."""
    typed = {name: value.strip() for name, value in request.query_params.items() if value.strip()}
    error: ApiError | None = None
    shown = AuditPage(items=[], next_cursor=None)
    try:
        shown = await page_of(context, AuditQuery.model_validate(typed))
    except ValidationError as refused:
        error = as_api_error(refused)
    except ApiError as refused:
        error = refused
    following = urlencode({**typed, "cursor": shown.next_cursor}) if shown.next_cursor else None
    return page(
        request,
        "audit",
        200 if error is None else error.status,
        user=visitor,
        entries=shown.items,
        following=following,
        actions=list(Action),
        typed=typed,
        error=error,
    )
