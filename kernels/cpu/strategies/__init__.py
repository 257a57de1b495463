"""The ways to reduce on a CPU, one module each with a `STRATEGY` row and a `reduce`. A file here is a strategy."""

import importlib
import pkgutil
from functools import cache
from typing import Protocol

from warpfold.kernels.backend import Progress, Reduction
from warpfold.kernels.catalog import Strategy
from warpfold.kernels.operands import Operands
from warpfold.kernels.ops import NanPolicy, Op


class CpuStrategy(Protocol):
    """What a module of this folder holds. Importing one compiles nothing."""

    STRATEGY: Strategy

    def reduce(self, operands: Operands, op: Op, nan_policy: NanPolicy, progress: Progress | None) -> Reduction:
        """Reduce operands that fit `op`. Raises a KernelError."""
        ...


@cache
def cpu_modules() -> tuple[CpuStrategy, ...]:
    """The modules of this folder, by name."""
    names = sorted(found.name for found in pkgutil.iter_modules(__path__))
    modules: list[CpuStrategy] = [importlib.import_module(f"{__name__}.{name}") for name in names]
    return tuple(modules)


def cpu_strategies() -> tuple[Strategy, ...]:
    """The catalogue rows of all CPU strategies."""
    return tuple(module.STRATEGY for module in cpu_modules())


def cpu_strategy(name: str) -> CpuStrategy:
    """The module of the strategy called `name`, which the catalogue has."""
    return next(module for module in cpu_modules() if module.STRATEGY.name == name)
