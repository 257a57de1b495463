"""The strategies on a GPU by name, whether or not this machine has one."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from warpfold.kernels.cuda.baselines import baselines
from warpfold.kernels.cuda.strategies.cupy_ import cupy_strategy
from warpfold.kernels.cuda.strategies.exact import exact_strategy
from warpfold.kernels.cuda.strategies.own import OwnStrategy, own_strategy
from warpfold.kernels.cuda.strategies.strategy import CudaStrategy

FOLDER = Path(__file__).parent
FAST = "single_pass"
"""The strategy of our own that "auto" prefers where nothing is summed exactly, and that selects under "exact"."""


@cache
def own_strategies() -> Mapping[str, OwnStrategy]:
    """The strategies that are written in CUDA C++ here, by name."""
    made = (own_strategy(path) for path in sorted(FOLDER.glob("*.cu")))
    return MappingProxyType({strategy.name: strategy for strategy in made})


@cache
def cuda_strategies() -> Mapping[str, CudaStrategy]:
    """All strategies by name: `exact` first, then the fast one, peers last. They need neither CuPy nor a GPU to be
    listed."""
    own = sorted(own_strategies().values(), key=lambda strategy: (strategy.name != FAST, strategy.name))
    made = (exact_strategy(own_strategies()[FAST]), *own, cupy_strategy(), *baselines().values())
    return MappingProxyType({strategy.name: strategy for strategy in made})
