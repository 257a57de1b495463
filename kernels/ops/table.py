"""The reductions, one row each. A new one is a row here, and its arithmetic where the row says."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import nan
from types import MappingProxyType

from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput, NoElements
from warpfold.kernels.ops import finishes
from warpfold.kernels.ops.kinds import Extreme, Finish, Neighbour, Result, Terms
from warpfold.kernels.ops.parameters import NO_PARAMETERS, Parameters
from warpfold.kernels.ops.quantiles import METHODS

INTEGER = "integer"
"""Result dtype of integer sums and products: a Python integer, exact beyond 64 bits."""

Value = int | float | bool


@dataclass(frozen=True, slots=True)
class Op:
    """A reduction of a one-dimensional array, or of two of one length, to one value.

    `terms` is what an exact accumulator adds up and `finish` what becomes of the total. `fold` names the op's
    arithmetic on a CPU, a row of `AGGREGATES` in `kernels/aggregates/by_name.py`, or of the `FOLDS` of a file in
    `kernels/cpu/folds/` for an op that adds; `reduction` names its arithmetic on a GPU, a template of
    `kernels/cuda/include/reductions.cuh`, and is None where a GPU only sums the op exactly.

    `rounds` says whether a value of floats is rounded at all: an op that selects or tests elements never rounds. With
    `magnitudes` the op takes |x| for x. `extreme` is the element that the op looks for, None where it looks for none.
    `empty` is the value of the op for no elements, None where it has none; no other table says this. `sources` is how
    many arrays it takes, `ddof` whether it divides by the count less delta degrees of freedom, of which each needs
    `lost` elements. `takes` names the parameters that a request may give, and `parameters` are those that hold,
    which `having` changes. With a `neighbour` the value of a quantile is the element on one side of it.

    An op of TOTALS is made of those that `totals` names: "x" is Σ x, "|x|" is Σ |x|, "xxy" is Σ x x y, where y is the
    other array. `exact` is one of the functions of `kernels/ops/finishes.py`. It gets the totals in this order. Where
    only the total `limit` is infinite, the value is, too; where another is not finite, the value is NaN.
    """

    name: str
    summary: str
    result: Result
    terms: Terms
    finish: Finish
    fold: str
    reduction: str | None
    rounds: bool
    magnitudes: bool = False
    extreme: Extreme | None = None
    empty: Value | None = None
    sources: int = 1
    ddof: bool = False
    takes: tuple[str, ...] = ()
    parameters: Parameters = NO_PARAMETERS
    neighbour: Neighbour | None = None
    lost: int = 1
    totals: tuple[str, ...] = ()
    exact: Callable[..., finishes.Value] | None = None
    limit: str | None = None

    def having(self, parameters: Parameters) -> "Op":
        """The op with these parameters, and its own where they leave some out. Raises InvalidInput naming a parameter
        that the op does not take, or that has no such value."""
        if parameters == NO_PARAMETERS:
            return self
        parameters.check(self.name, self.takes)
        chosen = parameters.beside(self.parameters)
        if chosen.method is not None and METHODS[chosen.method].chooses:
            return replace(self, parameters=chosen, result=Result.ELEMENT, rounds=False)
        return replace(self, parameters=chosen)

    def neighbours(self, *, descending: bool = False) -> tuple["Op", ...]:
        """The ops that give the elements between which a quantile lies: the lower one and the upper one, or the one
        that it is in any case. With `descending` the order of the elements is that of their opposites."""
        sides = (False,) if self.result is Result.ELEMENT else (False, True)
        return tuple(
            replace(self, result=Result.ELEMENT, rounds=False, neighbour=Neighbour(upper, descending))
            for upper in sides
        )

    def singles(self) -> tuple["Op", ...]:
        """The ops of the single values, where the op has a list of them."""
        if self.listed is None:
            return (self,)
        return tuple(replace(self, parameters=replace(self.parameters, q=q)) for q in self.parameters.each_q)

    @property
    def selects(self) -> bool:
        """Whether the value follows from the order of the elements: all of them are kept until it is known."""
        return self.fold == "quantile"

    @property
    def keeps(self) -> bool:
        """Whether the value needs all elements, side by side or in their order."""
        return self.fold in ("quantile", "distinct")

    @property
    def multiplies(self) -> bool:
        """Whether the op multiplies elements, which rounds floats at every step."""
        return self.fold == "product"

    @property
    def listed(self) -> int | None:
        """How many values each group has, side by side on a last axis; None where the op has a single value."""
        return len(self.parameters.each_q) if isinstance(self.parameters.q, tuple) else None

    def shape_of(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of all values of groups that are an array of `shape`."""
        return shape if self.listed is None else (*shape, self.listed)

    @property
    def empty_or_nan(self) -> float:
        """The value for no elements in an array, which has NaN where the op has no value."""
        return nan if self.empty is None else int(self.empty)

    def least_count(self, ddof: int) -> int:
        """How many elements a value needs at least, with so many degrees of freedom less."""
        return 1 + self.lost * ddof if self.ddof else 1 if self.empty is None else 0

    @property
    def adds(self) -> bool:
        """Whether an exact accumulator can compute the op: it adds something up."""
        return self.terms is not Terms.NONE

    @property
    def places(self) -> bool:
        """Whether the value is the index of the element that the op looks for."""
        return self.extreme is not None and self.result is Result.INDEX

    def proved(self, dtype: DType) -> bool:
        """Whether a value of elements of `dtype` is correct to the bit, however its elements are put together: nothing
        is rounded. Integers are added, multiplied and compared exactly."""
        return not (dtype.is_float and self.rounds)

    def result_dtype(self, dtype: DType) -> str:
        """Name of the result's dtype: a row of DTYPES, or "integer"."""
        match self.result:
            case Result.ELEMENT:
                return dtype.name
            case Result.WIDE:
                return dtype.name if dtype.is_float else INTEGER
            case Result.REAL:
                return dtype.name if dtype.is_float else "float64"
            case Result.INDEX:
                return "int64"
            case Result.TRUTH:
                return "bool"


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
        raise InvalidInput(f"unknown op {name!r}; known: {', '.join(OPS)}", field) from None


def empty_value(op: Op, dtype: DType) -> Value:
    """The value of `op` over no elements; NoElements where it is undefined."""
    if op.empty is None:
        raise NoElements(f"{op.name} of no elements is undefined")
    result = op.result_dtype(dtype)
    return float(op.empty) if result in DTYPES and DTYPES[result].is_float else op.empty
