"""Arrays named by a distribution, a seed and a length: the same bits on every backend, at any index, in any chunks."""

from kernels.generate.array import generate
from kernels.generate.distributions import DISTRIBUTIONS, Distribution, Parameter
from kernels.generate.plan import Method, Plan, plan

__all__ = ["DISTRIBUTIONS", "Distribution", "Method", "Parameter", "Plan", "generate", "plan"]
