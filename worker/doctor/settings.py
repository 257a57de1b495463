"""Checks the settings: where they come from, and choices that do not go together."""

import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from warpfold.app.config import Settings, origins
from warpfold.contract.wording import number_of
from warpfold.worker.doctor.finding import Finding, broken, poor, well

_SECRETS = ("worker_token", "database_url", "redis_url")
_BEATS = 3
"""A worker that is late once or twice must not lose its job."""


def look_at_settings(settings: Settings) -> Iterator[Finding]:
    """The findings about all settings together. Each is valid by itself."""
    places = origins()
    yield _where(places)
    yield from _open_files(places)
    for sentence, advice in _odd(settings):
        yield poor("settings", sentence, advice)


def _where(places: Mapping[str, str]) -> Finding:
    chosen = [origin for origin in places.values() if origin != "default"]
    files = sorted({origin for origin in chosen if not origin.startswith("WARPFOLD_")})
    read = f", in {files[0]}" if files else ""
    return well(
        "settings", f"{number_of('setting', len(chosen))} of {len(places)} chosen{read}; see `warpfold settings`"
    )


def _open_files(places: Mapping[str, str]) -> Iterator[Finding]:
    """A finding for a file of settings that holds a secret, and that others may read."""
    for origin in sorted({places[name] for name in _SECRETS if not places[name].startswith(("WARPFOLD_", "default"))}):
        if stat.S_IMODE(Path(origin).stat().st_mode) & 0o077:
            yield broken("settings", f"{origin} may hold passwords, and others may read it", f"chmod 600 {origin}")


def _odd(settings: Settings) -> Iterator[tuple[str, str]]:
    """Sentences about choices that do not go together, each with a remedy."""
    if settings.lease_s < _BEATS * settings.heartbeat_s:
        yield (
            f"a lease of {settings.lease_s:g} s ends within {_BEATS} heartbeats of {settings.heartbeat_s:g} s, so that "
            "busy workers lose their jobs",
            "raise WARPFOLD_LEASE_S, or lower WARPFOLD_HEARTBEAT_S",
        )
    if settings.lead_s < _BEATS * settings.dispatch_interval_s:
        yield (
            f"a dispatcher that looks every {settings.dispatch_interval_s:g} s is replaced after {settings.lead_s:g} s",
            "raise WARPFOLD_LEAD_S, or lower WARPFOLD_DISPATCH_INTERVAL_S",
        )
    if settings.max_dataset_bytes > settings.dataset_quota_bytes:
        yield (
            "no user has room for an array of WARPFOLD_MAX_DATASET_BYTES",
            "raise WARPFOLD_DATASET_QUOTA_BYTES, or lower WARPFOLD_MAX_DATASET_BYTES",
        )
    if settings.max_body_bytes > settings.max_batch_bytes:
        yield (
            "a batch may have fewer bytes than a job",
            "raise WARPFOLD_MAX_BATCH_BYTES, or lower WARPFOLD_MAX_BODY_BYTES",
        )
    if settings.dataset_urls and not settings.worker_token:
        yield (
            "WARPFOLD_DATASET_URLS names apis that give arrays to no worker without a token",
            "set the same WARPFOLD_WORKER_TOKEN for apis and workers",
        )
    if (settings.slot_memory_bytes or 0) > psutil.virtual_memory().total:
        yield "a slot may take more memory than the machine has", "lower WARPFOLD_SLOT_MEMORY_BYTES, or unset it"
