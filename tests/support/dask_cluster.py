"""Dask clusters of this machine, for tests."""

from typing import Any

from distributed import LocalCluster


def cluster_of(workers: int, **options: Any) -> Any:
    """A cluster of so many workers of one thread each, which needs no port that others may have."""
    return LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        dashboard_address=None,
        scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
        memory_limit=0,
        **options,
    )
