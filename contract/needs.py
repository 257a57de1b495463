"""Which slots can run a job: a word in its row, and what the word means.

"cpu", "cuda", "gang" and "dask" name the one kind of slot that can. "any" is a CPU or a GPU, whichever is free. The
others name several kinds in the order of preference: the best of those that live gets the job.
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
"""What a job that is to be run may need."""
