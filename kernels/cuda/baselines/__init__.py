"""Peers that we measure ourselves against. All are optional: a missing one says why, in the catalogue and in
results."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from warpfold.kernels.cuda.baselines.cccl import cccl_baselines
from warpfold.kernels.cuda.baselines.peer import Baseline, BoundReduction
from warpfold.kernels.cuda.baselines.torch_ import torch_baseline

__all__ = ["Baseline", "BoundReduction", "baselines"]


@cache
def baselines() -> Mapping[str, Baseline]:
    """By name. Looks for compilers and packages at its first call; loads none of them."""
    rows = (*cccl_baselines(), torch_baseline())
    return MappingProxyType({baseline.name: baseline for baseline in rows})
