"""The filter of a table's rows, as JSON: each condition is an object, whose `op` names its kind."""

from collections.abc import Iterator
from typing import Annotated, Literal, Union, get_args

from pydantic import Field, StrictBool, StrictInt, StringConstraints

from warpfold.contract.fields import FiniteFloat, Listed
from warpfold.contract.frozen import Frozen
from warpfold.contract.unions import said_as
from warpfold.kernels.formats.row_filter import Compared, Condition, IsIn, IsNull, Joined, Negated

MOST_CONDITIONS = 1000
MOST_VALUES = 10_000

ColumnName = Annotated[str, StringConstraints(min_length=1, max_length=1024, pattern=r"^[^\x00]+$")]
Word = Annotated[str, StringConstraints(max_length=1024)]
Compare = Annotated[
    StrictBool | StrictInt | FiniteFloat | Word,
    said_as("Should be a truth value, a finite number, or a string; dates, times and decimals are strings"),
]


class ComparisonFilter(Frozen):
    """Rows whose value in a column compares with `value` as `op` says. The column's type must hold `value` exactly."""

    op: Literal["==", "!=", "<", "<=", ">", ">="]
    column: ColumnName
    value: Compare

    def condition(self) -> Condition:
        return Compared(self.column, self.op, self.value)


class MembershipFilter(Frozen):
    """Rows whose value in a column is one of `values`."""

    op: Literal["in"]
    column: ColumnName
    values: Listed[Compare] = Field(min_length=1, max_length=MOST_VALUES)

    def condition(self) -> Condition:
        return IsIn(self.column, self.values)


class NullFilter(Frozen):
    """Rows that have no value in a column."""

    op: Literal["is_null"]
    column: ColumnName

    def condition(self) -> Condition:
        return IsNull(self.column)


class JunctionFilter(Frozen):
    """Rows for which all conditions hold, or at least one of them."""

    op: Literal["and", "or"]
    of: tuple["RowFilter", ...] = Field(min_length=1, max_length=MOST_CONDITIONS)

    def condition(self) -> Condition:
        return Joined(self.op == "and", tuple(part.condition() for part in self.of))


class NegationFilter(Frozen):
    """Rows for which a condition does not hold. For a null, neither a comparison nor its opposite holds."""

    op: Literal["not"]
    of: "RowFilter"

    def condition(self) -> Condition:
        return Negated(self.of.condition())


RowFilter = Annotated[
    Union[ComparisonFilter, MembershipFilter, NullFilter, JunctionFilter, NegationFilter],  # noqa: UP007 (recursive)
    Field(discriminator="op"),
]

FILTER_TAGS = frozenset(
    op
    for kind in (ComparisonFilter, MembershipFilter, NullFilter, JunctionFilter, NegationFilter)
    for op in get_args(kind.model_fields["op"].annotation)
)
"""The values of `op`: in the location of an error they stand beside the names of fields."""

JunctionFilter.model_rebuild()
NegationFilter.model_rebuild()


def conditions_in(rows: RowFilter, depth: int = 1) -> Iterator[int]:
    """The depth of every condition, 1 for the outermost."""
    yield depth
    inner = rows.of if isinstance(rows, JunctionFilter) else (rows.of,) if isinstance(rows, NegationFilter) else ()
    for part in inner:
        yield from conditions_in(part, depth + 1)
