"""The work of the administration's requests, one function for each request. The routes have checked before that the
caller may do it."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta

from sqlalchemy import Connection

from warpfold.app.admin import removal
from warpfold.app.admin.removal import Removal
from warpfold.app.admin.views import OwnTokenRequest, TokenRequest
from warpfold.app.auth import access_tokens, audit, users
from warpfold.app.auth.access_tokens import Issued, OutlivesMaker, Principal, Role, RoleMismatch, UserRemoved
from warpfold.app.auth.audit import Action, Deed, of_key
from warpfold.app.auth.users import UserInfo
from warpfold.app.datasets.store import Store
from warpfold.app.datasets.sweep import sweep
from warpfold.app.http.context import Context
from warpfold.app.http.errors import Conflict, Forbidden, Invalid, NotFound
from warpfold.app.jobs import workers
from warpfold.app.quotas import quota
from warpfold.app.quotas.quota import Limits, UserQuota


async def put_user(context: Context, admin: Principal, name: str, role: Role) -> UserInfo:
    """Give a user, who is created if new, a role. Raises Conflict where admins would lock themselves out."""
    if name == admin.name and role is not admin.role:
        raise Conflict("You cannot take the role admin from yourself; another admin can do it.")
    try:
        deed = Deed(admin, Action.SET_ROLE, name, name, {"role": role.value})
        return await context.database.run(deed.done, users.put_user, name, role)
    except UserRemoved as error:
        raise Conflict(f"{error}.") from None


async def issue_token(context: Context, by: Principal, wanted: TokenRequest) -> Issued:
    """Make a token for a user. Raises Conflict if the user has another role, or was removed."""

    def issue(connection: Connection) -> Issued:
        issued = access_tokens.issue_token(
            connection,
            wanted.user,
            wanted.role,
            wanted.label,
            wanted.expires_in_days,
            scopes=wanted.scopes,
            made_by=by.name,
        )
        audit.record(connection, of_key(by, Action.MAKE_KEY, issued.info))
        return issued

    try:
        return await context.database.run(issue)
    except RoleMismatch as error:
        raise Conflict(f"{error}; change it first, with PUT /v1/users/{{name}}.") from None
    except UserRemoved as error:
        raise Conflict(f"{error}.") from None


async def issue_own_token(context: Context, user: Principal, wanted: OwnTokenRequest) -> Issued:
    """Make a further token for the user. Raises Invalid for what the user, or the token in use, may not give."""

    def issue(connection: Connection) -> Issued:
        issued = access_tokens.issue_own_token(connection, user, wanted.label, wanted.expires_in_days, wanted.scopes)
        audit.record(connection, of_key(user, Action.MAKE_KEY, issued.info))
        return issued

    try:
        return await context.database.run(issue)
    except RoleMismatch as error:
        raise Invalid.of("scopes", str(error)) from None
    except OutlivesMaker as error:
        raise Invalid.of("expires_in_days", str(error)) from None


async def rotate_token(
    context: Context,
    by: Principal,
    both_hold_hours: float,
    *,
    shown: bytes | None = None,
    token_id: int | None = None,
    of_user: int | None = None,
) -> Issued | None:
    """Give a token a new secret; None if there is no such token in force, or it is not the user's."""
    both_hold = timedelta(hours=both_hold_hours)

    def rotate(connection: Connection) -> Issued | None:
        issued = access_tokens.rotate_token(connection, shown, token_id=token_id, of_user=of_user, both_hold=both_hold)
        if issued is not None:
            audit.record(connection, of_key(by, Action.ROTATE_KEY, issued.info))
        return issued

    issued = await context.database.run(rotate)
    context.access.forget()
    return issued


async def revoke_token(context: Context, by: Principal, token_id: int, *, of_user: int | None = None) -> None:
    """Make a token useless. Raises NotFound."""

    def revoke(connection: Connection) -> bool:
        revoked = access_tokens.revoke_token(connection, token_id, of_user=of_user)
        for info in access_tokens.list_tokens(connection, token_id) if revoked else ():
            audit.record(connection, of_key(by, Action.REMOVE_KEY, info))
        return revoked

    if not await context.database.run(revoke):
        whose = " of yours" if of_user is not None else ""
        raise NotFound(f"There is no token {token_id}{whose} in force.")


async def removal_of(context: Context, name: str) -> Removal:
    """What the removal of a user would do. Raises NotFound."""
    planned = await context.database.search(removal.planned, name)
    if planned is None:
        raise NotFound(f"There is no user {name!r}.")
    return planned


async def remove_user(context: Context, admin: Principal, name: str) -> Removal:
    """Remove a user. Raises NotFound, and Conflict where admins would remove themselves."""
    if name == admin.name:
        raise Conflict("You cannot remove yourself; another admin can do it.")
    done = await context.database.run(Deed(admin, Action.REMOVE_USER, name, name).done, removal.remove, name)
    if done is None:
        raise NotFound(f"There is no user {name!r}.")
    removed, arrays = done
    store = Store(context.settings.datasets_dir())
    for dataset_id in arrays:
        await context.database.run(sweep, store, dataset_id)
    return removed


async def quotas_for(context: Context, viewer: Principal) -> Sequence[UserQuota]:
    """Everybody's quotas for admins, for others their own."""
    defaults = Limits.of(context.settings)
    if viewer.is_admin:
        return await context.database.search(quota.all_quotas, defaults)
    return [await quota_of(context, viewer, viewer.name)]


async def quota_of(context: Context, viewer: Principal, user: str) -> UserQuota:
    """A user's quotas. Raises Forbidden, or NotFound if there is no such user."""
    if user != viewer.name and not viewer.is_admin:
        raise Forbidden("Only admins may see the quotas of others.")
    user_quota = await context.database.search(quota.quota_of, user, Limits.of(context.settings))
    if user_quota is None:
        raise NotFound(f"There is no user {user!r}.")
    return user_quota


async def put_limits(context: Context, admin: Principal, user: str, own: Limits) -> UserQuota:
    """Set a user's limits. Raises NotFound."""

    def put(connection: Connection) -> UserQuota | None:
        quota.put_limits(connection, user, own)
        return quota.quota_of(connection, user, Limits.of(context.settings))

    deed = Deed(admin, Action.SET_QUOTA, user, user, asdict(own))
    user_quota = await context.database.run(deed.done, put)
    if user_quota is None:
        raise NotFound(f"There is no user {user!r}.")
    return user_quota


async def drain(context: Context, admin: Principal, worker: str) -> None:
    """Let a worker finish its job and take no more. Raises NotFound."""
    _known(await context.database.run(Deed(admin, Action.DRAIN, worker).done, workers.drain, worker), worker)


async def resume(context: Context, admin: Principal, worker: str) -> None:
    """Let a worker take jobs again. Raises NotFound."""
    _known(await context.database.run(Deed(admin, Action.RESUME, worker).done, workers.resume, worker), worker)


def _known(known: bool, worker: str) -> None:
    if not known:
        raise NotFound(f"No worker {worker!r} has reported itself; /v1/workers lists those that have.")
