"""The rules by which attributes say which elements are missing, which are unsigned, and how they are packed.

Attributes of another dtype than the elements are cast to it, as netCDF's writers do; one that no element can equal
matches none. Where readers differ about what an attribute says, the array is refused.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np

from warpfold.kernels.dtypes import dtype_of, part_dtype
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.conventions.attributes import NAT, Attributes, Number
from warpfold.kernels.formats.conventions.lowering import Lowering
from warpfold.kernels.lowering.meaning import Meaning
from warpfold.kernels.lowering.packed import Packed
from warpfold.kernels.lowering.times import integers_of, times_of_dtype
from warpfold.kernels.ops import NullPolicy
from warpfold.kernels.sources.absent_chunks import WhereAbsent

_FILL = "_FillValue"
_FILLS = (_FILL, "missing_value")
_BOUNDS = ("valid_range", "valid_min", "valid_max")
_PACKING = ("scale_factor", "add_offset")
_UNSIGNED = "_Unsigned"

NAMES = (*_FILLS, *_BOUNDS, *_PACKING, _UNSIGNED)
"""The attributes that say what elements mean."""

DEFAULT_FILLS: Mapping[str, Number] = MappingProxyType(
    {
        "i2": -(1 << 15) + 1,
        "u2": (1 << 16) - 1,
        "i4": -(1 << 31) + 1,
        "u4": (1 << 32) - 1,
        "i8": -(1 << 63) + 2,
        "u8": (1 << 64) - 2,
        "f4": 15 * 2.0**119,
        "f8": 15 * 2.0**119,
    }
)
"""The fill values of netCDF for elements that were never written. Bytes have none when they are read, because any byte
may be a value (NetCDF User Guide)."""

_EXACT = 1 << 53
"""Integers up to it are floats of 64 bits."""


@dataclass(frozen=True, slots=True)
class Conventions:
    """How a request treats the attributes: `stored` ignores them, `nulls` is the policy for missing values, and
    `absent` that for chunks that are not there."""

    stored: bool = False
    nulls: NullPolicy = NullPolicy.OMIT
    absent: WhereAbsent = WhereAbsent.FILL

    def lowering(
        self, path: str, written: Mapping[str, Any], dtype: "np.dtype[Any]", *, netcdf: bool = False, fill: Any = None
    ) -> Lowering:
        """What the elements of the array at `path` stand for, whose attributes are `written`; with `netcdf` a netCDF
        library has made it. A `fill` is what a Zarr array has for xarray's `_FillValue`. Raises InvalidInput naming
        "stored" where that is not certain."""
        both = fill is not None and _FILL in written
        if fill is not None and not both:
            written = {**written, _FILL: fill}
        attributes = Attributes(path, written)
        native = integers_of(dtype).newbyteorder("=")
        if (times := times_of_dtype(dtype)) is not None:
            return Lowering(path, self.nulls, self._nulls_of_times(attributes, native), read_as=native, meaning=times)
        if self.stored:
            return Lowering(path, self.nulls)
        if part_dtype(dtype) is not None:
            _check_complex(attributes)
            return Lowering(path, self.nulls)
        read_as = _signedness(attributes, native)
        elements = _Elements(attributes, native, read_as)
        own, others = (elements.equal_to(name) for name in _FILLS)
        if both and own != _Elements(Attributes(path, {_FILL: fill}), native, read_as).equal_to(_FILL):
            raise attributes.refused(_FILL, f"and its fill value is {fill}, and readers take either for missing")
        defaults: list[Any] = []
        if netcdf and not elements.named(_FILL) and native.str[1:] in DEFAULT_FILLS:
            defaults.append(elements.of(_FILL, DEFAULT_FILLS[native.str[1:]]))
        if native == np.int64 and _counts_time(attributes):
            defaults.append(native.type(NAT))
        meaning = _packing(attributes)
        if meaning is not None:
            elements.check_bounds_of_packed()
        least, most = elements.bounds()
        wanted = None if read_as == native else read_as
        return Lowering(path, self.nulls, (*own, *others, *defaults), least, most, wanted, meaning)

    def _nulls_of_times(self, attributes: Attributes, native: "np.dtype[Any]") -> tuple[Any, ...]:
        nat = native.type(NAT)
        if self.stored:
            return (nat,)
        for name in (*_BOUNDS, *_PACKING):
            if name in attributes:
                raise attributes.refused(name, "and its elements are times")
        elements = _Elements(attributes, native, native)
        return (nat, *(each for name in _FILLS for each in elements.equal_to(name) if each != nat))


@dataclass(frozen=True, slots=True)
class _Elements:
    """Numbers of attributes as elements: of the dtype `native` as they are stored, and `read_as` where they are read as
    unsigned or signed ones."""

    attributes: Attributes
    native: "np.dtype[Any]"
    read_as: "np.dtype[Any]"

    def equal_to(self, name: str) -> list[Any]:
        """The elements that equal a number of an attribute. Raises InvalidInput naming "stored"."""
        made = (self.of(name, number) for number in self.attributes.numbers(name))
        return [element for element in made if element is not None]

    def named(self, name: str) -> bool:
        """Whether an attribute names an element: NaN is one of floats."""
        nan = self.native.kind == "f" and any(map(math.isnan, self.attributes.numbers(name)))
        return nan or bool(self.equal_to(name))

    def of(self, name: str, number: Number) -> Any:
        """The element that a number of an attribute is; None of NaN, and where no element is that number."""
        if math.isnan(number):
            return None
        if self.native.kind == "f":
            element = _as_float(number, self.native)
            return None if math.isinf(element) and not math.isinf(number) else element
        whole = self._whole(name, number)
        least, most = dtype_of(self.read_as).bounds
        return self.read_as.type(whole) if whole is not None and least <= whole <= most else None

    def bounds(self) -> tuple[Any, Any]:
        """The least and the most element of the valid range, None where every element lies on that side of it. Raises
        InvalidInput naming "stored"."""
        pair = self.attributes.numbers("valid_range")
        if len(pair) not in (0, 2):
            raise self.attributes.refused("valid_range", "which is not two numbers")
        ends: list[Any] = []
        for side, name in enumerate(("valid_min", "valid_max")):
            end, of_range = self.attributes.number(name), pair[side] if pair else None
            if end is not None and of_range is not None and end != of_range:
                raise self.attributes.refused(name, "and its valid_range says otherwise")
            stated = of_range if end is None else end
            ends.append(None if stated is None else self._bound("valid_range" if end is None else name, stated, side))
        least, most = ends
        if least is not None and most is not None and least > most:
            names = [name for name in _BOUNDS if name in self.attributes]
            raise self.attributes.refused(names[0], "by which no element is valid")
        return least, most

    def check_bounds_of_packed(self) -> None:
        """Raise InvalidInput where the bounds of packed elements are not of their dtype: the NetCDF User Guide takes
        them for bounds of the unpacked values then, and other readers do not."""
        for name in _BOUNDS:
            if name not in self.attributes:
                continue
            if self.native.kind == "f":
                alike = self.attributes.dtype(name).newbyteorder("=") == self.native
            else:
                alike = all(isinstance(number, int) for number in self.attributes.numbers(name))
            if not alike:
                raise self.attributes.refused(name, "and it does not say whether that bounds packed or unpacked values")

    def _bound(self, name: str, number: Number, side: int) -> Any:
        """A bound as an element: of side 0 the least one that is valid, of side 1 the most."""
        if math.isnan(number):
            return None
        if self.native.kind == "f":
            element = _as_float(number, self.native)
            beyond = math.copysign(1, number) if math.isinf(element) else 0
        else:
            whole = self._whole(name, number) if math.isfinite(number) else number
            if whole is None:
                raise self.attributes.refused(name, "which is no integer, and its elements are")
            least, most = dtype_of(self.read_as).bounds
            beyond = (whole > most) - (whole < least)
            element = None if beyond else self.read_as.type(whole)
        if not beyond:
            return element
        if (beyond > 0) == (side == 0):
            raise self.attributes.refused(name, "by which no element is valid")
        return None

    def _whole(self, name: str, number: Number) -> int | None:
        """The integer that a number of an attribute is, of the bits of which an unsigned element may be read; None of
        a fraction. Raises InvalidInput where a float may stand for one of several integers."""
        if isinstance(number, float):
            if not number.is_integer():
                return None
            if self.native.itemsize > 4 and abs(number) >= _EXACT:
                raise self.attributes.refused(name, "a float that may stand for one of several integers")
        whole = int(number)
        if self.read_as == self.native:
            return whole
        stored, turn = dtype_of(self.native).bounds, 1 << 8 * self.native.itemsize
        if not stored[0] <= whole <= stored[1]:
            return whole
        return whole % turn if self.read_as.kind == "u" else (whole + turn // 2) % turn - turn // 2


def _as_float(number: Number, dtype: "np.dtype[Any]") -> Any:
    try:
        wide = np.float64(number)
    except OverflowError:  # of an integer
        wide = np.float64(math.copysign(math.inf, number))
    with np.errstate(over="ignore"):
        return wide.astype(dtype)


def _signedness(attributes: Attributes, native: "np.dtype[Any]") -> "np.dtype[Any]":
    """The dtype as which integers are read: `_Unsigned` says it. Floats have no other."""
    if _UNSIGNED not in attributes or native.kind not in "iu":
        return native
    match attributes.text(_UNSIGNED).lower():
        case "true":
            return np.dtype(f"u{native.itemsize}")
        case "false":
            return np.dtype(f"i{native.itemsize}")
    raise attributes.refused(_UNSIGNED, "which is neither true nor false")


def _packing(attributes: Attributes) -> Meaning | None:
    """How elements are packed; None where they are not. Raises InvalidInput naming "stored"."""
    scale, offset = (attributes.number(name) for name in _PACKING)
    for name, number in zip(_PACKING, (scale, offset), strict=True):
        if number is not None and not math.isfinite(number):
            raise attributes.refused(name, "which is not finite")
    if scale == 0:
        raise attributes.refused(_PACKING[0], "by which all elements are one value")
    made = Packed.of(Fraction(1 if scale is None else scale), Fraction(offset or 0))
    return None if made.is_identity else made


def _counts_time(attributes: Attributes) -> bool:
    """Whether integers count time, as xarray writes it: its NaT is that of NumPy."""
    return " since " in attributes.text("units") or attributes.text("dtype").startswith(("timedelta64", "datetime64"))


def _check_complex(attributes: Attributes) -> None:
    """Raise InvalidInput naming "stored" where complex numbers may be missing or packed. NaN is a value, and not a
    missing number."""
    for name in NAMES:
        if name not in attributes or name == _UNSIGNED:
            continue
        written = np.asarray(attributes.written[name])
        if name in _PACKING:
            harmless = bool(np.all(written == (name == "scale_factor")))
        elif written.dtype.kind == "c":
            harmless = bool(np.isnan(written).all())
        else:
            harmless = name in _FILLS and all(map(math.isnan, attributes.numbers(name)))
        if not harmless:
            what = "packed" if name in _PACKING else "missing"
            raise InvalidInput(
                f"holds {attributes.path!r} with the attribute {name}, and {what} complex numbers are not recognised "
                "so far; set stored to reduce the elements as they are stored",
                "stored",
            )
