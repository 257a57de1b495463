"""Arrays named by a distribution, a seed and a length: the same bits on every backend, at any index, in any chunks."""

from warpfold.kernels.generate.array import generate
from warpfold.kernels.generate.distributions import DISTRIBUTIONS, Distribution, Parameter
from warpfold.kernels.generate.plan import Formula, Plan, plan

__all__ = ["DISTRIBUTIONS", "Distribution", "Formula", "Parameter", "Plan", "generate", "plan"]
