"""The arithmetic of each method, as far as an a-priori bound depends on it."""

from dataclasses import dataclass
from enum import StrEnum

from warpfold.kernels.accuracy.loops import BLOCK
from warpfold.kernels.accuracy.methods import CUDA_PREFIX, method_named
from warpfold.kernels.accuracy.point import AccuracyCase
from warpfold.kernels.cuda.strategies.registry import own_strategies
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.ops import Terms, op_named
from warpfold.kernels.strategy import EXACT

_FINISHED = ("mean", "norm2")
"""Ops that divide, or take a root, after the sum."""

_SINGLE, _DOUBLE = DTYPES["float32"].precision, DTYPES["float64"].precision


class Scheme(StrEnum):
    """How rounding errors come together."""

    ADDITIONS = "additions"  # a term goes through at most `height` rounded additions, or factors through n
    KAHAN = "kahan"
    NEUMAIER = "neumaier"
    EXACT = "exact"  # one rounding of the true value


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """How a result is rounded on the way.

    Every addition has `precision` bits. Terms that are rounded products have `terms` bits, None where they are exact.
    The result is rounded `roundings` more times to the dtype: from a wider one, and by a division or a root.
    """

    scheme: Scheme
    precision: int = 0
    height: int = 0
    terms: int | None = None
    roundings: int = 0


def arithmetic_of(case: AccuracyCase, backend: str) -> Arithmetic:
    """The arithmetic of a case on a slot of `backend`."""
    method = method_named(case.method)
    if method.strategy == EXACT:
        return Arithmetic(Scheme.EXACT)
    if method.strategy is None:
        return _loop(case)
    if method.strategy == "numpy":
        return _numpy(case)
    if backend == "cuda" and method.name.removeprefix(CUDA_PREFIX) in _own():
        return _own_kernel(case, method.strategy)
    return _any_order(case)


def _loop(case: AccuracyCase) -> Arithmetic:
    precision, n = DTYPES[case.dtype].precision, case.n
    terms = precision if _of_products(case) else None
    last = int(case.op in _FINISHED)
    match case.method:
        case "kahan":
            return Arithmetic(Scheme.KAHAN, precision, n - 1, terms, last)
        case "neumaier":
            return Arithmetic(Scheme.NEUMAIER, precision, n - 1, terms, last)
        case "float64_accumulator" if precision < _DOUBLE:
            # Products of two narrower numbers are float64 numbers.
            return Arithmetic(Scheme.ADDITIONS, _DOUBLE, n - 1, None, 1)
        case "tree":
            height = _log2(n)
        case "pairwise":
            height = min(n, BLOCK) - 1 + _log2(-(-n // BLOCK))
        case _:
            height = n - 1
    return Arithmetic(Scheme.ADDITIONS, precision, height, terms, last)


def _numpy(case: AccuracyCase) -> Arithmetic:
    """NumPy adds contiguous floats pairwise: blocks of 128 in 8 chains of 16, three levels to join them, up to 7 left
    over, so that with the halving above no element goes through more than ⌈log₂ n⌉ + 20 additions. float16 is added
    in float32; its mean is cast in buffers of 8192, added one after the other. bfloat16 comes from ml_dtypes, which
    adds one after the other. A dot product is the BLAS library's, in any order."""
    precision, n = DTYPES[case.dtype].precision, case.n
    if case.op in ("dot", "prod") or case.dtype == "bfloat16":
        return _any_order(case)
    terms = precision if _of_products(case) else None
    last = int(case.op in _FINISHED)
    if case.dtype == "float16":
        height = min(n, _log2(n) + 20 + (n // 8192 if case.op == "mean" else 0))
        return Arithmetic(Scheme.ADDITIONS, _SINGLE, height, terms, last + 1)
    return Arithmetic(Scheme.ADDITIONS, precision, min(n, _log2(n) + 20), terms, last)


def _own() -> frozenset[str]:
    return frozenset(own_strategies())


def _own_kernel(case: AccuracyCase, strategy: str) -> Arithmetic:
    """Kernels of ours add in float32 or float64 as their catalogue rows say, and round once to the dtype."""
    n, products = case.n, _of_products(case)
    wide = case.dtype == "float64" or (products and case.dtype != "float16") or strategy == "float64_accumulator"
    adding = _DOUBLE if wide else _SINGLE
    terms = _DOUBLE if products and case.dtype == "float64" else None
    if strategy == "compensated":
        return Arithmetic(Scheme.NEUMAIER, adding, n, terms, 1)
    height = min(n, _log2(n) + 22) if strategy == "pairwise" else n
    return Arithmetic(Scheme.ADDITIONS, adding, height, terms, 1)


def _any_order(case: AccuracyCase) -> Arithmetic:
    """Any order of additions in the dtype, or in a wider dtype with a rounding at the end. No more is known of a
    library that promises nothing."""
    precision = DTYPES[case.dtype].precision
    last = 2 * int(case.op in _FINISHED)
    return Arithmetic(Scheme.ADDITIONS, precision, case.n, precision if _of_products(case) else None, last)


def _of_products(case: AccuracyCase) -> bool:
    return op_named(case.op).terms is Terms.PRODUCTS


def _log2(n: int) -> int:
    """⌈log₂ n⌉ for n ≥ 1."""
    return (n - 1).bit_length()
