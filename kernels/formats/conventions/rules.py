"""Attributes by which an array says what its elements mean (CF conventions, sections 2.5.1 and 8.1): some elements
stand for missing values, and others are packed. NetCDF-4 files have such attributes, and xarray writes them into
Zarr."""

import base64
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.complexes import part_dtype
from warpfold.kernels.dtypes import DTYPES, DType, dtype_of
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import NullPolicy
from warpfold.kernels.sections import NullRefused
from warpfold.kernels.sequential import SequentialSource, Tally

_FILLS = ("_FillValue", "missing_value")
_PACKED = {"scale_factor": 1, "add_offset": 0}


@dataclass(frozen=True, slots=True)
class Missing:
    """The values that stand for a missing element. The object is false where NaN is the only such value, because a
    reduction has a policy of its own for NaN. With `truths`, pieces are read as truth values, which say whether each
    element is a null."""

    values: tuple[Any, ...]
    path: str
    policy: NullPolicy
    truths: bool = False

    def __bool__(self) -> bool:
        return bool(self.values)

    @property
    def leaves_out(self) -> bool:
        """Whether elements may be left out, so that only reading tells how many elements enter."""
        return bool(self.values) and self.policy is NullPolicy.OMIT

    def taken(self, piece: NDArray[Any], start: int, tally: Tally) -> NDArray[Any]:
        """The elements of a piece that are values; or, where nulls keep their places, all elements with zeros for the
        nulls. The piece begins at the index `start`, and `tally` counts the nulls. Raises NullRefused where a null is
        refused."""
        if not self.values:
            return piece
        nulls = np.isin(piece, np.array(self.values, piece.dtype))
        if self.truths:
            return nulls
        count = int(np.count_nonzero(nulls))
        if count and self.policy is NullPolicy.RAISE:
            raise NullRefused(self.path, start + int(np.argmax(nulls)))
        tally.add(nulls=count)
        if not count:
            return piece
        return piece[~nulls] if self.policy is NullPolicy.OMIT else np.where(nulls, piece.dtype.type(0), piece)

    def with_nulls(self, opened: "Callable[[Missing], SequentialSource]") -> Callable[[], SequentialSource] | None:
        """The source of truth values that say whether each element is a null, which `opened` opens; None where nulls
        are not kept."""
        kept = bool(self.values) and self.policy is NullPolicy.PROPAGATE and not self.truths
        return partial(opened, replace(self, truths=True)) if kept else None

    def dtype(self, stored: "np.dtype[Any]") -> DType:
        """The dtype of the elements that `taken` returns for elements of this stored dtype. Raises InvalidInput."""
        return DTYPES["bool"] if self.truths else dtype_of(stored)


@dataclass(frozen=True, slots=True)
class Conventions:
    """How a request treats the attributes: `stored` ignores them, and `nulls` is the policy for missing values."""

    stored: bool = False
    nulls: NullPolicy = NullPolicy.OMIT

    def missing(self, path: str, attributes: Mapping[str, Any], dtype: "np.dtype[Any]") -> Missing:
        """The values that stand for a missing element in the array at `path`. Raises InvalidInput naming "stored" where
        elements are packed: their values are scaled numbers, rounded to a float format that the file does not name."""
        if self.stored:
            return Missing((), path, self.nulls)
        for name, neutral in _PACKED.items():
            if name in attributes and np.any(np.asarray(attributes[name]) != neutral):
                raise InvalidInput(
                    f"holds {path!r} packed, with {name} {np.asarray(attributes[name]).ravel()[0]}: its elements are "
                    "not its values; set stored to reduce the elements as they are stored",
                    "stored",
                )
        fills: list[Any] = []
        if part_dtype(dtype) is not None:
            _check_complex(path, attributes)
            return Missing((), path, self.nulls)
        for name in _FILLS:
            if name in attributes:
                fills.extend(_numbers(name, attributes[name], dtype))
        return Missing(tuple(fills), path, self.nulls)


def _check_complex(path: str, attributes: Mapping[str, Any]) -> None:
    """Raise InvalidInput naming "stored" where complex numbers may be missing. NaN is a value, and not a missing
    number."""
    for name in _FILLS:
        try:
            nan = bool(np.isnan(np.asarray(attributes.get(name, np.nan)).astype(np.complex128)).all())
        except (TypeError, ValueError):  # a word or a record
            nan = False
        if not nan:
            raise InvalidInput(
                f"holds {path!r} with the attribute {name}, and missing complex numbers are not recognised so "
                "far; set stored to reduce the elements as they are stored",
                "stored",
            )


def _numbers(name: str, written: Any, dtype: "np.dtype[Any]") -> list[Any]:
    """The values of an attribute that an element can equal. xarray writes a float into Zarr version 3 as the base64
    of its bytes, and NaN may be written as a word. Raises InvalidInput where they are no numbers."""
    native = dtype.newbyteorder("=")
    values = np.asarray(written).ravel()
    if values.dtype.kind in "USO":
        try:
            values = np.array([_number(str(word), native) for word in values], native)
        except ValueError:
            raise InvalidInput(
                f"has {name} {str(written)[:80]!r}, which is no number; set stored to reduce the elements as they are "
                "stored",
                "stored",
            ) from None
    if values.dtype.kind not in "biuf":
        return []
    with np.errstate(all="ignore"):
        cast = values.astype(native)
    return [number for number, value in zip(cast, values, strict=True) if number == value]


def _number(word: str, dtype: "np.dtype[Any]") -> Any:
    try:
        packed = base64.b64decode(word, validate=True)
    except ValueError:
        packed = b""
    if len(packed) == 8 and dtype.kind == "f":
        return struct.unpack("<d", packed)[0]
    return float(word) if dtype.kind == "f" else int(word)
