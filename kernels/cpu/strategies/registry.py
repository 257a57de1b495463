"""The strategies on a CPU by name."""

from collections.abc import Mapping
from types import MappingProxyType

from warpfold.kernels.cpu.strategies.exact import ExactCpuStrategy
from warpfold.kernels.cpu.strategies.numpy_ import NumpyStrategy
from warpfold.kernels.cpu.strategies.rows import EXACT_ROW, NUMPY_ROW
from warpfold.kernels.cpu.strategy import CpuStrategy

_MADE: tuple[CpuStrategy, ...] = (ExactCpuStrategy.of(EXACT_ROW, interprets=True), NumpyStrategy.of(NUMPY_ROW))

CPU_STRATEGIES: Mapping[str, CpuStrategy] = MappingProxyType({strategy.name: strategy for strategy in _MADE})
