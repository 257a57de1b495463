"""The page Admin: it manages users, keys and quotas, and makes workers take no more jobs."""

from typing import Annotated

from fastapi import Depends
from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from warpfold.app.admin import service
from warpfold.app.admin.views import LimitsView, TokenRequest
from warpfold.app.auth import users
from warpfold.app.auth.access_tokens import Issued, Principal, Role, list_tokens
from warpfold.app.auth.scopes import Scope
from warpfold.app.auth.users import UserName
from warpfold.app.catalogue.repository import all_workers
from warpfold.app.dashboard.forms.keys import NOTHING_TYPED, BothHold, Text, TypedKey, number_of, typed_key
from warpfold.app.dashboard.rendering import page
from warpfold.app.dashboard.routes import router as pages
from warpfold.app.dashboard.visitors import Administrator
from warpfold.app.http.context import Context, Using
from warpfold.app.http.error_handlers import as_api_error
from warpfold.app.http.errors import ApiError, NotFound

router = pages()


@router.get("/admin")
async def show(request: Request, visitor: Administrator, context: Using) -> Response:
    """Show the page."""
    return await _page(request, visitor, context)


@router.post("/admin/keys")
async def make_key(
    *,
    request: Request,
    visitor: Administrator,
    context: Using,
    fields: Annotated[TypedKey, Depends(typed_key)],
    user: Text = "",
    role: Text = "",
) -> Response:
    """Make a key, and show it this once."""
    # All scopes stand for those of the role, whichever the user has: the form does not know it.
    scopes = None if set(fields["scopes"]) == set(Scope) else fields["scopes"]
    typed = {**fields, "scopes": scopes, "user": user.strip(), "role": role or None}
    try:
        issued = await service.issue_token(context, visitor, TokenRequest.model_validate(typed))
    except ValidationError as error:
        return await _page(request, visitor, context, error=as_api_error(error), typed=typed)
    except ApiError as error:
        return await _page(request, visitor, context, error=error, typed=typed)
    return await _page(request, visitor, context, issued=issued)


@router.post("/admin/keys/{token_id}/rotate")
async def rotate_key(
    token_id: int, request: Request, visitor: Administrator, context: Using, both_hold_hours: BothHold = 0.0
) -> Response:
    """Give a key a new secret, and show it this once."""
    issued = await service.rotate_token(context, visitor, both_hold_hours, token_id=token_id)
    if issued is None:
        raise NotFound(f"There is no key {token_id} in force.")
    return await _page(request, visitor, context, issued=issued)


@router.post("/admin/keys/{token_id}/remove")
async def remove_key(token_id: int, visitor: Administrator, context: Using) -> Response:
    """Make a key useless, and with it the sessions that were opened with it."""
    await service.revoke_token(context, visitor, token_id)
    return _back("keys")


@router.get("/admin/users/{name}/removal")
async def show_removal(name: str, request: Request, visitor: Administrator, context: Using) -> Response:
    """Show what would become of what a user has, before the user is removed."""
    removal = await service.removal_of(context, name)
    return page(request, "removal", user=visitor, removal=removal, retention_days=context.settings.retention_days)


@router.post("/admin/users/{name}/remove")
async def remove_user(name: str, visitor: Administrator, context: Using) -> Response:
    """Remove a user."""
    await service.remove_user(context, visitor, name)
    return _back("users")


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
                "running": number_of(running),
                "queued": number_of(queued),
                "gpu_seconds_per_day": number_of(gpu_seconds_per_day),
                "high_per_hour": number_of(high_per_hour),
            }
        )
        await service.put_user(context, visitor, user, TypeAdapter(Role).validate_python(role))
        await service.put_limits(context, visitor, user, limits.limits())
    except ValidationError as error:
        return await _page(request, visitor, context, error=as_api_error(error))
    except ApiError as error:
        return await _page(request, visitor, context, error=error)
    return _back("users")


@router.post("/admin/workers/{worker_id:path}/drain")
async def drain(worker_id: str, visitor: Administrator, context: Using) -> Response:
    """Let a worker end its job and take no more."""
    await service.drain(context, visitor, worker_id)
    return _back("workers")


@router.post("/admin/workers/{worker_id:path}/resume")
async def resume(worker_id: str, visitor: Administrator, context: Using) -> Response:
    """Let a worker take jobs again."""
    await service.resume(context, visitor, worker_id)
    return _back("workers")


async def _page(
    request: Request,
    visitor: Principal,
    context: Context,
    *,
    error: ApiError | None = None,
    issued: Issued | None = None,
    typed: TypedKey = NOTHING_TYPED,
) -> Response:
    everybody = await context.database.read(users.list_users)
    quotas = {quota.user: quota for quota in await service.quotas_for(context, visitor)}
    answer = page(
        request,
        "admin",
        200 if error is None else error.status,
        user=visitor,
        users=[(user, quotas.get(user.name)) for user in everybody],
        keys=await context.database.read(list_tokens),
        scopes=list(Scope),
        workers=await context.database.read(all_workers),
        roles=list(Role),
        error=error,
        issued=issued,
        typed=typed,
    )
    if issued is not None:
        answer.headers["Cache-Control"] = "no-store"
    return answer


def _back(section: str) -> Response:
    return RedirectResponse(f"/admin#{section}", 303)
