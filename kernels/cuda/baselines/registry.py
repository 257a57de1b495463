"""The peers by name."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from warpfold.kernels.cuda.baselines.cccl import cccl_baselines
from warpfold.kernels.cuda.baselines.peer import Baseline
from warpfold.kernels.cuda.baselines.torch_ import torch_baseline


@cache
def baselines() -> Mapping[str, Baseline]:
    """The peers by name. The first call looks for compilers and packages, and loads none of them."""
    rows = (*cccl_baselines(), torch_baseline())
    return MappingProxyType({baseline.name: baseline for baseline in rows})
