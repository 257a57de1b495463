"""The strategies on a CPU. Each file in this folder holds one strategy, which its function `strategy()` makes."""

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from warpfold.kernels.cpu.strategy import CpuStrategy


@cache
def cpu_strategies() -> Mapping[str, CpuStrategy]:
    """All strategies by name, in the order of the files' names."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    made: list[CpuStrategy] = [importlib.import_module(f"{__name__}.{name}").strategy() for name in names]
    return MappingProxyType({strategy.name: strategy for strategy in made})
