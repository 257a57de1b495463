"""The row of a strategy, on any backend. `kernels.catalog` lists the strategies that there are."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, Self

from warpfold.kernels.dtypes import DType
from warpfold.kernels.ops import Op, Terms, sums_of

AUTO = "auto"
"""Asks for the backend's best strategy."""

EXACT = "exact"


def _nothing() -> None:
    return None


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """A way to reduce, on one backend: a row of the catalogue. The strategies that can be started derive from it, and
    are made of their rows (`of`), so that the catalogue is read without them.

    `claims` lists every (op, dtype) pair of names that it computes; `summary` is its one idea; `error_bound` says in
    words what may be lost ("correctly rounded", "γ_{n−1} Σ|x|", …). `lacks` looks for what this machine lacks.
    """

    name: str
    backend: str
    summary: str
    error_bound: str
    claims: frozenset[tuple[str, str]]
    lacks: Callable[[], str | None] = _nothing

    @classmethod
    def of(cls, row: "Strategy", **more: Any) -> Self:
        """The strategy of a row, with `more` fields of its own."""
        return cls(**{field.name: getattr(row, field.name) for field in fields(Strategy)}, **more)

    @property
    def missing(self) -> str | None:
        """Why this machine cannot run it, where that is known without its device: a package or a compiler is not
        installed."""
        return self.lacks()

    def computes(self, op: Op, dtype: DType, other: DType | None = None) -> bool:
        """Whether it claims `op` of `dtype`, and of the second source's dtype where there is one. An op of several
        totals is computed by the exact sums that it is made of."""
        if op.terms is Terms.TOTALS and self.name != EXACT:
            return False
        kinds = [kind.name for kind in (dtype, other) if kind is not None]
        return all((name, kind) in self.claims for name in sums_of(op) for kind in kinds)


def claims(ops: Iterable[str], dtypes: Iterable[str]) -> frozenset[tuple[str, str]]:
    """Every pair of an op and a dtype."""
    kept = tuple(dtypes)
    return frozenset((op, dtype) for op in ops for dtype in kept)
