"""Arrays of every library as NumPy arrays. They are read through the interfaces by which libraries exchange arrays, so
that no library is imported. Only floats are ever rounded, and only where a dtype is asked for.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from typing import Any, Literal

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from warpfold.client.columns import columns_of, nulls_in, numbers_in, without_nulls
from warpfold.kernels.dtypes import DTYPES, DType, dtype_named, dtype_of
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import round_ratio
from warpfold.kernels.formats.conventions import check_means_itself
from warpfold.kernels.lowering.conversion import common_dtype, converted
from warpfold.kernels.lowering.float8 import FLOAT8
from warpfold.kernels.ops import NullPolicy
from warpfold.kernels.sources.values import array_of, dtype_for

Array = NDArray[Any]

_EXACT = 2.0**53
"""Below this NumPy makes each integer the float64 of the same value."""
_INTEGERS = (bool, int, np.integer, np.bool_)
_FLOATS = (float, np.float16, np.float32, ml_dtypes.bfloat16)
_RATIOS = (Decimal, Fraction)


Nulls = Literal["nan", "omit", "raise"]
"""The treatment of a column's nulls: they become NaN among floats and an error among others, they stay, or they are
an error."""


@dataclass(frozen=True, slots=True)
class Part:
    """All or some of the elements of `data`, as an array that Warpfold reduces. `name` says which elements, if they are
    not all, and `nulls` says how many nulls were left out."""

    array: Array
    name: str = ""
    nulls: int = 0


def as_numpy(data: object, dtype: str | None = None) -> Array:
    """`data` as a NumPy array of a dtype that Warpfold reduces, copied only where it must be.

    Takes NumPy arrays and scalars, numbers and lists of them, columns and frames of pandas, Polars and Arrow, and
    arrays of CuPy, PyTorch, JAX and others on any device (`__array_interface__`, `__dlpack__`). Without `dtype`
    elements keep theirs; columns of several have the one that holds all of their elements, and a list is read as
    `kernels.sources.values.dtype_for` says. With `dtype` a float, Decimal or Fraction is rounded to it once. Raises
    TypeError if `data` is no array of numbers, and if the dtype does not hold an element that is no float.
    """
    return _only(parts_of(data, dtype))


def as_kept(data: object, dtype: str | None = None, null_policy: str | None = None) -> Array:
    """The same for an op to which no position matters: by default without the nulls of columns, `null_policy` "omit";
    with "raise" or "propagate" a null is a TypeError."""
    return _only(parts_of(data, dtype, nulls=policy_of(null_policy)))


def policy_of(null_policy: str | None, *, places: bool = False) -> Nulls:
    """The treatment of nulls: they are left out by default. They are refused where each element is needed in its
    place, and where they would propagate, because an array cannot hold a null. Raises TypeError for an unknown
    policy."""
    if null_policy not in (None, *NullPolicy):
        raise TypeError(f"null_policy is 'omit', 'raise' or 'propagate', and not {null_policy!r}")
    return "raise" if null_policy in (NullPolicy.RAISE, NullPolicy.PROPAGATE) or places else "omit"


def _only(parts: "Sequence[Part]") -> Array:
    if len(parts) > 1:
        names = " and ".join(f"{part.name} of {part.array.dtype}" for part in parts)
        raise TypeError(f"no dtype holds the elements of {names} together; reduce them apart, or convert them first")
    return parts[0].array


def alike(data: object, other: object, dtype: str | None = None) -> tuple[Array, Array]:
    """The two arrays of a dot product, as `as_numpy` has each: integers beside floats as float64. Raises TypeError
    where that does not hold one of them, and where both have labels, which are not the same in the same order."""
    _check_labels(data, other)
    both = as_numpy(data, dtype), as_numpy(other, dtype)
    floats = [dtype_of(array.dtype).is_float for array in both]
    if floats[0] == floats[1]:
        return both
    first, second = (array if real else as_numpy(array, "float64") for array, real in zip(both, floats, strict=True))
    return first, second


def _check_labels(data: object, other: object) -> None:
    """Raise TypeError where the labels of two objects of pandas or xarray differ: their libraries would align them."""
    for labels in ("dims", "index", "columns", "indexes"):
        mine, others = getattr(data, labels, None), getattr(other, labels, None)
        if mine is None or others is None or callable(mine) or callable(others):
            continue
        if labels == "indexes":  # of xarray: one for each dimension that has one
            same = all(mine[name].equals(others[name]) for name in set(mine) & set(others))
        else:
            same = mine == others if labels == "dims" else mine.equals(others)
        if not same:
            raise TypeError(
                f"the {labels} of the two differ, and elements are multiplied by their places: align the labels first, "
                "or pass both as arrays without labels (`.to_numpy()`)"
            )


def parts_of(data: object, dtype: str | None = None, *, nulls: Nulls = "nan") -> list[Part]:
    """`data` as one array, as for `as_numpy`; columns that no dtype holds together as one array for each of their
    dtypes, at least two then. `nulls` says what becomes of the nulls of columns; where some are left out, the elements
    come one column after another."""
    to = None if dtype is None else dtype_named(dtype)
    columns = columns_of(data)
    try:
        if columns is None:
            column, left_out = _present(data, nulls)
            return [Part(_array_of(column, to), nulls=left_out)]
        if not columns:
            raise TypeError(f"this {type(data).__name__} has no columns")
        parts = []
        for name, whole in columns:
            with _in_column(name):
                column, left_out = _present(whole, nulls)
                parts.append(Part(_array_of(column, to), f"column {name!r}", left_out))
        return _in_turn(parts) if any(part.nulls for part in parts) else _together(parts)
    except InvalidInput as error:
        raise TypeError(str(error)) from None


@contextmanager
def _in_column(name: str) -> Iterator[None]:
    """Within the block, errors name the column."""
    try:
        yield
    except (TypeError, InvalidInput) as error:
        raise TypeError(f"column {name!r}: {error}") from None


def _present(column: object, nulls: Nulls) -> tuple[object, int]:
    """The elements of a column, or of data that is no column, and how many nulls are left out. Raises TypeError."""
    if nulls == "nan":
        return column, 0
    kept, count = without_nulls(column)
    if count and nulls == "raise":
        raise nulls_in(getattr(column, "dtype", None) or getattr(column, "type", ""))
    return kept, count


def _in_turn(parts: Sequence[Part]) -> list[Part]:
    """Columns of any lengths one after another, by the same rule: in one array, or in one for each of their dtypes."""
    dtype, nulls = common_dtype([part.array for part in parts]), sum(part.nulls for part in parts)
    if dtype is not None:
        return [Part(np.concatenate([converted(part.array, dtype).reshape(-1) for part in parts]), nulls=nulls)]
    kinds = dict.fromkeys(part.array.dtype for part in parts)
    groups = [[part for part in parts if part.array.dtype == kind] for kind in kinds]
    return [
        Part(
            np.concatenate([part.array.reshape(-1) for part in group]),
            ", ".join(part.name for part in group),
            sum(part.nulls for part in group),
        )
        for group in groups
    ]


def _together(parts: Sequence[Part]) -> list[Part]:
    """Columns of equal lengths beside each other, row after row: in one array where a dtype holds them all, else in one
    for each of their dtypes."""
    if len({part.array.shape for part in parts}) > 1:
        raise TypeError("columns of different shapes do not make one array; reduce each by itself")
    dtype = common_dtype([part.array for part in parts])
    if dtype is not None:
        if len(parts) == 1:
            return [Part(parts[0].array)]
        return [Part(np.stack([converted(part.array, dtype) for part in parts], axis=1))]
    kinds = dict.fromkeys(part.array.dtype for part in parts)
    groups = [[part for part in parts if part.array.dtype == kind] for kind in kinds]
    return [
        Part(np.stack([part.array for part in group], axis=1), ", ".join(part.name for part in group))
        for group in groups
    ]


def _array_of(data: object, to: DType | None) -> Array:
    """One array of `data`, of the dtype `to` if there is one."""
    if isinstance(data, list | tuple):
        return _of_list(data, to)
    if isinstance(data, _INTEGERS + _FLOATS + _RATIOS):
        return _of_list([data], to)
    array = np.asarray(data) if isinstance(data, range) else offered(data)
    if isinstance(data, range) and array.dtype.kind == "f":  # some of its integers are beyond int64
        array = list(data)
    if isinstance(array, list):
        return _of_list(array, to)
    array = unmasked(array)
    if array.dtype.kind == "O":
        made = _of_list(array.reshape(-1).tolist(), to)
        return made.reshape(array.shape) if made.size == array.size else made  # each object may be a list itself
    return _checked(data, array, to)


def unmasked(array: Any) -> Array:
    """A plain array of one dimension or more, since the rows of an `np.matrix` stay matrices. Raises TypeError for a
    masked one, of which NumPy would reduce what the mask hides."""
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError("a masked array is ambiguous: pass its `.compressed()` elements or its `.filled(value)`")
    return np.atleast_1d(np.asarray(array))


def _checked(data: object, array: Array, to: DType | None) -> Array:
    if array.dtype in FLOAT8.values():
        array = array.astype(np.float32)  # float32 holds all values of floats of 8 bits
    try:
        dtype_of(array.dtype)
    except ValueError:
        if array.dtype.kind in "mMc":  # alone it goes up as a file
            raise TypeError(f"{array.dtype} cannot be reduced together with others: reduce it by itself") from None
        fault = f"{type(data).__name__} of {array.dtype} cannot be reduced; known dtypes: {', '.join(DTYPES)}"
        raise TypeError(fault) from None
    return array if to is None else converted(array, to)


def _of_list(data: Sequence[object], to: DType | None) -> Array:
    """The numbers of a list, of nested lists, or of the arrays in a list. NumPy reads the list where it changes no
    value."""
    flat, nested = data, False
    while flat and isinstance(flat[0], list | tuple):
        if not all(isinstance(element, list | tuple) for element in flat):
            raise TypeError("a list of lists and numbers is not an array")
        flat, nested = list(chain.from_iterable(flat)), True  # type: ignore[arg-type]
    kinds = set(map(type, flat))
    whole, real, ratio = (_all_of(kinds, group) for group in (_INTEGERS, _FLOATS, _RATIOS))
    if kinds - whole - real - ratio:
        return _of_arrays(flat, kinds - whole - real - ratio, to)
    shape = _shape(data) if nested else (len(flat),)
    if not ratio and not (whole and real and to is not None):
        array = np.asarray(flat)
        if array.dtype.kind in "iub" or (array.dtype.kind != "O" and (not whole or (real and _kept(array)))):
            return _checked(data, array.reshape(shape), to)
    numbers = [_plain(element) for element in flat]
    if to is None and not ratio:
        return array_of(numbers, dtype_for(numbers)).reshape(shape)
    if to is None:
        raise TypeError("no dtype holds a Decimal or a Fraction; say which dtype to round them to")
    return _mixed(numbers, to).reshape(shape)


def _all_of(kinds: Iterable[type], group: tuple[type, ...]) -> set[type]:
    return {kind for kind in kinds if issubclass(kind, group)}


def _kept(array: Array) -> bool:
    """Whether NumPy rounded none of the integers that it converted to floats, because all of them are small."""
    return array.dtype.kind == "f" and not (np.abs(array[np.isfinite(array)]) >= _EXACT).any()


def _shape(data: Any) -> tuple[int, ...]:
    """The shape of lists of lists. Raises TypeError where their lengths differ."""
    shape = []
    level = [data]
    while level and isinstance(level[0], list | tuple):
        lengths = {len(element) for element in level}
        if len(lengths) > 1:
            raise TypeError("lists of different lengths do not make an array")
        shape.append(lengths.pop())
        level = list(chain.from_iterable(level))
    return tuple(shape)


def _plain(number: Any) -> Any:
    """A number as Python's own."""
    if isinstance(number, np.bool_ | np.integer):
        return number.item()
    return number if isinstance(number, int | Decimal | Fraction) else float(number)


def _mixed(numbers: Sequence[bool | int | float | Decimal | Fraction], to: DType) -> Array:
    """Numbers of several types as `to`. Each is rounded once, and integers are not rounded at all."""
    array = np.empty(len(numbers), to.numpy)
    for kind in (int, float, Decimal, Fraction):
        places = [at for at, element in enumerate(numbers) if isinstance(element, kind)]
        some: list[Any] = [numbers[at] for at in places]
        if kind is int:
            array[places] = array_of(some, to)
        elif kind is float:
            array[places] = converted(np.array(some, np.float64), to)
        else:
            array[places] = [_of_ratio(element, to) for element in some]
    return array


def _of_ratio(number: Decimal | Fraction, to: DType) -> bool | int | float:
    if isinstance(number, Decimal) and not number.is_finite():
        return float(number)
    above, below = number.as_integer_ratio()
    if not to.is_float:
        if below > 1:
            raise InvalidInput(f"{number} is not a whole number, and the dtype is {to.name}")
        return array_of([above], to)[0].item()  # type: ignore[no-any-return]
    rounded = round_ratio(above, below, 0, to)
    if not np.isfinite(rounded):
        raise InvalidInput(f"{number} is beyond the range of {to.name}")
    return rounded


def _of_arrays(items: Sequence[object], kinds: Iterable[type], to: DType | None) -> Array:
    """Arrays in a list, of one shape each, as one array."""
    other = next((kind for kind in kinds if not _offers(kind)), None)
    if other is not None:
        raise TypeError(f"elements of type {other.__name__} cannot be reduced")
    parts = [_array_of(item, to) for item in items]
    if len({part.shape for part in parts}) > 1:
        raise TypeError("arrays of different shapes do not make one array")
    dtype = common_dtype(parts)
    if dtype is None:
        raise TypeError("no dtype holds the arrays of this list together; reduce them apart, or convert them first")
    return np.stack([converted(part, dtype) for part in parts])


def _offers(kind: type) -> bool:
    names = ("to_numpy", "__array_interface__", "__array__", "__dlpack__", "__cuda_array_interface__")
    return any(hasattr(kind, name) for name in names) and not issubclass(kind, np.generic)


def offered(data: Any) -> Any:
    """`data` on the host in a form that NumPy takes: an array, or a list of Python objects. Raises TypeError for what
    is no array."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(data, torch.Tensor):
        return _of_torch(torch, data)
    if hasattr(data, "__cuda_array_interface__"):
        # CuPy and Numba; others move their data by DLPack.
        move = getattr(data, "get", None) or getattr(data, "copy_to_host", None)
        if move is not None:
            return move()
    if hasattr(data, "to_numpy"):
        return numbers_in(data)
    if hasattr(data, "__array_interface__") or hasattr(data, "__array__"):
        array = np.asanyarray(data)  # a masked array stays one
        try:
            check_means_itself(data, array)
        except InvalidInput as error:
            raise TypeError(str(error)) from None
        return array
    if hasattr(data, "__dlpack__"):
        # With `device="cpu"` the producer copies an array of another device to the host.
        return np.from_dlpack(data, device="cpu")
    if isinstance(data, str):
        called = data[:64]
        raise TypeError(
            f"the text {called!r} is not an array: Path({called!r}) names a file of this machine, "
            f'and the source {{"type": "path", "path": {called!r}}} of a spec names one of the server\'s'
        )
    raise TypeError(f"a {type(data).__name__} is not an array: it has none of the array protocols")


def _of_torch(torch: Any, data: Any) -> Array:
    tensor = data.detach().cpu().resolve_conj().resolve_neg().contiguous()
    if tensor.dtype == torch.bfloat16:  # NumPy has no name for it
        bits: Array = tensor.view(torch.int16).numpy()
        return bits.view(ml_dtypes.bfloat16)
    array: Array = tensor.numpy()
    return array


def plain(array: NDArray[Any]) -> list[Any]:
    """The elements in C order as numbers of Python, each exactly."""
    numbers: list[Any] = array.reshape(-1).astype(np.float64 if array.dtype.kind in "fV" else array.dtype).tolist()
    return numbers
