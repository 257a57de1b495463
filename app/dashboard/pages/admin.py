"""The page Admin: it manages users, tokens and quotas, and makes workers take no more jobs."""

from typing import Annotated, Any

from fastapi import Form
from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from warpfold.app.admin import service
from warpfold.app.admin.views import LimitsView, TokenRequest
from warpfold.app.auth import users
from warpfold.app.auth.access_tokens import Issued, Principal, Role, list_tokens
from warpfold.app.auth.users import UserName
from warpfold.app.catalogue.repository import all_workers
from warpfold.app.dashboard.rendering import page
from warpfold.app.dashboard.routes import router as pages
from warpfold.app.dashboard.visitors import Administrator
from warpfold.app.http.context import Context, Using
from warpfold.app.http.error_handlers import as_api_error
from warpfold.app.http.errors import ApiError

Text = Annotated[str, Form(max_length=128)]

router = pages()


@router.get("/admin")
async def show(request: Request, visitor: Administrator, context: Using) -> Response:
    """Show the page."""
    return await _page(request, visitor, context)


@router.post("/admin/tokens")
async def issue(
    *,
    request: Request,
    visitor: Administrator,
    context: Using,
    user: Text = "",
    role: Text = "",
    label: Text = "",
    days: Text = "",
) -> Response:
    """Make a token, and show it this once."""
    typed = {
        "user": user.strip(),
        "role": role or None,
        "label": label.strip(),
        "expires_in_days": _number(days),
    }
    try:
        wanted = TokenRequest.model_validate(typed)
        issued = await service.issue_token(context, wanted.user, wanted.role, wanted.label, wanted.expires_in_days)
    except ValidationError as error:
        return await _page(request, visitor, context, error=as_api_error(error), typed=typed)
    except ApiError as error:
        return await _page(request, visitor, context, error=error, typed=typed)
    return await _page(request, visitor, context, issued=issued)


@router.post("/admin/tokens/{token_id}/revoke")
async def revoke(token_id: int, visitor: Administrator, context: Using) -> Response:
    """Make a token useless, and with it the sessions that were opened with it."""
    await service.revoke_token(context, token_id)
    return _back("tokens")


@router.post("/admin/users/{name}")
async def put_user(
    *,
    name: str,
    request: Request,
    visitor: Administrator,
    context: Using,
    role: Text = "",
    running: Text = "",
    queued: Text = "",
    gpu_seconds_per_day: Text = "",
    high_per_hour: Text = "",
) -> Response:
    """Give a user a role and limits; an empty limit follows the service's settings."""
    try:
        user = TypeAdapter(UserName).validate_python(name)
        limits = LimitsView.model_validate(
            {
                "running": _number(running),
                "queued": _number(queued),
                "gpu_seconds_per_day": _number(gpu_seconds_per_day),
                "high_per_hour": _number(high_per_hour),
            }
        )
        await service.put_user(context, visitor, user, TypeAdapter(Role).validate_python(role))
        await service.put_limits(context, user, limits.limits())
    except ValidationError as error:
        return await _page(request, visitor, context, error=as_api_error(error))
    except ApiError as error:
        return await _page(request, visitor, context, error=error)
    return _back("users")


@router.post("/admin/workers/{worker_id:path}/drain")
async def drain(worker_id: str, visitor: Administrator, context: Using) -> Response:
    """Let a worker end its job and take no more."""
    await service.drain(context, worker_id)
    return _back("workers")


@router.post("/admin/workers/{worker_id:path}/resume")
async def resume(worker_id: str, visitor: Administrator, context: Using) -> Response:
    """Let a worker take jobs again."""
    await service.resume(context, worker_id)
    return _back("workers")


async def _page(
    request: Request,
    visitor: Principal,
    context: Context,
    *,
    error: ApiError | None = None,
    issued: Issued | None = None,
    typed: dict[str, Any] | None = None,
) -> Response:
    everybody = await context.database.read(users.list_users)
    quotas = {quota.user: quota for quota in await service.quotas_for(context, visitor)}
    answer = page(
        request,
        "admin",
        200 if error is None else error.status,
        user=visitor,
        users=[(user, quotas.get(user.name)) for user in everybody],
        tokens=await context.database.read(list_tokens),
        workers=await context.database.read(all_workers),
        roles=list(Role),
        error=error,
        issued=issued,
        typed=typed or {},
    )
    if issued is not None:
        answer.headers["Cache-Control"] = "no-store"
    return answer


def _back(section: str) -> Response:
    return RedirectResponse(f"/admin#{section}", 303)


def _number(text: str) -> int | float | str | None:
    text = text.strip()
    try:
        return None if not text else int(text) if text.isdecimal() else float(text)
    except ValueError:
        return text
