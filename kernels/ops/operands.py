"""Operands: the one or two sources and the degrees of freedom that an op takes, and whether they fit the op."""

from dataclasses import dataclass

from warpfold.kernels.dtypes import DType, common_float
from warpfold.kernels.errors import InvalidInput, NoElements
from warpfold.kernels.ops import Op
from warpfold.kernels.sources.sequential import Elements


@dataclass(frozen=True)
class Operands:
    """The arguments of a reduction. `operands` makes those that fit an op."""

    source: Elements
    other: Elements | None = None
    ddof: int = 0

    @property
    def other_dtype(self) -> DType | None:
        return None if self.other is None else self.other.dtype

    @property
    def both(self) -> tuple[Elements, Elements]:
        """The two sources of an op that takes two."""
        assert self.other is not None, "an op of two sources has both"
        return self.source, self.other

    def result_dtype(self, op: Op) -> str:
        """Name of the dtype of the op's value."""
        return result_dtype(op, self.source.dtype, self.other_dtype)


def operands(op: Op, source: Elements, other: Elements | None = None, ddof: int = 0) -> Operands:
    """The operands of `op`. Raises InvalidInput naming "other" or "ddof" where the op takes no such operand, needs one
    that is missing, or cannot be computed with the one it has."""
    check(op, source.dtype, None if other is None else other.dtype, ddof)
    if other is not None and source.count is not None and other.count is not None:
        check_counts(op, source.count, other.count)
    return Operands(source, other, ddof)


def check(op: Op, dtype: DType, other: DType | None, ddof: int) -> None:
    """Raise InvalidInput naming "other" or "ddof" unless `op` takes elements of these dtypes and this ddof."""
    check_arity(op, other=other is not None, ddof=ddof)
    if other is not None and dtype.is_float != other.is_float:
        raise InvalidInput(
            f"{op.name} of {dtype.name} with {other.name} is not defined: either both are floats or neither",
            "other",
        )


def check_arity(op: Op, *, other: bool, ddof: int) -> None:
    """Raise InvalidInput naming "other" or "ddof" unless `op` takes as many sources and this ddof."""
    if op.sources == 2 and not other:
        raise InvalidInput(f"{op.name} needs a second source", "other")
    if op.sources == 1 and other:
        raise InvalidInput(f"{op.name} takes no second source", "other")
    if ddof < 0:
        raise InvalidInput(f"ddof is {ddof}; it must not be negative", "ddof")
    if ddof and not op.ddof:
        raise InvalidInput(f"{op.name} takes no ddof", "ddof")
    if ddof > 1 and op.lost > 1:
        raise InvalidInput(f"ddof is {ddof}; {op.name} takes 0, or 1 for that of a sample", "ddof")


def check_counts(op: Op, count: int, other: int) -> None:
    """Raise InvalidInput naming "other" unless the two sources are equally long."""
    if count != other:
        raise InvalidInput(f"{op.name} needs two sources of one length, not {count:,} and {other:,} elements", "other")


def check_freedom(op: Op, count: int, ddof: int) -> None:
    """Raise InvalidInput naming "ddof" where `count` ≥ 1 elements are too few for `op` with this ddof."""
    if op.ddof and op.lost > 1 and count < op.least_count(ddof):
        raise InvalidInput(f"{op.name} with ddof {ddof} needs {op.least_count(ddof)} elements, not {count:,}", "ddof")
    if op.ddof and count <= ddof:
        raise InvalidInput(
            f"{op.name} of {count:,} elements with ddof {ddof} is undefined: it divides by n − ddof = {count - ddof}",
            "ddof",
        )


def check_reached(op: Op, count: int) -> None:
    """Raise NoElements where `count` ≥ 1 elements are too few for the place that `op` asks for."""
    if op.picks and count <= op.rank:
        raise NoElements(f"n is {op.parameters.n}, which needs {op.rank + 1:,} elements: {op.name} has {count:,}")


def check_states(op: Op, field: str = "states") -> None:
    """Raise InvalidInput naming `field` unless values of `op` have exact states: it adds something up."""
    if not op.adds:
        raise InvalidInput(f"values of {op.name} have no exact state: {op.name} adds nothing up", field)


def result_dtype(op: Op, dtype: DType, other: DType | None = None) -> str:
    """Name of the dtype of the op's value: of two floats, the narrowest float that holds both."""
    if other is None or not dtype.is_float:
        return op.result_dtype(dtype)
    return op.result_dtype(common_float(dtype, other))
