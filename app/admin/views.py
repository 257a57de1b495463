"""The bodies and the answers of the administration's routes."""

from dataclasses import asdict
from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from warpfold.app.auth.access_tokens import MOST_DAYS, Role, TokenInfo
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
        )


class Tokens(BaseModel):
    """Tokens, oldest first, the revoked among them."""

    items: list[TokenView]


class TokenRequest(Strict):
    """A token to be made."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"user": "ada", "role": "viewer", "label": "the screen in the hall"}]}
    )

    user: UserName = Field(description="The user whom the token is for; a new name creates a user.")
    role: Role | None = Field(None, description="The role of a new user; `user` if none is given.")
    label: Label = Field("", description="What the token is for.")
    expires_in_days: float | None = Field(
        None,
        gt=0,
        le=MOST_DAYS,
        allow_inf_nan=False,
        strict=True,
        description="Days until the token expires; null if it never does.",
    )


class NewToken(TokenView):
    """A new token."""

    token: str = Field(description="The secret, which is shown this once: only its hash is kept.")


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
