"""Settings of every Warpfold process. This is the only module that reads the environment."""

import os
import sys
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Literal

from platformdirs import user_config_path
from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError

from warpfold.app.setting_sources import (
    PREFIX,
    FileOfSettings,
    FilesOfSecrets,
    origin_of,
    unknown_settings,
    wrong_settings,
)
from warpfold.app.setting_types import (
    FileOfPlaces,
    IssuerUrl,
    ListOfFolders,
    ListOfUrls,
    PostgresUrl,
    RedisUrl,
    RolesOfGroups,
    SchedulerAddress,
    SharedSecret,
)
from warpfold.contract.folders import ArtefactFolder, DatasetCache, Folders
from warpfold.contract.places import places_in
from warpfold.contract.settings_file import settings_file
from warpfold.kernels.places.place import NOWHERE, Places

DATABASE_NOTE = "database_url"
"""The file in `data_dir` in which `warpfold serve` notes which database it uses, for the other commands."""


class Settings(BaseSettings):
    """Each field is read from `WARPFOLD_<NAME>`, from the file that `WARPFOLD_<NAME>_FILE` names, or from the file of
    settings; the defaults suit one machine."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore")

    database_url: PostgresUrl = Field(
        "",
        description="The url of Postgres, as postgresql://…. If it is empty, `warpfold serve` starts a Postgres of "
        "its own.",
    )
    redis_url: RedisUrl = Field(
        "",
        description="The url of Redis or Valkey, as redis://…. If it is empty, `warpfold serve` starts a Redis of "
        "its own.",
    )
    data_dir: Path = Field(
        Path(".warpfold"), description="The folder that holds embedded servers, caches, locks and logs."
    )
    data_roots: ListOfFolders = Field(
        (), description=f"The folders whose files the sources of jobs may name, separated by {os.pathsep!r}."
    )
    places: FileOfPlaces = Field(
        None,
        description="The file (TOML, or JSON) that names the buckets and web servers that jobs may read, with their "
        "credentials. If it is unset, there are none.",
    )

    max_connections: int = Field(
        8192,
        ge=16,
        description="One api process has at most this many connections, or fewer where it may not open as many files.",
    )
    max_connections_per_address: int = Field(
        512,
        ge=1,
        description="One address (with IPv6, one /64 network) that is no proxy has at most this many connections to "
        "an api process.",
    )
    head_timeout_s: float = Field(
        10.0, gt=0, description="A request whose head has not arrived after this many seconds is ended."
    )
    body_timeout_s: float = Field(30.0, gt=0, description="A request whose body pauses for this many seconds is ended.")
    read_timeout_s: float = Field(
        60.0, gt=0, description="A connection whose client reads nothing of its answer for this many seconds is closed."
    )
    requests_per_second_per_user: float = Field(
        1000.0,
        gt=0,
        description="One user may send so many requests a second to one api process in the long run; more are "
        "answered with 429.",
    )
    request_burst_per_user: float = Field(
        10_000.0, ge=1, description="One user may send at most this many requests at once to one api process."
    )
    requests_per_second_per_address: float = Field(
        100.0,
        gt=0,
        description="One address may send so many requests a second without a valid token to one api process in the "
        "long run.",
    )
    request_burst_per_address: float = Field(
        1000.0,
        ge=1,
        description="One address may send at most this many requests at once without a valid token to one api process.",
    )
    max_body_bytes: int = Field(4 << 20, ge=1024, description="A request body may have at most this many bytes.")
    max_batch_bytes: int = Field(
        16 << 20,
        ge=1024,
        description="The body of a batch may have at most this many bytes, and so may the specs of a sweep together.",
    )
    max_values: int = Field(100_000, ge=1, description="A `values` source may have at most this many elements.")
    max_queued_per_user: int = Field(
        20_000, ge=0, description="A user without a quota of their own may have at most this many queued jobs."
    )
    max_high_per_hour: int = Field(
        5,
        ge=0,
        description="Of a user without a quota of their own, this many jobs an hour wait as `high`; further ones "
        "wait as `normal`.",
    )
    max_running_per_user: int | None = Field(
        None,
        ge=0,
        description="A user without a quota of their own may have at most this many running jobs. If it is unset, "
        "there is no limit.",
    )
    gpu_seconds_per_day: float | None = Field(
        None,
        ge=0,
        description="The jobs of a user without a quota of their own wait once they have taken this much GPU time "
        "in a day (UTC). If it is unset, there is no limit.",
    )
    dataset_dir: Path | None = Field(
        None,
        description="The folder of uploaded arrays, which is the same for every process. If it is unset, it is "
        "`datasets` in `data_dir`.",
    )
    max_dataset_bytes: int = Field(4 << 30, ge=1024, description="An uploaded array may have at most this many bytes.")
    dataset_quota_bytes: int = Field(
        64 << 30,
        ge=0,
        description="The uploaded arrays and the stored results of one user may have at most this many bytes together.",
    )
    upload_hours: float = Field(
        24.0, gt=0, description="An upload in parts to which nothing was added for this many hours is removed."
    )
    keep_free_bytes: int = Field(
        2 << 30,
        ge=0,
        description="Uploads and stored results leave this many bytes free on their disk, because Postgres and the "
        "logs may need them.",
    )
    dataset_retention_days: float = Field(
        30.0, gt=0, description="An uploaded array that no job has needed for this many days is removed."
    )
    artefact_dir: Path | None = Field(
        None,
        description="The folder of stored results, which is the same for every process. If it is unset, it is "
        "`artefacts` in `data_dir`.",
    )
    artefact_retention_days: float = Field(
        30.0, gt=0, description="The stored result of a job that ended this many days ago is removed; the job stays."
    )
    retention_days: float = Field(90.0, gt=0, description="A job that ended this many days ago is removed.")
    audit_days: float = Field(365.0, gt=0, description="An entry of the audit log is removed after this many days.")

    dataset_urls: ListOfUrls = Field(
        (),
        description="The urls of the apis from which a worker fetches uploaded arrays that its `dataset_dir` lacks, "
        "separated by spaces. Without any, all machines must share that folder.",
    )
    dataset_cache_bytes: int = Field(
        64 << 30, ge=1024, description="A machine keeps at most this many bytes of arrays that its workers fetched."
    )
    worker_token: SharedSecret = Field(
        "",
        repr=False,
        description="A secret of 32 characters or more, the same for apis and workers: an api gives any uploaded array "
        "to a worker that shows it. If it is empty, an api gives them to their owners and to admins alone.",
    )

    share_jobs: bool = Field(
        True,
        description="Whether everyone sees new jobs and batches that read nothing private, unless their owners say "
        "otherwise. If it is false, new jobs and batches are private.",
    )
    share_old: Literal["nothing", "jobs", "everything"] = Field(
        "jobs",
        description="What everyone sees of what was stored before it could be shared: `nothing`, the `jobs` and "
        "batches, or `everything`, which is the uploaded arrays as well.",
    )

    webhook_allow_private: bool = Field(False, description="Whether webhooks may go to private and local addresses.")
    webhook_timeout_s: float = Field(
        10.0, gt=0, le=300, description="A delivery fails if its receiver has not answered after this many seconds."
    )

    otlp_endpoint: str = Field(
        "",
        description="The base url of an OpenTelemetry collector (OTLP over HTTP) that gets traces. If it is empty, "
        "no traces are sent.",
    )

    compile_ahead: bool = Field(True, description="Whether an idle CPU slot compiles kernels before jobs need them.")

    spare_child: bool = Field(
        True, description="Whether a slot keeps a second child, which takes over after a cancel, a crash or a hang."
    )

    measure_rates: bool = Field(
        True, description="Whether an idle slot measures once how fast it is, so that `auto` goes where jobs end first."
    )

    dask_scheduler: SchedulerAddress = Field(
        "",
        description="The address of the Dask scheduler that the slot `dask` uses, as tcp://host:8786 or tls://…. If it "
        "is empty, the slot starts a local cluster.",
    )
    dask_processes: int | None = Field(
        None, ge=1, description="How many processes a local Dask cluster has; unset, one for each core, and at most 8."
    )
    dask_wait_s: float = Field(
        60.0,
        ge=0,
        description="A job on a Dask cluster that has had no worker for this many seconds fails as `unavailable`.",
    )

    gang_open_s: float = Field(
        5.0,
        ge=0,
        description="The slot `gang` keeps the GPUs open for this many seconds after a job, so that the next one need "
        "not open them. Jobs of single GPUs do not wait for that, but an open GPU has half a gigabyte less memory.",
    )
    cpu_cache_bytes: int | None = Field(
        None,
        ge=1 << 20,
        description="The size of the CPU's last cache, which cold runs of a benchmark displace. Unset, it is what the "
        "system says; but a virtual machine may name the cache of its host, and displacing that takes long.",
    )

    slot_memory_bytes: int | None = Field(
        None,
        ge=256 << 20,
        description="The child of a slot may take this much memory beside what its libraries take; a job that needs "
        "more fails as `out_of_memory`, and the child goes on. Unset, `warpfold serve` divides three quarters of the "
        "memory among its slots, and a worker on its own takes three quarters. Mapped files and a GPU's memory do not "
        "count.",
    )

    session_days: float = Field(7.0, gt=0, description="A dashboard session ends this many days after the sign-in.")

    oidc_issuer: IssuerUrl = Field("", description="The URL of the OpenID Connect provider where people sign in.")
    oidc_client_id: str = Field("", description="The id of this service at the provider; it has to be set, too.")
    oidc_client_secret: str = Field("", repr=False, description="The secret of this service at the provider.")
    oidc_scopes: str = Field("openid profile email", description="The scopes that the provider is asked for.")
    oidc_name_claim: str = Field("preferred_username", description="The claim that names a new user here.")
    oidc_groups_claim: str = Field("groups", description="The claim that lists the groups of a person.")
    oidc_roles: RolesOfGroups = Field({}, description="Roles by groups, as `admins=admin, lab=user, *=viewer`.")
    oidc_takes_over: bool = Field(False, description="Whether a new person takes over the user of that name.")

    log_max_bytes: int = Field(
        16 << 20,
        ge=1 << 16,
        description="`warpfold serve` begins a process's log anew when it has this many bytes, and keeps the three "
        "logs before it.",
    )

    lease_s: float = Field(
        15.0, gt=0, description="A running job whose worker or child is silent for this many seconds is queued again."
    )
    lead_s: float = Field(
        10.0, gt=0, description="A leading dispatcher that is silent for this many seconds is replaced."
    )
    heartbeat_s: float = Field(
        0.5, gt=0, description="A busy worker renews its lease, and looks for a cancellation, every so many seconds."
    )
    max_losses: int = Field(
        3, ge=1, description="A job whose worker was lost this many times fails with the reason `worker_lost`."
    )
    prefetch: int = Field(
        2, ge=1, description="One slot has at most this many long jobs in its queue, the running one included."
    )
    prefetch_small: int = Field(
        128,
        ge=1,
        description="One slot has at most this many small jobs in its queue, the running ones included. A reduction of "
        "up to 10,000 elements that are given in the request or generated is small.",
    )
    dispatch_interval_s: float = Field(
        0.5,
        gt=0,
        description="The dispatcher looks for queued jobs at least every so many seconds, even if nothing wakes it; "
        "while no job waits or runs, it looks an eighth as often.",
    )
    raise_priority_after_s: float = Field(
        600.0,
        gt=0,
        description="A job that has waited this many seconds has at least the priority `normal`, and after twice as "
        "long `high`.",
    )
    unavailable_after_s: float = Field(
        60.0, ge=0, description="A queued job that no live slot can run fails after this many seconds."
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments come before variables, variables before files of secrets, and these before the file of settings."""
        files = FilesOfSecrets(settings_cls, os.environ), FileOfSettings(settings_cls, _settings_file())
        return init_settings, env_settings, *files

    def database_in_use(self) -> str:
        """The `database_url`, or the url that the service on `data_dir` noted; empty if neither is known."""
        noted = self.data_dir / DATABASE_NOTE
        return self.database_url or (noted.read_text().strip() if noted.is_file() else "")

    def folders(self) -> Folders:
        """The folders, and the places, from which jobs may read files, and the folder of stored results."""
        artefacts = ArtefactFolder(
            self.artefacts_dir().expanduser().resolve(), self.dataset_quota_bytes, self.keep_free_bytes
        )
        cache = DatasetCache(
            (self.data_dir / "fetched").expanduser().resolve(),
            self.dataset_cache_bytes,
            self.keep_free_bytes,
            self.dataset_urls,
            self.worker_token,
        )
        datasets = self.datasets_dir().expanduser().resolve()
        return Folders(self.data_roots, datasets, self.listed_places, artefacts, cache if self.dataset_urls else None)

    @cached_property
    def listed_places(self) -> Places:
        """The places that the file of places lists, with their credentials. They are no setting, lest they be shown as
        one."""
        return NOWHERE if self.places is None else places_in(self.places)

    def datasets_dir(self) -> Path:
        """The folder of uploaded arrays."""
        return self.dataset_dir or self.data_dir / "datasets"

    def artefacts_dir(self) -> Path:
        """The folder of stored results."""
        return self.artefact_dir or self.data_dir / "artefacts"

    def rates_dir(self) -> Path | None:
        """Where the rates of this machine's slots are kept; None where they are not measured."""
        return self.data_dir / "rates" if self.measure_rates else None

    def lock_dir(self) -> Path:
        """The folder that has a lock file for each slot and each GPU."""
        return self.data_dir / "locks"


def _settings_file() -> Path | None:
    return settings_file(os.environ, Path.cwd(), user_config_path("warpfold"))


def load_settings() -> Settings:
    """Read the environment and the file of settings now. Call it once, where a process starts, and hand the value on.

    A wrong value ends the process, and a line names each such setting, by its variable or its file. A variable that is
    no setting has no effect but a warning.
    """
    try:
        settings = Settings()
    except (ValidationError, SettingsError) as error:
        print(*(f"warpfold: {sentence}" for sentence in faults_of(error)), sep="\n", file=sys.stderr)
        raise SystemExit(2) from None
    for sentence in unknown_variables():
        print(f"warpfold: warning: {sentence}", file=sys.stderr)
    return settings


def faults_of(error: ValidationError | SettingsError) -> list[str]:
    """A sentence for each setting whose value is wrong, and for each file that cannot be read."""
    return str(error).splitlines() if isinstance(error, SettingsError) else wrong_settings(error, origins())


def origins() -> Mapping[str, str]:
    """Where each setting comes from: the name of a variable, the path of a file, or "default". Raises SettingsError."""
    path = _settings_file()
    file = FileOfSettings(Settings, path)
    return {name: origin_of(name, os.environ, file, path) for name in Settings.model_fields}


def unknown_variables() -> list[str]:
    """A sentence for each variable of this process whose name looks like a setting and is not a setting."""
    names = [name.upper() for name in Settings.model_fields]
    return unknown_settings(os.environ, [*names, *(f"{name}_FILE" for name in names)])
