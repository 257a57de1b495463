"""The slots that can run a job: a word in the job's row, and the meaning of the word.

"cpu", "cuda", "gang" and "dask" name the only kind of slot that can run the job. "any" is a CPU or a GPU, whichever
is free. The other words name several kinds in the order of preference: the best kind that is live gets the job.
"""

from collections.abc import Mapping
from types import MappingProxyType

ANY = "any"
GANG = "gang"
DASK = "dask"
GANG_FIRST = "gang_first"
GPU_FIRST = "gpu_first"

KINDS = ("cpu", "cuda", GANG, DASK)
"""The kinds of slots."""

ONE_DEVICE = ("cpu", "cuda")
"""The kinds of slots that take a job with the needs ANY."""

ORDERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {GANG_FIRST: ("gang", "cuda", "cpu"), GPU_FIRST: ("cuda", "cpu")}
)

ALL = (*KINDS, ANY, *ORDERS)
"""The words for jobs that a slot runs."""
