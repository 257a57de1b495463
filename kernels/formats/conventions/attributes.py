"""Numbers in attributes, in every form that writers give them: arrays of any dtype, numbers of JSON, words, and base64.

A number comes out exactly, as an integer or a float of Python; the `Attributes` of an array name it in errors.
"""

import base64
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.lowering.iso8601 import UNITS

Number = int | float

NAT = -(1 << 63)
"""The integer that NumPy stores for NaT, which is a null."""


@dataclass(frozen=True, slots=True)
class Attributes:
    """The attributes of the array at `path`. `written` may read each one only when it is asked for."""

    path: str
    written: Mapping[str, Any]

    def __contains__(self, name: str) -> bool:
        return name in self.written

    def numbers(self, name: str) -> tuple[Number, ...]:
        """The numbers of an attribute; none where it is absent, or null in JSON. Raises InvalidInput naming "stored"
        where it is no number."""
        if name not in self.written:
            return ()
        return tuple(self._number(name, each) for each in _listed(self.written[name]) if each is not None)

    def number(self, name: str) -> Number | None:
        """The number of an attribute, None where it is absent. Raises InvalidInput naming "stored" where it has more
        than one."""
        numbers = self.numbers(name)
        if len(numbers) > 1:
            raise self.refused(name, "which is not one number")
        return numbers[0] if numbers else None

    def text(self, name: str) -> str:
        """An attribute of one word; empty where it is absent or has several."""
        listed = _listed(self.written[name]) if name in self.written else []
        word = listed[0] if len(listed) == 1 else ""
        return (word.decode("utf-8", "replace") if isinstance(word, bytes) else str(word)).strip("\0 ")

    def dtype(self, name: str) -> "np.dtype[Any]":
        """The dtype in which an attribute is written; that of words and of mixed numbers is object."""
        written = self.written[name]
        return np.asarray(written).dtype if np.asarray(written).dtype.kind in "biuf" else np.dtype(object)

    def refused(self, name: str, why: str) -> InvalidInput:
        """The error about an attribute, which says how to go on."""
        shown = ", ".join(str(each) for each in _listed(self.written[name])[:3])[:80]
        return InvalidInput(
            f"holds {self.path!r} with {name} {shown!r}, {why}; set stored to reduce the elements as they are stored",
            "stored",
        )

    def _number(self, name: str, each: Any) -> Number:
        word = each.decode("utf-8", "replace") if isinstance(each, bytes) else each
        if isinstance(word, str):
            try:
                return _of_word(word.strip("\0 "))
            except ValueError:
                raise self.refused(name, "which is no number") from None
        if isinstance(each, np.datetime64 | np.timedelta64):
            return int(each.astype(np.int64))
        if isinstance(each, np.longdouble) and (np.isnan(each) or np.longdouble(float(each)) == each):
            return float(each)
        if isinstance(each, bool | int | float):
            return int(each) if isinstance(each, int) else each
        raise self.refused(name, "which is no number")


def _listed(written: Any) -> list[Any]:
    """The values of an attribute as Python has them; NumPy's own times and long doubles stay NumPy's."""
    if isinstance(written, list | tuple):  # an array of them all would round integers beside floats
        return [each for item in written for each in _listed(item)]
    array = np.asarray(written)
    if array.dtype.kind in "mM" and np.datetime_data(array.dtype)[0] in UNITS:
        return list(array.ravel())
    return array.astype(object).ravel().tolist() if array.dtype.kind in "biufSUO" else [str(array)]


def _of_word(word: str) -> Number:
    """The number that a word writes, or the bytes of a float in base64, as xarray writes it into Zarr version 3. Raises
    ValueError."""
    if word == "NaT":
        return NAT
    if word.endswith("="):  # no other number does
        return float(struct.unpack("<d", base64.b64decode(word, validate=True))[0]) if len(word) == 12 else int(word)
    if "_" in word:  # Python's own digits may have it
        raise ValueError(word)
    try:
        return int(word)
    except ValueError:
        return float(word)
