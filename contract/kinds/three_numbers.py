"""Three numbers: to be added in every order, and what each order gave."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from warpfold.contract.fields import BackendName, FloatName, Number
from warpfold.contract.frozen import Frozen
from warpfold.contract.json_value import JsonValue
from warpfold.contract.kinds.spec import Task
from warpfold.contract.needs import ANY
from warpfold.contract.provenance import DeviceView, Provenance
from warpfold.contract.summaries import short
from warpfold.contract.timings import StudyTimings
from warpfold.kernels.dtypes import dtype_named
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.sources.values import array_of


class ThreeNumbersSpec(Task):
    """Add three numbers in all twelve ways: in six orders, with brackets around the first two or the last two."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"kind": "three_numbers"}]})

    kind: Literal["three_numbers"]
    a: Number = Field(
        1e8, description="The first number: a number, or a string such as a hex float. It is rounded once to `dtype`."
    )
    b: Number = Field(1.0, description="The second number, written like `a`.")
    c: Number = Field(-1e8, description="The third number, written like `a`.")
    dtype: FloatName = Field("float32", description="Element type in which the numbers are added.")
    backend: Literal["auto", "cpu"] = "auto"

    @model_validator(mode="after")
    def _representable(self) -> Self:
        self.numbers()
        return self

    def numbers(self) -> tuple[Any, Any, Any]:
        """a, b and c as NumPy scalars of the dtype."""
        a, b, c = (self._rounded(name) for name in "abc")
        return a, b, c

    def _rounded(self, name: str) -> Any:
        try:
            (number,) = array_of((getattr(self, name),), dtype_named(self.dtype))
        except InvalidInput as error:
            raise InvalidInput(str(error), name) from None
        if not math.isfinite(number):
            raise InvalidInput("the three numbers must be finite", name)
        return number

    def needs(self) -> str:
        return ANY if self.backend == "auto" else self.backend  # a CPU adds three numbers as a GPU does

    def moved(self, backend: BackendName) -> Mapping[str, Any]:
        return {}

    @staticmethod
    def summary(stored: Mapping[str, Any]) -> Sequence[str]:
        return " + ".join(short(stored.get(name)) for name in "abc") + " in every order", str(stored.get("dtype"))


class OrderView(Frozen):
    """One way to add three numbers. It says which two numbers are added first."""

    expression: str = Field(description='The order of the additions, such as "(a + b) + c".')
    inner: JsonValue = Field(description="The value of the sum in brackets.")
    inner_hex: str
    value: JsonValue
    hex: str
    absolute_error: JsonValue
    relative_error: JsonValue = Field(description="The relative error of the sum; inf for a true value of 0.")


class ThreeNumbersResult(Frozen):
    """Three numbers, added in every order and with brackets around the first two or the last two."""

    study: Literal["three_numbers"] = "three_numbers"
    dtype: str
    a: JsonValue = Field(description="The first number, rounded to the dtype as b and c are.")
    b: JsonValue
    c: JsonValue
    exact: JsonValue = Field(description="The true sum of the three numbers, rounded once to the dtype.")
    exact_hex: str
    orders: tuple[OrderView, ...]
    distinct_values: int = Field(
        description="How many different sums there are; there would be 1 if addition were associative here."
    )
    backend: Literal["cpu", "cuda"]
    device: DeviceView
    timings: StudyTimings
    provenance: Provenance
