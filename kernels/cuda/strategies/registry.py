"""The strategies on a GPU by name, whether or not this machine has one."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from warpfold.kernels.cuda.baselines.cccl import cccl_baselines
from warpfold.kernels.cuda.baselines.peer import Baseline
from warpfold.kernels.cuda.baselines.torch_ import torch_baseline
from warpfold.kernels.cuda.strategies.cupy_ import cupy_strategy
from warpfold.kernels.cuda.strategies.exact import exact_strategy
from warpfold.kernels.cuda.strategies.own import OwnStrategy, own_strategy
from warpfold.kernels.cuda.strategies.rows import FAST, FOLDER, own_rows
from warpfold.kernels.cuda.strategies.strategy import CudaStrategy


@cache
def own_strategies() -> Mapping[str, OwnStrategy]:
    """The strategies that are written in CUDA C++ here, by name."""
    return MappingProxyType({name: own_strategy(FOLDER / f"{name}.cu") for name in sorted(own_rows())})


@cache
def baselines() -> Mapping[str, Baseline]:
    """The peers by name."""
    rows = (*cccl_baselines(), torch_baseline())
    return MappingProxyType({baseline.name: baseline for baseline in rows})


@cache
def cuda_strategies() -> Mapping[str, CudaStrategy]:
    """All strategies by name: `exact` first, then the fast one, peers last. They need neither CuPy nor a GPU to be
    listed."""
    own = [own_strategies()[name] for name in own_rows()]
    made = (exact_strategy(own_strategies()[FAST]), *own, cupy_strategy(), *baselines().values())
    return MappingProxyType({strategy.name: strategy for strategy in made})
