"""The head of a .npy file (NEP 1), which describes the elements behind it. Nothing is ever unpickled or evaluated.

NumPy reads a head as a Python literal, of any length and however deep it nests. Here strangers send the heads, so a
small grammar reads them: three names, the word of a dtype, a truth value and a tuple of lengths, all bounded.
"""

import io
import mmap
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from warpfold.kernels.dtypes import COMPLEX, DTYPES, dtype_of, part_dtype
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.npy_head import broken, head_text, parsed
from warpfold.kernels.lowering.float8 import FLOAT8, NAMELESS, bytes_of
from warpfold.kernels.lowering.times import integers_of, times_of_dtype
from warpfold.kernels.source import ArraySource, FileBytes

_MOST_DTYPE = 64


@dataclass(frozen=True, slots=True)
class Head:
    """Shape, layout and dtype of an array of numbers, and where its data begins. The dtype has the file's byte
    order."""

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: "np.dtype[Any]"
    offset: int

    @property
    def data_bytes(self) -> int:
        """How much data the head promises."""
        return prod(self.shape) * self.dtype.itemsize


def open_array(file: BinaryIO, head: Head, selected: tuple[slice, ...] = ()) -> ArraySource:
    """The elements behind the `head` of an open .npy file, which must hold all that its head promises; with `selected`
    those of a part of the array.

    They are mapped into memory, and can be read piece by piece too. `file` may be closed afterwards.
    """
    if head.data_bytes == 0:
        return ArraySource(np.empty(head.shape, head.dtype)[selected])
    order: Literal["F", "C"] = "F" if head.fortran_order else "C"
    # As `numpy.memmap` does, which looks for the file's path first. Threads wait for the map.
    begin = head.offset - head.offset % mmap.ALLOCATIONGRANULARITY
    behind = head.offset - begin
    mapped = mmap.mmap(file.fileno(), behind + head.data_bytes, access=mmap.ACCESS_READ, offset=begin)
    whole: NDArray[Any] = np.ndarray(head.shape, head.dtype, mapped, behind, order=order)
    array = whole[selected]
    ahead = array.ctypes.data - whole.ctypes.data if array.size else 0
    return ArraySource(array, FileBytes(file.fileno(), head.offset + ahead))


def read_head(file: BinaryIO, *, wider: bool = False) -> Head:
    """The head at the start of `file`, which is left behind it. At most MOST_HEAD_BYTES and 12 bytes are read. With
    `wider` it may be that of an array of complex numbers or of NumPy's times, too.

    Raises InvalidInput for what is not an array of numbers that can be reduced; its message continues a sentence that
    begins with the file's name.
    """
    shape, fortran_order, dtype = _understood(head_text(file), wider=wider)
    return Head(shape, fortran_order, dtype, file.tell())


@lru_cache(maxsize=16)
def _understood(text: str, *, wider: bool) -> "tuple[tuple[int, ...], bool, np.dtype[Any]]":
    """Shape, order and dtype. The many files of one array have few different heads."""
    descr, fortran_order, shape = parsed(text)
    dtype = _dtype(descr)
    _check(shape, dtype, wider=wider)
    return shape, fortran_order, dtype


def _dtype(descr: str) -> "np.dtype[Any]":
    if len(descr) > _MOST_DTYPE:
        raise broken(f"its dtype has a name of {len(descr)} characters")
    try:
        return FLOAT8["e5m2"] if descr.lstrip("<>|=") == "f1" else np.dtype(descr)
    except Exception:  # NumPy may raise anything for a hostile name
        raise broken(f"{descr!r} names no dtype") from None


def _check(shape: tuple[int, ...], dtype: "np.dtype[Any]", *, wider: bool) -> None:
    if dtype.hasobject:
        raise InvalidInput("holds pickled Python objects, which are never loaded")
    if dtype.names is not None:
        raise InvalidInput(f"holds records with the fields {', '.join(dtype.names)}, not numbers")
    if dtype.subdtype is not None:
        raise InvalidInput("holds an array in every element, not a number")
    registered = dtype.isbuiltin == 2  # such as bfloat16 where it kept its name
    if dtype.kind == "V" and not registered and not (wider and dtype == NAMELESS):
        raise InvalidInput(
            f"holds {dtype.itemsize} raw bytes an element: its dtype was lost, as NumPy does with bfloat16"
        )
    known = times_of_dtype(dtype)
    stored = part_dtype(dtype) or bytes_of(dtype)
    named = stored and str(dtype.newbyteorder("=")) if known is None else known.name
    if named and not wider:
        raise InvalidInput(f"holds {named}, which a source of type array or dataset reduces, of no .npz archive")
    try:
        dtype_of(stored or integers_of(dtype))
    except InvalidInput as error:
        raise InvalidInput(f"holds elements that cannot be reduced: {error}") from None
    if not shape:
        raise InvalidInput("holds a single value (0 dimensions), not an array")
    try:
        np.broadcast_to(np.zeros((), dtype), shape)  # takes no memory, and knows what NumPy can map
    except (ValueError, TypeError):
        raise InvalidInput(f"has the impossible shape {str(shape)[:100]}") from None


def stored_name(dtype: "np.dtype[Any]") -> str:
    """The name of the dtype of an array in a .npy file: ours, or NumPy's for times, complex numbers and floats of
    8 bits. Raises InvalidInput."""
    if times_of_dtype(dtype) is None and part_dtype(dtype) is None and bytes_of(dtype) is None:
        return dtype_of(dtype).name
    return str(dtype.newbyteorder("="))


def is_stored_name(name: str) -> bool:
    """Whether `stored_name` gives this name."""
    bytewise = map(str, (*FLOAT8.values(), NAMELESS))
    return name in (*DTYPES, *COMPLEX, *bytewise) or name.startswith(("datetime64[", "timedelta64["))


def head_of(dtype: "np.dtype[Any]", count: int, shape: tuple[int, ...] | None = None) -> bytes:
    """The head of an array of `count` elements in little-endian order, of one dimension or in C order of `shape`, as
    NumPy writes it; of bfloat16, whose name NumPy does not write, with the name."""
    native = dtype.newbyteorder("<")
    descr = native.str if native.kind != "V" else dtype_of(dtype).name
    buffer = io.BytesIO()
    npy.write_array_header_1_0(buffer, {"descr": descr, "fortran_order": False, "shape": shape or (count,)})
    return buffer.getvalue()
