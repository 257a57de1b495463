"""Keys in the request itself: integers, truth values or strings, with nulls among them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import BaseModel, Field, StrictBool, StrictInt, StringConstraints, model_validator

from warpfold.contract.fields import Listed
from warpfold.contract.folders import Folders
from warpfold.contract.sources.source import SourceSpec
from warpfold.contract.sources.values import MOST_SHOWN
from warpfold.contract.unions import said_as
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.machine.extras import required
from warpfold.kernels.places.place import NOWHERE, Places
from warpfold.kernels.source import ArraySource

Key = Annotated[
    StrictBool | StrictInt | Annotated[str, StringConstraints(max_length=4096)] | None,
    said_as("Should be an integer, a truth value, a string or null; floats are no keys"),
]


class GivenKeys(SourceSpec):
    """Keys in the request itself. All are integers, all are truth values, or all are strings; a null is no key."""

    type: Literal["values"]
    values: Listed[Key] = Field(description="The key of each row.")

    @model_validator(mode="after")
    def _of_one_kind(self) -> Self:
        kinds = {type(value).__name__ for value in self.values if value is not None}
        if len(kinds) > 1:
            raise InvalidInput(f"mixes {' and '.join(sorted(kinds))}: the keys of a column are of one kind", "values")
        if not all(-(1 << 63) <= value < 1 << 64 for value in self.values if isinstance(value, int)):
            raise InvalidInput("holds an integer that 64 bits do not hold", "values")
        return self

    @property
    def known_dtype(self) -> DType | None:
        """The dtype of the keys; None of strings."""
        kinds = {type(value) for value in self.values if value is not None}
        if kinds == {bool}:
            return DTYPES["bool"]
        if kinds <= {int}:
            unsigned = any(isinstance(value, int) and value >= 1 << 63 for value in self.values)
            return DTYPES["uint64" if unsigned else "int64"]
        return None

    @property
    def known_count(self) -> int:
        return len(self.values)

    def identity(self) -> str:
        return f"{len(self.values):,} given keys"

    @staticmethod
    def summary(stored: Mapping[str, Any]) -> str | None:
        return f"{len(stored['values']):,} keys" if "values" in stored else None

    def open(self, folders: Folders) -> ArraySource:
        dtype = self.known_dtype
        if dtype is None or None in self.values:
            raise InvalidInput("strings and nulls are keys alone, and are not reduced", "source.values")
        return ArraySource(np.array(self.values, dtype.numpy))

    def array(self) -> Any:
        """The keys as an array of pyarrow. Raises InvalidInput where no type holds all integers."""
        pyarrow = required("pyarrow", "tables")
        dtype = self.known_dtype
        try:
            return pyarrow.array(
                self.values, pyarrow.string() if dtype is None else pyarrow.from_numpy_dtype(dtype.numpy)
            )
        except (OverflowError, pyarrow.ArrowInvalid):
            raise InvalidInput("holds integers that neither int64 nor uint64 holds together", "values") from None

    def check(self, field: str, roots: tuple[Path, ...], most_values: int, places: Places = NOWHERE) -> None:
        if len(self.values) > most_values:
            raise InvalidInput(
                f"{len(self.values)} keys are more than the {most_values} values that a request may carry; put them "
                "into a table",
                f"{field}.values",
            )

    def brief(self) -> BaseModel:
        return self if len(self.values) <= MOST_SHOWN else self.model_copy(update={"values": self.values[:MOST_SHOWN]})
