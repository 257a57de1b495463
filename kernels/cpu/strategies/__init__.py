"""The strategies on a CPU. A file in this folder is one, and makes it with its function `strategy()`."""

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from warpfold.kernels.cpu.strategy import CpuStrategy


@cache
def cpu_strategies() -> Mapping[str, CpuStrategy]:
    """All of them by name, in the order of the files' names."""
    names = sorted(found.name for found in pkgutil.iter_modules(__path__))
    found: list[CpuStrategy] = [importlib.import_module(f"{__name__}.{name}").strategy() for name in names]
    return MappingProxyType({strategy.name: strategy for strategy in found})
