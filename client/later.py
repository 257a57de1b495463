"""Modules that are imported when a name of theirs is first asked for, so that a short command does not wait for what it
does not use. Python's own `importlib.util.LazyLoader` is not safe for threads before 3.12, and threads share a client.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = [
    "Later",
    "artefacts",
    "batches",
    "catalogue",
    "datasets",
    "inspections",
    "live_batches",
    "reductions",
    "results",
    "sharing",
    "tokens",
    "uploads",
]


class Later:
    """The module called `name`, once it is needed."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)


# What most callers of the client do not need.
if TYPE_CHECKING:
    from warpfold.client import (
        artefacts,
        batches,
        catalogue,
        datasets,
        inspections,
        live_batches,
        reductions,
        results,
        sharing,
        tokens,
        uploads,
    )
else:
    artefacts = Later("warpfold.client.artefacts")
    batches = Later("warpfold.client.batches")
    catalogue = Later("warpfold.client.catalogue")
    datasets = Later("warpfold.client.datasets")
    inspections = Later("warpfold.client.inspections")
    live_batches = Later("warpfold.client.live_batches")
    reductions = Later("warpfold.client.reductions")
    results = Later("warpfold.client.results")
    sharing = Later("warpfold.client.sharing")
    tokens = Later("warpfold.client.tokens")
    uploads = Later("warpfold.client.uploads")
