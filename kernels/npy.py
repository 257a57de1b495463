"""The head of a .npy file (NEP 1): what it says of the elements behind it. Nothing is ever unpickled."""

import io
from dataclasses import dataclass
from math import prod
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy

from warpfold.kernels.dtypes import DType, dtype_of
from warpfold.kernels.errors import InvalidInput

_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


@dataclass(frozen=True, slots=True)
class Head:
    """Shape, layout and dtype (its byte order as in the file) of an array of numbers, and where its data begins."""

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: "np.dtype[Any]"
    offset: int

    @property
    def data_bytes(self) -> int:
        """How much data the head promises."""
        return prod(self.shape) * self.dtype.itemsize


def read_head(file: BinaryIO) -> Head:
    """The head at the start of `file`, which is left behind it.

    Raises InvalidInput for what is no array of numbers that can be reduced; its message continues a sentence that
    begins with the file's name.
    """
    try:
        version = npy.read_magic(file)
        reader = _READERS.get(version)
        if reader is None:
            # Version 3.0 exists for structured dtypes with field names beyond Latin-1, and only for them.
            raise ValueError("its version of the format is for records only")
        shape, fortran_order, dtype = reader(file)
    except OSError:
        raise
    except Exception as error:  # whatever a hostile header makes the parser raise
        brief = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise InvalidInput(f"is not a whole .npy file: {brief}") from None
    _check(shape, dtype)
    return Head(shape, fortran_order, dtype, file.tell())


def _check(shape: tuple[int, ...], dtype: "np.dtype[Any]") -> None:
    if dtype.hasobject:
        raise InvalidInput("holds pickled Python objects, which are never loaded")
    if dtype.names is not None:
        raise InvalidInput(f"holds records with the fields {', '.join(dtype.names)}, not numbers")
    if dtype.kind == "V" and dtype.isbuiltin != 2:  # 2: a registered dtype, such as bfloat16 where it kept its name
        raise InvalidInput(
            f"holds {dtype.itemsize} raw bytes an element: its dtype was lost, as NumPy does with bfloat16"
        )
    try:
        dtype_of(dtype)
    except InvalidInput as error:
        raise InvalidInput(f"holds no numbers of ours: {error}") from None
    if not shape:
        raise InvalidInput("holds a single value (0 dimensions), not an array")
    try:
        np.broadcast_to(np.zeros((), dtype), shape)  # takes no memory, and knows what NumPy can map
    except (ValueError, TypeError):
        raise InvalidInput(f"has the impossible shape {str(shape)[:100]}") from None


def is_npy(first: bytes | bytearray) -> bool:
    """Whether a file that begins with these bytes says that it is a .npy file."""
    return first.startswith(npy.MAGIC_PREFIX)


def head_of(dtype: DType, count: int) -> bytes:
    """The head of a one-dimensional array of `count` elements in little-endian order, as NumPy writes it; of bfloat16,
    whose name NumPy does not write, with the name."""
    native = dtype.numpy.newbyteorder("<")
    descr = native.str if native.kind != "V" else dtype.name
    buffer = io.BytesIO()
    npy.write_array_header_1_0(buffer, {"descr": descr, "fortran_order": False, "shape": (count,)})
    return buffer.getvalue()
