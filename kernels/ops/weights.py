"""Ops with weights: the same function of the weighted totals, in which the sum of the weights stands for the number of
elements.

Weights that say how often each element is there (`FREQUENCY`) give the value of so many elements. Weights that say how
much each element is worth (`RELIABILITY`) differ from them only where degrees of freedom are lost: as in
`numpy.cov(aweights=…)`, the value is divided by Σ w − ddof Σ w² / Σ w.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum
from types import MappingProxyType

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import finishes
from warpfold.kernels.ops.kinds import Finish, Terms
from warpfold.kernels.ops.op import Op
from warpfold.kernels.ops.table import OPS

ONE = "1"
"""A total that is the number 1 in the unit of the others, beside which the degrees of freedom are a multiple of it."""


class Weighting(StrEnum):
    """What weights say of their elements."""

    FREQUENCY = "frequency"  # how often each is there
    RELIABILITY = "reliability"  # how much each is worth


Function = Callable[..., finishes.Value]

# Functions of n, ddof and totals whose value stays where n, ddof and all totals are multiplied by one number.
_WEIGHTED: Mapping[str, tuple[Function, tuple[str, ...], str | None]] = MappingProxyType(
    {
        "mean": (finishes.mean, ("x",), "x"),
        "var": (finishes.variance, ("x", "xx"), None),
        "std": (finishes.deviation, ("x", "xx"), None),
        **{
            name: (function, OPS[name].totals, OPS[name].limit)
            for name in ("rms", "cov", "corr", "slope", "intercept", "r2")
            if (function := OPS[name].exact) is not None
        },
    }
)


WITH_WEIGHTS = ("sum", *_WEIGHTED)
"""The ops that take weights."""


def weighted(op: Op, weighting: Weighting) -> Op:
    """The row of `op` with weights, which are w in the names of its totals. Raises InvalidInput naming "weights" where
    `op` takes none."""
    if op.name == "sum":
        return replace(
            op, terms=Terms.TOTALS, finish=Finish.OF_TOTALS, totals=("wx",), exact=finishes.product, limit="wx"
        )
    if op.name not in _WEIGHTED:
        raise InvalidInput(f"{op.name} takes no weights; {', '.join(WITH_WEIGHTS)} do", "weights")
    function, totals, limit = _WEIGHTED[op.name]
    shares = weighting is Weighting.RELIABILITY and op.ddof
    first = ("w", "ww") if shares else ("w", ONE) if op.ddof else ("w",)
    return replace(
        op,
        terms=Terms.TOTALS,
        finish=Finish.OF_TOTALS,
        totals=(*first, *(f"w{total}" for total in totals)),
        exact=_of_shares(function) if shares else _of_multiples(function) if op.ddof else _of_sum(function),
        limit=None if limit is None else f"w{limit}",
    )


def _of_sum(function: Function) -> Function:
    return lambda n, ddof, w, *totals: function(w, 0, *totals) if w else None


def _of_multiples(function: Function) -> Function:
    return lambda n, ddof, w, unit, *totals: function(w, ddof * unit, *totals) if w and w != ddof * unit else None


def _of_shares(function: Function) -> Function:
    """All is multiplied by Σ w, so that no fraction is lost."""

    def of(n: int, ddof: int, w: int, ww: int, *totals: int) -> finishes.Value:
        return function(w * w, ddof * ww, *(w * total for total in totals)) if w and w * w != ddof * ww else None

    return of
