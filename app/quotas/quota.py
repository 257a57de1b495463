"""How much of the service one user may use at a time."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from warpfold.app.config import Settings


class QuotaName(StrEnum):
    """What is limited."""

    RUNNING = "running"
    QUEUED = "queued"
    GPU_SECONDS_PER_DAY = "gpu_seconds_per_day"


@dataclass(frozen=True, slots=True)
class Limits:
    """Jobs that run at once, jobs in the queue, GPU-seconds a day (UTC), jobs of an hour that wait as high. None: no
    limit, or not set for this user."""

    running: int | None = None
    queued: int | None = None
    gpu_seconds_per_day: float | None = None
    high_per_hour: int | None = None

    @classmethod
    def of(cls, settings: Settings) -> "Limits":
        """What holds for users for whom nothing else was set."""
        return cls(
            settings.max_running_per_user,
            settings.max_queued_per_user,
            settings.gpu_seconds_per_day,
            settings.max_high_per_hour,
        )

    def over(self, defaults: "Limits") -> "Limits":
        """These, and where they say nothing the defaults."""
        return Limits(
            defaults.running if self.running is None else self.running,
            defaults.queued if self.queued is None else self.queued,
            defaults.gpu_seconds_per_day if self.gpu_seconds_per_day is None else self.gpu_seconds_per_day,
            defaults.high_per_hour if self.high_per_hour is None else self.high_per_hour,
        )


@dataclass(frozen=True, slots=True)
class Usage:
    """What a user has: jobs running (or handed to a slot), jobs in the queue, GPU-seconds since midnight UTC."""

    running: int
    queued: int
    gpu_seconds_today: float


@dataclass(frozen=True, slots=True)
class UserQuota:
    """A user's quotas: `limits` in force, `own` where they were set for this user, and what of them is used."""

    user: str
    limits: Limits
    own: Limits
    usage: Usage


@dataclass(frozen=True, slots=True)
class Hold:
    """A quota that keeps a user's jobs waiting, and until when if that is known."""

    quota: QuotaName
    limit: float
    until: datetime | None
