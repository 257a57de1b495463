"""Elements in the request itself."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializeAsAny,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic.config import JsonDict

from warpfold.contract.fields import DTypeName, Listed, Number
from warpfold.contract.folders import Folders
from warpfold.contract.groupings import ShapeField, check_shape, shape_in_words
from warpfold.contract.placement import Lies
from warpfold.contract.sources.source import SourceSpec
from warpfold.contract.wording import number_of
from warpfold.kernels.dtypes import DTYPES, DType, dtype_named
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.places.place import NOWHERE, Places
from warpfold.kernels.source import ArraySource
from warpfold.kernels.sources.values import array_of, dtype_for

MOST_SHOWN = 16
"""More elements than these are shown in brief."""

AS_STORED: Mapping[str, object] = MappingProxyType({})
"""The context of a validation of a stored spec: its values were checked one by one when the spec was accepted."""


def _unless_stored(values: Any, check: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    return tuple(values) if info.context is AS_STORED and type(values) is list else check(values)


def _without_default(schema: JsonDict) -> None:
    """The empty default means that no dtype was given; it is no dtype that anybody could write."""
    properties = schema["properties"]
    assert isinstance(properties, dict)
    dtype = properties["dtype"]
    assert isinstance(dtype, dict)
    del dtype["default"]


class BriefValues(BaseModel):
    """A `values` source with many elements, in brief."""

    type: Literal["values"]
    dtype: DTypeName
    count: int
    first: tuple[Number, ...] = Field(description=f"The first {MOST_SHOWN} elements.")


class ValuesSource(SourceSpec):
    """Elements in the request itself: numbers, or strings for numbers that JSON cannot express ("0x1.8p+1", "nan",
    "inf").

    An integer is a number without a point and without an exponent. The service never rounds an integer: an integer that
    `dtype` does not hold is an error. A float is read as a float64 and rounded once to `dtype`. For an integer dtype a
    float must be a whole number as it is written: 1e-400 is an error, although float64 makes 0 of it.
    """

    model_config = ConfigDict(json_schema_extra=_without_default)

    type: Literal["values"]
    # Each is written as the plain number or text that it is: to find out which of the union's types it has would take
    # five times as long.
    values: Annotated[Listed[Number], WrapValidator(_unless_stored), SerializeAsAny()] = Field(
        description="The elements. Floats are rounded once to `dtype`, and an integer that `dtype` does not hold "
        "is an error."
    )
    dtype: DTypeName = Field(
        "",
        description="The dtype of the elements. If it is left out, it is int64 for integers alone, or uint64 where "
        "int64 does not hold them; bool for true and false alone; float64 where an element is written as a float "
        "(1.0, 1e3), and, in `dot`, beside an array of floats.",
    )
    shape: ShapeField = None

    @model_validator(mode="after")
    def _representable(self, info: ValidationInfo) -> Self:
        if not self.dtype:
            inferred = dtype_for(self.values, "source.values")
            object.__setattr__(self, "dtype", inferred.name)  # frozen for everybody else
        if info.context is not AS_STORED:  # a stored array is made once, when it is opened
            array_of(self.values, dtype_named(self.dtype), "source.values")
        check_shape(self.shape, len(self.values))
        return self

    @property
    def known_dtype(self) -> DType:
        return dtype_named(self.dtype)

    @property
    def lies(self) -> Lies:
        return "request"

    @property
    def known_count(self) -> int:
        return len(self.values)

    @property
    def known_shape(self) -> tuple[int, ...]:
        return self.shape or (len(self.values),)

    def identity(self) -> str:
        return f"{len(self.values):,} given values as {self.dtype}{shape_in_words(self.shape)}"

    @staticmethod
    def summary(stored: Mapping[str, Any]) -> str | None:
        match stored:
            case {"dtype": dtype, "count": int(count)}:
                return f"{number_of('value', count)} as {dtype}"
            case {"dtype": dtype, "values": [*values]}:
                return f"{number_of('value', len(values))} as {dtype}"
        return None

    def open(self, folders: Folders) -> ArraySource:
        return ArraySource(array_of(self.values, self.known_dtype, "source.values"))

    def check(self, field: str, roots: tuple[Path, ...], most_values: int, places: Places = NOWHERE) -> None:
        if len(self.values) > most_values:
            raise InvalidInput(
                f"{len(self.values)} values are more than the {most_values} that a request may carry; "
                "put them into a file, or generate them",
                f"{field}.values",
            )

    def brief(self) -> BaseModel:
        if len(self.values) <= MOST_SHOWN:
            return self
        return BriefValues(type=self.type, dtype=self.dtype, count=len(self.values), first=self.values[:MOST_SHOWN])

    def beside_floats(self) -> Self:
        """The same elements as float64 if no dtype was given. Raises InvalidInput where float64 does not hold them."""
        if "dtype" in self.model_fields_set:
            return self
        array_of(self.values, DTYPES["float64"], "source.values")
        return self.model_copy(update={"dtype": "float64"})
