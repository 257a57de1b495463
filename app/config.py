"""Settings of every Warpfold process. This is the only module that reads the environment."""

import os
import re
import sys
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError, ValidationInfo, field_validator
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from warpfold.contract.folders import Folders

_PREFIX = "WARPFOLD_"
_SCHEMES = {
    "database_url": ("postgresql://", "postgres://", "postgresql+psycopg://"),
    "redis_url": ("redis://", "rediss://", "unix://"),
}
_OTHERS = ("URL", "TOKEN", "HOST", "PORT", "VERSION")  # of the client, and of docker-compose.yml
_OF_KUBERNETES = re.compile(r"(^|_)(SERVICE_(HOST|PORT)\w*|PORT(_\d+_\w+)?)$")  # of a service called warpfold
DATABASE_NOTE = "database_url"
"""File in `data_dir` where `warpfold serve` notes which database it uses, for the other commands."""


class _Files(PydanticBaseSettingsSource):
    """`WARPFOLD_<NAME>_FILE` names a file that holds the value: a secret that no environment and no log shows."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[str | None, str, bool]:
        variable = f"{_PREFIX}{field_name.upper()}_FILE"
        path = os.environ.get(variable)
        if not path:
            return None, field_name, False
        try:
            return Path(path).read_text().strip(), field_name, False
        except (OSError, UnicodeError) as error:
            raise SettingsError(f"{variable} names a file that cannot be read: {error}") from None

    def __call__(self) -> dict[str, str]:
        found = ((name, self.get_field_value(field, name)[0]) for name, field in self.settings_cls.model_fields.items())
        return {name: value for name, value in found if value is not None}


class Settings(BaseSettings):
    """Each field is read from `WARPFOLD_<NAME>`, or from the file that `WARPFOLD_<NAME>_FILE` names; the defaults suit
    one machine."""

    model_config = SettingsConfigDict(env_prefix=_PREFIX, frozen=True, extra="ignore")

    database_url: str = Field("", description="Postgres, as postgresql://…; empty: `warpfold serve` embeds one")
    redis_url: str = Field("", description="Redis or Valkey, as redis://…; empty: `warpfold serve` embeds one")
    data_dir: Path = Field(Path(".warpfold"), description="where embedded servers, caches, locks and logs live")
    data_roots: Annotated[tuple[Path, ...], NoDecode] = Field(
        (), description=f"folders whose .npy files `path` sources may name, separated by {os.pathsep!r}"
    )

    max_connections: int = Field(
        8192, ge=16, description="most connections to one api process; the limit of open files may say less"
    )
    max_connections_per_address: int = Field(
        512, ge=1, description="most connections from one address (of IPv6: a /64) that is no proxy's"
    )
    head_timeout_s: float = Field(10.0, gt=0, description="a request whose head is not here by then is ended")
    body_timeout_s: float = Field(30.0, gt=0, description="a body that pauses for so long is ended")
    read_timeout_s: float = Field(60.0, gt=0, description="a client that reads nothing of its answer for so long")
    requests_per_second_per_user: float = Field(
        1000.0, gt=0, description="requests of one user to one api process in the long run; more are a 429"
    )
    request_burst_per_user: float = Field(10_000.0, ge=1, description="most of them at once")
    requests_per_second_per_address: float = Field(
        100.0, gt=0, description="the same of requests from one address that show no valid token"
    )
    request_burst_per_address: float = Field(1000.0, ge=1, description="most of them at once")
    max_body_bytes: int = Field(4 << 20, ge=1024, description="largest request body")
    max_values: int = Field(100_000, ge=1, description="most elements of a `values` source")
    max_queued_per_user: int = Field(
        1000, ge=0, description="most queued jobs of one user who has no quota of their own"
    )
    max_high_per_hour: int = Field(
        5,
        ge=0,
        description="most jobs of one such user in an hour that wait as `high`, others as normal ones",
    )
    max_running_per_user: int | None = Field(None, ge=0, description="most running jobs of one such user; unset: any")
    gpu_seconds_per_day: float | None = Field(
        None, ge=0, description="GPU time of one such user in a day (UTC), after which jobs wait; unset: any"
    )
    dataset_dir: Path | None = Field(
        None, description="where uploaded arrays lie, the same folder for every process; unset: datasets in data_dir"
    )
    max_dataset_bytes: int = Field(4 << 30, ge=1024, description="largest uploaded array")
    dataset_quota_bytes: int = Field(64 << 30, ge=0, description="most bytes of uploaded arrays of one user")
    keep_free_bytes: int = Field(
        2 << 30, ge=0, description="free space that uploads leave on their disk, which Postgres and the logs may need"
    )
    dataset_retention_days: float = Field(
        30.0, gt=0, description="an uploaded array that no job has needed for so long is removed"
    )
    retention_days: float = Field(90.0, gt=0, description="age at which finished jobs are removed")

    webhook_allow_private: bool = Field(False, description="webhooks may go to private and local addresses")
    webhook_timeout_s: float = Field(10.0, gt=0, le=300, description="a receiver that has not answered by then failed")

    otlp_endpoint: str = Field(
        "", description="base url of an OpenTelemetry collector (OTLP over HTTP) that gets traces; empty: none"
    )

    compile_ahead: bool = Field(
        True,
        description="a CPU slot compiles its kernels in the background, while it has no job, ahead of need",
    )

    session_days: float = Field(7.0, gt=0, description="age at which a sign-in to the dashboard is over")

    log_max_bytes: int = Field(
        16 << 20,
        ge=1 << 16,
        description="size at which `warpfold serve` begins a process's log anew; the three before it are kept",
    )

    lease_s: float = Field(
        15.0, gt=0, description="a running job whose worker, or whose child, is silent for so long is taken back"
    )
    lead_s: float = Field(10.0, gt=0, description="a leading dispatcher that is silent for so long is replaced")
    heartbeat_s: float = Field(0.5, gt=0, description="how often a busy worker renews its lease and looks for a cancel")
    max_losses: int = Field(3, ge=1, description="a job whose worker was lost so often fails with worker_lost")
    prefetch: int = Field(2, ge=1, description="most jobs handed to one slot at a time, the running one included")
    dispatch_interval_s: float = Field(0.5, gt=0, description="how often the dispatcher looks without being woken")
    raise_priority_after_s: float = Field(
        600.0, gt=0, description="a job that waited so long waits as a normal one at least, after twice as long as high"
    )
    unavailable_after_s: float = Field(
        60.0, ge=0, description="a queued job that no live slot could ever run fails after so long"
    )

    @field_validator("database_url", "redis_url")
    @classmethod
    def _check_scheme(cls, given: str, info: ValidationInfo) -> str:
        schemes = _SCHEMES[str(info.field_name)]
        if given and not given.startswith(schemes):
            raise ValueError(f"must begin with {' or '.join(schemes)}")
        return given

    @field_validator("data_roots", mode="before")
    @classmethod
    def _split_roots(cls, given: object) -> object:
        if isinstance(given, str):
            return tuple(Path(part).expanduser().resolve() for part in given.split(os.pathsep) if part)
        return given

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Values that are given, then variables, then files."""
        return init_settings, env_settings, _Files(settings_cls)

    def database_in_use(self) -> str:
        """`database_url`, or that of the service that runs on `data_dir`; empty if there is neither."""
        noted = self.data_dir / DATABASE_NOTE
        return self.database_url or (noted.read_text().strip() if noted.is_file() else "")

    def folders(self) -> Folders:
        """Where jobs may read files."""
        return Folders(self.data_roots, self.datasets_dir().expanduser().resolve())

    def datasets_dir(self) -> Path:
        """Uploaded arrays."""
        return self.dataset_dir or self.data_dir / "datasets"

    def lock_dir(self) -> Path:
        """One lock file a slot and a GPU."""
        return self.data_dir / "locks"


def load_settings() -> Settings:
    """Reads the environment now. Call it once, where a process starts, and hand the value on: variables that are wrong
    end the process, with a line for each; one that is no setting is told of, and has no effect."""
    try:
        settings = Settings()
    except (ValidationError, SettingsError) as error:
        print(*(f"warpfold: {said}" for said in wrong_settings(error)), sep="\n", file=sys.stderr)
        raise SystemExit(2) from None
    for said in unknown_settings():
        print(f"warpfold: warning: {said}", file=sys.stderr)
    return settings


def unknown_settings() -> list[str]:
    """Of the names of this process's variables, those that look like settings and are none, each in a sentence."""
    known = [name.upper() for name in Settings.model_fields]
    known = [*known, *(f"{name}_FILE" for name in known), *_OTHERS]
    found = []
    for variable in sorted(os.environ):
        name = variable.upper().removeprefix(_PREFIX)
        if not variable.upper().startswith(_PREFIX) or name in known or _OF_KUBERNETES.search(name):
            continue
        near = get_close_matches(name, known, n=1)
        meant = f"; is {_PREFIX}{near[0]} meant?" if near else ""
        found.append(f"{variable} is no setting, and has no effect{meant}")
    return found


def wrong_settings(error: ValidationError | SettingsError) -> list[str]:
    """Each variable that is wrong, with what is wrong with it."""
    if isinstance(error, SettingsError):
        return [str(error)]
    wrong = error.errors(include_url=False, include_input=False)
    return [f"{_PREFIX}{'_'.join(map(str, one['loc'])).upper()}: {one['msg']}" for one in wrong]
