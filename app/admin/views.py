"""The bodies and the answers of the administration's routes."""

from dataclasses import asdict
from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from warpfold.app.admin.removal import Removal
from warpfold.app.auth.access_tokens import MOST_DAYS, Issued, Role, TokenInfo
from warpfold.app.auth.scopes import Scope
from warpfold.app.auth.users import Label, UserInfo, UserName
from warpfold.app.quotas.quota import Limits, UserQuota

MOST_JOBS = 1_000_000_000


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class UserView(BaseModel):
    """A user."""

    name: str
    role: Role
    tokens: int = Field(description="How many tokens of the user are in force; without one, a user cannot do anything.")
    created_at: datetime

    @classmethod
    def of(cls, user: UserInfo) -> "UserView":
        return cls(name=user.name, role=user.role, tokens=user.tokens, created_at=user.created_at)


class Users(BaseModel):
    """All users, by name."""

    items: list[UserView]


class UserRequest(Strict):
    """The role that a user gets."""

    role: Role


class TokenView(BaseModel):
    """A token, without its secret."""

    id: int
    user: str
    role: Role
    label: str
    hint: str = Field(description="The first characters of the token, to recognise it by.")
    created_at: datetime
    revoked_at: datetime | None
    expires_at: datetime | None = Field(description="When the token expires; null if it never does.")
    scopes: list[Scope] = Field(description="What the token may do: its own scopes, of those that the role allows.")
    made_by: str | None = Field(
        description="The user who made the token; null if a command on the machine of the service did."
    )
    last_used_at: datetime | None = Field(description="When the token was last used, to the minute.")
    rotated_at: datetime | None = Field(description="When the token got its present secret; null if it is the first.")
    old_secret_until: datetime | None = Field(
        description="Until when the secret before the present one holds; null if there was none."
    )

    @classmethod
    def of(cls, token: TokenInfo) -> "TokenView":
        return cls(
            id=token.id,
            user=token.user,
            role=token.role,
            label=token.label,
            hint=token.hint,
            created_at=token.created_at,
            revoked_at=token.revoked_at,
            expires_at=token.expires_at,
            scopes=[scope for scope in Scope if scope in token.scopes],
            made_by=token.made_by,
            last_used_at=token.last_used_at,
            rotated_at=token.rotated_at,
            old_secret_until=token.old_until,
        )


class Tokens(BaseModel):
    """Tokens, oldest first, the revoked among them."""

    items: list[TokenView]


class OwnTokenRequest(Strict):
    """A token to be made for oneself."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"label": "the nightly job", "scopes": ["submit"], "expires_in_days": 90}]}
    )

    label: Label = Field("", description="A name for the token, to recognise it in the list.")
    scopes: list[Scope] | None = Field(
        None,
        min_length=1,
        max_length=len(Scope),
        description="What the token may do: `read` what its user sees; `submit` jobs and upload arrays; `manage` what "
        "is the user's: cancel, delete, share; `admin` for what only admins do. Null: all that the role allows, also "
        "after the role has changed.",
    )
    expires_in_days: float | None = Field(
        None,
        gt=0,
        le=MOST_DAYS,
        allow_inf_nan=False,
        strict=True,
        description="Days until the token expires; null if it never does.",
    )


class TokenRequest(OwnTokenRequest):
    """A token to be made."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"user": "ada", "role": "viewer", "label": "the screen in the hall"}]}
    )

    user: UserName = Field(description="The user whom the token is for; a new name creates a user.")
    role: Role | None = Field(None, description="The role of a new user; `user` if none is given.")


class NewToken(TokenView):
    """A new token, or one with a new secret."""

    token: str = Field(description="The secret, which is shown this once: only its hash is kept.")

    @classmethod
    def of_issued(cls, issued: Issued) -> "NewToken":
        return cls(**TokenView.of(issued.info).model_dump(), token=issued.token)


class RemovalView(BaseModel):
    """What becomes of what a user has, if the user is removed."""

    user: str
    tokens: int = Field(description="Tokens in force, which are useless at once, as are the user's sessions.")
    jobs_cancelled: int = Field(description="Jobs that wait or run, which are cancelled.")
    jobs_kept: int = Field(
        description="Jobs that have ended. They stay with their results until their time is over, as all jobs do, and "
        "are seen by whoever saw them before."
    )
    arrays_deleted: int = Field(description="Uploaded arrays, which are deleted, also where they were shared.")
    bytes_deleted: int

    @classmethod
    def of(cls, removal: Removal) -> "RemovalView":
        return cls(**asdict(removal))


class LimitsView(Strict):
    """The limits of one user. Null means no limit, or a limit that was not set for this user."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"running": 2, "queued": 100, "gpu_seconds_per_day": 3600}]}
    )

    running: int | None = Field(None, ge=0, le=MOST_JOBS, strict=True, description="How many jobs may run at once.")
    queued: int | None = Field(None, ge=0, le=MOST_JOBS, strict=True, description="How many jobs may be in the queue.")
    gpu_seconds_per_day: float | None = Field(
        None,
        ge=0,
        le=1e12,
        allow_inf_nan=False,
        strict=True,
        description="GPU-seconds of a day after which jobs for GPUs wait for midnight UTC.",
    )
    high_per_hour: int | None = Field(
        None,
        ge=0,
        le=MOST_JOBS,
        strict=True,
        description="How many jobs of an hour wait as `high`; further ones wait as `normal`.",
    )

    @classmethod
    def of(cls, limits: Limits) -> "LimitsView":
        return cls(**asdict(limits))

    def limits(self) -> Limits:
        return Limits(self.running, self.queued, self.gpu_seconds_per_day, self.high_per_hour)


class UsageView(BaseModel):
    """How much of the quotas is used."""

    running: int = Field(description="Jobs that run or were handed to a slot.")
    queued: int = Field(description="The jobs in the queue: exact up to 1000; a larger number is a few seconds old.")
    gpu_seconds_today: float = Field(description="GPU-seconds since midnight UTC.")


class QuotaView(BaseModel):
    """A user's quotas."""

    user: str
    limits: LimitsView = Field(description="The limits in force.")
    own: LimitsView = Field(description="The limits that were set for this user; null follows the service's settings.")
    used: UsageView

    @classmethod
    def of(cls, quota: UserQuota) -> "QuotaView":
        return cls(
            user=quota.user,
            limits=LimitsView.of(quota.limits),
            own=LimitsView.of(quota.own),
            used=UsageView(
                running=quota.usage.running,
                queued=quota.usage.queued,
                gpu_seconds_today=quota.usage.gpu_seconds_today,
            ),
        )


class Quotas(BaseModel):
    """Quotas by user."""

    items: list[QuotaView]
