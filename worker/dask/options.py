"""The options that say which Dask cluster a slot uses. This module imports little, because the parent of the slot sends
the options to its child."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """The cluster of the scheduler at an address, such as tcp://host:8786. With an empty address it is a local cluster
    of `processes` processes; None stands for one process a core, up to eight. A job waits `wait_s` seconds for a
    cluster without workers."""

    scheduler: str = ""
    processes: int | None = None
    wait_s: float = 60.0
