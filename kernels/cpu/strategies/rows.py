"""The strategies on a CPU as rows of the catalogue."""

from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.ops import OPS, Terms
from warpfold.kernels.strategy import EXACT, Strategy, claims

# An op of several totals is made of the sums that the exact strategy claims.
_OPS = tuple(op.name for op in OPS.values() if op.terms is not Terms.TOTALS)

_NOT_IN_NUMPY = ("picked", "mode")
"""Folds whose ops are no single call of NumPy that takes every dtype."""

EXACT_ROW = Strategy(
    name=EXACT,
    backend="cpu",
    summary="Adds in fixed point, 4096 elements at a time in the first-level cache, on all cores; reads piece by piece",
    error_bound="correctly rounded: the true value to nearest, ties to even; integers exact at any size",
    # Products of floats are missing, because they round at every step.
    claims=claims(_OPS, DTYPES)
    - claims(
        (op.name for op in OPS.values() if op.multiplies),
        [row.name for row in DTYPES.values() if row.is_float],
    ),
)

NUMPY_ROW = Strategy(
    name="numpy",
    backend="cpu",
    summary="One NumPy call over the whole array in memory",
    error_bound=(
        "γ_{log₂ n + 16} Σ|x| in the element dtype for float sums (pairwise by blocks); dot γ_n Σ|xy| in the "
        "result's dtype; var and std from deviations from the rounded mean; sums and products of integers wrap at "
        "64 bits"
    ),
    claims=claims((name for name in _OPS if OPS[name].fold not in _NOT_IN_NUMPY), DTYPES),
)

CPU_ROWS = (EXACT_ROW, NUMPY_ROW)
