"""Which Dask cluster a slot uses. Light: it travels from the parent of the slot to its child."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """The cluster of the scheduler at an address, such as tcp://host:8786; or with an empty one a local cluster of so
    many `processes`, None for one a core up to eight. A job waits `wait_s` seconds for a cluster without workers."""

    scheduler: str = ""
    processes: int | None = None
    wait_s: float = 60.0
