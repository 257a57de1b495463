"""The work of the administration's requests, one function for each request. The routes have checked before that the
caller may do it."""

from collections.abc import Sequence

from sqlalchemy import Connection

from warpfold.app.auth import access_tokens, users
from warpfold.app.auth.access_tokens import Issued, Principal, Role, RoleMismatch
from warpfold.app.auth.users import UserInfo
from warpfold.app.http.context import Context
from warpfold.app.http.errors import Conflict, Forbidden, NotFound
from warpfold.app.jobs import workers
from warpfold.app.quotas import quota
from warpfold.app.quotas.quota import Limits, UserQuota


async def put_user(context: Context, admin: Principal, name: str, role: Role) -> UserInfo:
    """Give a user, who is created if new, a role. Raises Conflict where admins would lock themselves out."""
    if name == admin.name and role is not admin.role:
        raise Conflict("You cannot take the role admin from yourself; another admin can do it.")
    return await context.database.run(users.put_user, name, role)


async def issue_token(context: Context, user: str, role: Role | None, label: str, days: float | None = None) -> Issued:
    """Make a token that expires after `days`, None: never. Raises Conflict if the user has another role."""
    try:
        return await context.database.run(access_tokens.issue_token, user, role, label, days)
    except RoleMismatch as error:
        raise Conflict(f"{error}; change it first, with PUT /v1/users/{{name}}.") from None


async def revoke_token(context: Context, token_id: int) -> None:
    """Revoke a token: from now on it is refused. Raises NotFound."""
    if not await context.database.run(access_tokens.revoke_token, token_id):
        raise NotFound(f"There is no token {token_id} in force.")


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


async def put_limits(context: Context, user: str, own: Limits) -> UserQuota:
    """Set a user's limits. Raises NotFound."""

    def put(connection: Connection) -> UserQuota | None:
        quota.put_limits(connection, user, own)
        return quota.quota_of(connection, user, Limits.of(context.settings))

    user_quota = await context.database.run(put)
    if user_quota is None:
        raise NotFound(f"There is no user {user!r}.")
    return user_quota


async def drain(context: Context, worker: str) -> None:
    """Let a worker finish its job and take no more. Raises NotFound."""
    _known(await context.database.run(workers.drain, worker), worker)


async def resume(context: Context, worker: str) -> None:
    """Let a worker take jobs again. Raises NotFound."""
    _known(await context.database.run(workers.resume, worker), worker)


def _known(known: bool, worker: str) -> None:
    if not known:
        raise NotFound(f"No worker {worker!r} has reported itself; /v1/workers lists those that have.")
