"""An op with all that is known of it, which travels wherever ops do."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import nan

from warpfold.kernels.dtypes import DType
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
    arithmetic: what an op that adds adds up, and else a row of `AGGREGATES` in `kernels/aggregates/by_name.py`;
    `reduction` names its arithmetic on a GPU, a template of
    `kernels/cuda/include/reductions.cuh`, and is None where a GPU only sums the op exactly.

    `rounds` says whether a value of floats is rounded at all: an op that selects or tests elements never rounds. With
    `magnitudes` the op takes |x| for x. `extreme` is the element that the op looks for, None where it looks for none.
    `empty` is the value of the op for no elements, None where it has none; no other table says this. `sources` is how
    many arrays it takes, `ddof` whether it divides by the count less delta degrees of freedom, of which each needs
    `lost` elements. `takes` names the parameters that a request may give, and `parameters` are those that hold,
    which `having` changes. With a `neighbour` the value of a quantile is the element on one side of it, and `part` is
    the number of the value that is meant, of an op that has several: see `singles`.

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
    part: int | None = None
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
        if not self.selects:
            return tuple(replace(self, part=number) for number in range(self.listed))
        return tuple(replace(self, parameters=replace(self.parameters, q=q)) for q in self.parameters.each_q)

    @property
    def selects(self) -> bool:
        """Whether the value follows from the order of the elements: all of them are kept until it is known."""
        return self.fold == "quantile"

    @property
    def endless(self) -> bool:
        """Whether a value of decimals may have no end: a mean, or what lies between two elements."""
        return self.selects or (self.finish is Finish.MEAN and self.terms is Terms.VALUES)

    @property
    def ranks(self) -> bool:
        """Whether the value follows from the order, the places or the number of elements alone, or from both ends of
        their order: a GPU makes what the op has on a CPU, and has no reduction of its own."""
        return not self.adds and self.reduction is None

    @property
    def keeps(self) -> bool:
        """Whether the value needs all elements, side by side or in their order."""
        return self.fold in ("quantile", "distinct", "mode", "picked")

    @property
    def picks(self) -> bool:
        """Whether the value is one of the first elements of a group, by their places or in their order."""
        return self.fold == "picked"

    @property
    def chooses(self) -> bool:
        """Whether the value is an element as it is."""
        return self.result is Result.ELEMENT

    @property
    def in_order(self) -> bool:
        """Whether the value depends on the order in which the elements come."""
        return self.places or self.picks

    @property
    def rank(self) -> int:
        """How many elements of a group stand before the one that the op picks, of several before the last one."""
        if self.part is not None:
            return self.part
        chosen = self.parameters
        if chosen.n is not None:
            return chosen.n if chosen.n >= 0 else -chosen.n - 1
        return (chosen.k or 1) - 1

    @property
    def kept(self) -> int:
        """How many elements of each group an op that picks some keeps."""
        return replace(self, part=None).rank + 1

    @property
    def multiplies(self) -> bool:
        """Whether the op multiplies elements, which rounds floats at every step."""
        return self.fold == "product"

    @property
    def listed(self) -> int | None:
        """How many values each group has, side by side on a last axis; None where the op has a single value."""
        if self.part is not None:
            return None
        chosen = self.parameters
        return len(chosen.each_q) if isinstance(chosen.q, tuple) else chosen.bin_count or chosen.k

    @property
    def labels(self) -> tuple[str, ...]:
        """What tells the values of a group apart, of an op that has several: the q of each, or its number from 0."""
        if isinstance(self.parameters.q, tuple):
            return tuple(map(str, self.parameters.q))
        return tuple(map(str, range(self.listed or 0)))

    def shape_of(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of all values of groups that are an array of `shape`."""
        return shape if self.listed is None else (*shape, self.listed)

    @property
    def empty_or_nan(self) -> float:
        """The value for no elements in an array, which has NaN where the op has no value."""
        return nan if self.empty is None else int(self.empty)

    def least_count(self, ddof: int) -> int:
        """How many elements a value needs at least, with so many degrees of freedom less."""
        if self.picks:
            return 1 + self.rank
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
