"""The row of a strategy, on any backend. `kernels.catalog` lists the strategies that there are."""

from collections.abc import Iterable
from dataclasses import dataclass

from warpfold.kernels.dtypes import DType
from warpfold.kernels.ops import Op

AUTO = "auto"
"""Asks for the backend's best strategy."""

EXACT = "exact"


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """A way to reduce, on one backend. A backend's strategies derive from it and can be started.

    `claims` lists every (op, dtype) pair of names that it computes; `summary` is its one idea; `error_bound` says in
    words what may be lost ("correctly rounded", "γ_{n−1} Σ|x|", …). `missing` says why this machine cannot run it,
    where that is known without its device: a package or a compiler is not installed.
    """

    name: str
    backend: str
    summary: str
    error_bound: str
    claims: frozenset[tuple[str, str]]
    missing: str | None = None

    def computes(self, op: Op, dtype: DType, other: DType | None = None) -> bool:
        """Whether it claims `op` of `dtype`, and of the second source's dtype where there is one."""
        return all((op.name, kind.name) in self.claims for kind in (dtype, other) if kind is not None)


def claims(ops: Iterable[str], dtypes: Iterable[str]) -> frozenset[tuple[str, str]]:
    """Every pair of an op and a dtype."""
    kept = tuple(dtypes)
    return frozenset((op, dtype) for op in ops for dtype in kept)
