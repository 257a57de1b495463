"""The columns of a group-by request: those of keys, and those that are reduced."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field, model_validator

from warpfold.contract.fields import OpName
from warpfold.contract.frozen import Frozen
from warpfold.contract.op_parameters import (
    BinsField,
    DdofField,
    MethodField,
    PickedField,
    PlaceField,
    QuantilesField,
    RangeField,
    op_with_parameters,
)
from warpfold.contract.sources import Source
from warpfold.contract.sources.array import ArrayFileSource
from warpfold.contract.sources.dataset import DatasetSource
from warpfold.contract.sources.files import FilesSource
from warpfold.contract.sources.generate import GenerateSource
from warpfold.contract.sources.keys import GivenKeys
from warpfold.contract.sources.path import PathSource
from warpfold.contract.sources.table import TableSource
from warpfold.contract.text_fields import InFile
from warpfold.kernels.catalog import keyed_backends, refused_by_key
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import Op, op_named

KeySource = Annotated[
    GivenKeys | GenerateSource | PathSource | DatasetSource | ArrayFileSource | TableSource | FilesSource,
    Field(discriminator="type"),
]
Name = Annotated[str, Field(min_length=1, max_length=256)]


class KeyColumn(Frozen):
    """A column of keys, which is in the table `source` or has a source of its own."""

    column: InFile | None = Field(None, description="Name of the column of `source`.")
    source: KeySource | None = Field(
        None,
        description="The source of the keys if the request has no table `source`: integers, truth values or strings "
        "of the request.",
    )
    name: Name | None = Field(
        None, description="The name of the column in the result; by default the name in the table, or `key`."
    )

    @model_validator(mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        return {"column": value} if isinstance(value, str) else value

    @property
    def label(self) -> str:
        """The name of the column in the result."""
        return self.name or self.column or "key"


class AggregationSpec(Frozen):
    """An op and the column that it reduces. The column is in the table `source`, or it has a source of its own."""

    op: OpName = Field("sum", description="Op that reduces the elements of each group. `/v1/ops` lists the ops.")
    column: InFile | None = Field(None, description="Name of the column of `source`.")
    source: Source | None = Field(
        None, description="Where the elements come from if the request has no table `source`."
    )
    name: Name | None = Field(None, description="Name of the values; by default the column and the op: `price_sum`.")
    ddof: DdofField = 0
    q: QuantilesField = None
    method: MethodField = None
    n: PlaceField = None
    k: PickedField = None
    bins: BinsField = None
    range: RangeField = None

    @property
    def label(self) -> str:
        """The name of the values in the result."""
        return self.name or (f"{self.column}_{self.op}" if self.column else self.op)

    def row(self) -> Op:
        """The op with its parameters. Raises InvalidInput naming a parameter."""
        return op_with_parameters(self)

    def columns(self) -> tuple[tuple[str, Op], ...]:
        """The columns of values: their names, and the op of each. A list of quantiles has a column for each, whose name
        ends with its q: `price_quantile_0.5`. So have elements and bins, whose names end with their numbers from 0."""
        op = self.row()
        if op.listed is None:
            return ((self.label, op),)
        return tuple((f"{self.label}_{label}", single) for label, single in zip(op.labels, op.singles(), strict=True))

    def backends(self) -> tuple[str, ...]:
        """The backends that can run it, so far as that is known without looking at files."""
        return keyed_backends(self.row(), None if self.source is None else self.source.known_dtype)


def check_multiplies(op: str, *, is_float: bool, where: str) -> None:
    """Raise InvalidInput naming the field `where` for a product of floats, which rounds at every step."""
    if is_float and op_named(op).multiplies:
        raise InvalidInput(
            f"{op} of floats rounds at every step, so that its bits depend on the order of the rows: groups take it "
            "of integers alone",
            where,
        )


def check_on_gpu(aggregations: Sequence[AggregationSpec]) -> None:
    """Raise InvalidInput naming the field "backend" where a GPU does not compute one of these."""
    for asked in aggregations:
        op, known = asked.row(), None if asked.source is None else asked.source.known_dtype
        if "cuda" not in keyed_backends(op, known):
            raise InvalidInput(refused_by_key(op, known), "backend")
