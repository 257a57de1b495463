"""The reductions, one row each. A new one is a row here, and its arithmetic where the row says."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import NoElements, unknown
from warpfold.kernels.ops import finishes
from warpfold.kernels.ops.kinds import Extreme, Finish, Result, Terms
from warpfold.kernels.ops.op import Op, Value
from warpfold.kernels.ops.parameters import Parameters


def _of_totals(
    name: str,
    summary: str,
    exact: Callable[..., finishes.Value],
    totals: str,
    *,
    limit: str | None = None,
    empty: Value | None = None,
    sources: int = 1,
    lost: int = 0,
) -> Op:
    """A row whose value is a function of several totals; `lost` is 0 where it takes no ddof."""
    return Op(
        name,
        summary,
        Result.REAL,
        Terms.TOTALS,
        Finish.OF_TOTALS,
        "totals",
        None,
        rounds=True,
        empty=empty,
        sources=sources,
        ddof=lost > 0,
        lost=lost or 1,
        totals=tuple(totals.split()),
        exact=exact,
        limit=limit,
    )


def _picked(
    name: str, summary: str, result: Result = Result.ELEMENT, extreme: Extreme | None = None, n: int | None = None
) -> Op:
    """A row whose value is an element that stands at a place of its group, or its place: in the order in which the
    elements come or, with `extreme`, from the least one up or from the largest one down."""
    takes = ("k",) if extreme is not None else () if name in ("first", "last") else ("n",)
    return Op(
        name,
        summary,
        result,
        Terms.NONE,
        Finish.ITSELF,
        "picked",
        None,
        rounds=False,
        extreme=extreme,
        takes=takes,
        parameters=Parameters(n=n),
    )


_ROWS = (
    Op("sum", "Σ x", Result.WIDE, Terms.VALUES, Finish.ITSELF, "sum", "Sum", rounds=True, empty=0),
    Op("mean", "Σ x / n", Result.REAL, Terms.VALUES, Finish.MEAN, "sum", "Sum", rounds=True),
    Op("prod", "Π x", Result.WIDE, Terms.NONE, Finish.ITSELF, "product", "Prod", rounds=True, empty=1),
    Op(
        "min",
        "the smallest element",
        Result.ELEMENT,
        Terms.NONE,
        Finish.ITSELF,
        "extreme",
        "Min",
        rounds=False,
        extreme=Extreme.LEAST,
    ),
    Op(
        "max",
        "the largest element",
        Result.ELEMENT,
        Terms.NONE,
        Finish.ITSELF,
        "extreme",
        "Max",
        rounds=False,
        extreme=Extreme.MOST,
    ),
    Op(
        "argmin",
        "index of the smallest element, the lowest of equals",
        Result.INDEX,
        Terms.NONE,
        Finish.ITSELF,
        "extreme",
        "ArgMin",
        rounds=False,
        extreme=Extreme.LEAST,
    ),
    Op(
        "argmax",
        "index of the largest element, the lowest of equals",
        Result.INDEX,
        Terms.NONE,
        Finish.ITSELF,
        "extreme",
        "ArgMax",
        rounds=False,
        extreme=Extreme.MOST,
    ),
    Op("sum_squares", "Σ x²", Result.WIDE, Terms.PRODUCTS, Finish.ITSELF, "sum", "SumSquares", rounds=True, empty=0),
    Op(
        "norm1",
        "Σ |x|",
        Result.WIDE,
        Terms.VALUES,
        Finish.ITSELF,
        "sum",
        "Norm1",
        rounds=True,
        magnitudes=True,
        empty=0,
    ),
    Op("norm2", "√ Σ x²", Result.REAL, Terms.PRODUCTS, Finish.ROOT, "sum", "SumSquares", rounds=True, empty=0),
    Op("dot", "Σ x y", Result.WIDE, Terms.PRODUCTS, Finish.ITSELF, "dot", None, rounds=True, empty=0, sources=2),
    Op(
        "var",
        "Σ (x − mean)² / (n − ddof)",
        Result.REAL,
        Terms.MOMENTS,
        Finish.VARIANCE,
        "moments",
        None,
        rounds=True,
        ddof=True,
    ),
    Op("std", "√ var", Result.REAL, Terms.MOMENTS, Finish.DEVIATION, "moments", None, rounds=True, ddof=True),
    Op(
        "norm_inf",
        "max |x|",
        Result.WIDE,
        Terms.NONE,
        Finish.ITSELF,
        "extreme",
        "NormInf",
        rounds=False,
        magnitudes=True,
        extreme=Extreme.MOST,
        empty=0,
    ),
    Op(
        "count_nonzero",
        "how many elements are not zero (NaN is not)",
        Result.INDEX,
        Terms.NONE,
        Finish.ITSELF,
        "nonzero",
        "CountNonzero",
        rounds=False,
        empty=0,
    ),
    Op(
        "count",
        "how many elements there are, without nulls, and without NaNs where they are omitted",
        Result.INDEX,
        Terms.NONE,
        Finish.ITSELF,
        "count",
        None,
        rounds=False,
        empty=0,
    ),
    Op(
        "any",
        "whether an element is not zero",
        Result.TRUTH,
        Terms.NONE,
        Finish.ITSELF,
        "nonzero",
        "CountNonzero",
        rounds=False,
        empty=False,
    ),
    Op(
        "all",
        "whether every element is not zero",
        Result.TRUTH,
        Terms.NONE,
        Finish.ITSELF,
        "nonzero",
        "CountNonzero",
        rounds=False,
        empty=True,
    ),
    Op(
        "median",
        "the middle element in their order, or the mean of the two in the middle",
        Result.REAL,
        Terms.NONE,
        Finish.ITSELF,
        "quantile",
        None,
        rounds=True,
        parameters=Parameters(q=0.5, method="linear"),
    ),
    Op(
        "quantile",
        "the value below which a share q of the elements lies, or a list of such values",
        Result.REAL,
        Terms.NONE,
        Finish.ITSELF,
        "quantile",
        None,
        rounds=True,
        takes=("q", "method"),
        parameters=Parameters(q=0.5, method="linear"),
    ),
    Op(
        "nunique",
        "how many different elements there are (−0 is 0)",
        Result.INDEX,
        Terms.NONE,
        Finish.ITSELF,
        "distinct",
        None,
        rounds=False,
        empty=0,
    ),
    Op(
        "mode",
        "the most frequent element, the least of equally frequent ones (−0 is 0)",
        Result.ELEMENT,
        Terms.NONE,
        Finish.ITSELF,
        "mode",
        None,
        rounds=False,
    ),
    Op("ptp", "max − min", Result.WIDE, Terms.NONE, Finish.ITSELF, "span", None, rounds=True),
    _picked("first", "the first element", n=0),
    _picked("last", "the last element", n=-1),
    _picked("nth", "element n from 0 on, or with a negative n from the last one back", n=0),
    _picked("top_k", "the k largest elements, the largest first", extreme=Extreme.MOST),
    _picked("bottom_k", "the k smallest elements, the smallest first", extreme=Extreme.LEAST),
    _picked("argtop_k", "indices of the k largest elements, lowest of equals first", Result.INDEX, Extreme.MOST),
    _picked("argbottom_k", "indices of the k smallest elements, lowest of equals first", Result.INDEX, Extreme.LEAST),
    Op(
        "histogram",
        "how many elements lie in each bin: from an edge up to the next one, which only the last bin includes",
        Result.INDEX,
        Terms.NONE,
        Finish.ITSELF,
        "histogram",
        None,
        rounds=False,
        empty=0,
        takes=("bins", "range"),
    ),
    _of_totals("rms", "√ (Σ x² / n)", finishes.root_mean_square, "xx", limit="xx"),
    _of_totals("sem", "√ (var / n), the standard error of the mean", finishes.standard_error, "x xx", lost=1),
    _of_totals("norm3", "(Σ |x|³) ** (1/3)", finishes.cube_root, "|xxx|", limit="|xxx|", empty=0),
    _of_totals("norm4", "(Σ x⁴) ** (1/4)", finishes.fourth_root, "xxxx", limit="xxxx", empty=0),
    _of_totals("moment3", "m₃ = Σ (x − mean)³ / n", finishes.third_moment, "x xx xxx"),
    _of_totals("moment4", "m₄ = Σ (x − mean)⁴ / n", finishes.fourth_moment, "x xx xxx xxxx"),
    _of_totals("skew", "m₃ / m₂ ** (3/2); of a sample with ddof 1", finishes.skewness, "x xx xxx", lost=2),
    _of_totals("kurtosis", "m₄ / m₂² − 3; of a sample with ddof 1", finishes.kurtosis, "x xx xxx xxxx", lost=3),
    _of_totals(
        "cov",
        "Σ (x − mean) (y − mean) / (n − ddof)",
        finishes.covariance,
        "x y xy",
        sources=2,
        lost=1,
    ),
    _of_totals(
        "corr",
        "cov / (std of x · std of y)",
        finishes.correlation,
        "x y xx xy yy",
        sources=2,
    ),
    _of_totals("slope", "of the line through (x, y): cov / var of x", finishes.slope, "x y xx xy", sources=2),
    _of_totals(
        "intercept",
        "of the line through (x, y): mean of y − slope · mean of x",
        finishes.intercept,
        "x y xx xy",
        sources=2,
    ),
    _of_totals("r2", "of the line through (x, y): corr²", finishes.determination, "x y xx xy yy", sources=2),
)

OPS: Mapping[str, Op] = MappingProxyType({row.name: row for row in _ROWS})

SUMS_OF_MOMENTS = ("sum", "sum_squares")
"""The ops whose totals make a variance."""


def op_named(name: str | Op, field: str = "op") -> Op:
    """The row called `name`, or the op itself; InvalidInput that names `field` for an unknown name."""
    if isinstance(name, Op):
        return name
    try:
        return OPS[name]
    except KeyError:
        raise unknown("op", name, OPS, field) from None


def empty_value(op: Op, dtype: DType) -> Value:
    """The value of `op` over no elements; NoElements where it is undefined."""
    if op.empty is None:
        raise NoElements(f"{op.name} of no elements is undefined")
    result = op.result_dtype(dtype)
    return float(op.empty) if result in DTYPES and DTYPES[result].is_float else op.empty
