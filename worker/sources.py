"""From a spec's source to elements: numbers of the request, a generator, or a .npy file under a data root."""

import errno
import os
import stat
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from app.jobs.sources import GenerateSource, PathSource, ValuesSource
from app.jobs.sources import Source as SourceSpec
from kernels.dtypes import dtype_named, dtype_of
from kernels.errors import InvalidInput
from kernels.source import ArraySource, GeneratedSource
from kernels.values import array_of

_FIELD = "source.path"


def source_of(spec: SourceSpec, roots: Sequence[Path]) -> ArraySource | GeneratedSource:
    """The elements that `spec` names. `roots` are resolved folders. Raises InvalidInput."""
    match spec:
        case ValuesSource():
            return ArraySource(array_of(spec.values, dtype_named(spec.dtype), "source.values"))
        case GenerateSource():
            return GeneratedSource(spec.distribution, spec.n, spec.seed, dtype_named(spec.dtype), spec.parameters)
        case PathSource():
            return ArraySource(map_npy(spec.path, roots))


def map_npy(given: str, roots: Sequence[Path]) -> NDArray[Any]:
    """The array in a .npy file, of any shape, mapped into memory for reading.

    `given` is absolute, or relative to one of `roots`; wherever symbolic links lead, the file must lie under a root.
    Nothing is ever unpickled. Raises InvalidInput, whose sentence names the file as it was given and says nothing
    about files outside of the roots.
    """
    root, path = _locate(given, roots)
    try:
        with _open_below(root, path) as file:
            return _map(given, file)
    except OSError as error:
        raise InvalidInput(f"{given!r} cannot be read: {_reason(error)}", _FIELD) from None


def _locate(given: str, roots: Sequence[Path]) -> tuple[Path, Path]:
    """The root and the path below it, without links, of the file that `given` names."""
    if not roots:
        raise InvalidInput("this server offers no files: it was started without data roots", _FIELD)
    inside = None
    for start in roots:
        real = Path(os.path.realpath(start / given))
        root = next((root for root in roots if real.is_relative_to(root)), None)
        if root is not None:
            inside = inside or (root, real.relative_to(root))
            if os.path.exists(real):  # noqa: PTH110 (which says no where Path.exists raises)
                return root, real.relative_to(root)
    if inside is None:
        raise InvalidInput(f"{given!r} lies outside of this server's data roots", _FIELD)
    return inside


def _open_below(root: Path, path: Path) -> BinaryIO:
    """Open `root / path` for reading, following no link: whoever put one there since we looked gets an error."""
    if not path.parts:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in path.parts[:-1]:
            deeper = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = deeper
        # Without O_NONBLOCK, opening a FIFO would wait for its writer.
        file = os.open(path.parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    finally:
        os.close(folder)
    return os.fdopen(file, "rb")


def _map(given: str, file: BinaryIO) -> NDArray[Any]:
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode):
        raise InvalidInput(f"{given!r} is not a regular file", _FIELD)
    shape, fortran_order, dtype = _header(given, file)
    if dtype.hasobject:
        raise InvalidInput(f"{given!r} holds pickled Python objects, which are never loaded", _FIELD)
    if dtype.names is not None:
        raise InvalidInput(f"{given!r} holds records with the fields {', '.join(dtype.names)}, not numbers", _FIELD)
    if dtype.kind == "V":
        raise InvalidInput(
            f"{given!r} holds {dtype.itemsize} raw bytes an element: its dtype was lost, as NumPy does with bfloat16",
            _FIELD,
        )
    try:
        dtype_of(dtype, _FIELD)
    except InvalidInput as error:
        raise InvalidInput(f"{given!r}: {error}", _FIELD) from None
    if not shape:
        raise InvalidInput(f"{given!r} holds a single value (0 dimensions), not an array", _FIELD)
    promised, there = prod(shape) * dtype.itemsize, status.st_size - file.tell()
    if there < promised:
        raise InvalidInput(
            f"{given!r} is truncated: its header promises {promised} bytes of data, {there} are there", _FIELD
        )
    if promised == 0:
        return np.empty(0, dtype)
    order: Literal["F", "C"] = "F" if fortran_order else "C"
    return np.asarray(np.memmap(file, dtype=dtype, mode="r", offset=file.tell(), shape=shape, order=order))


def _header(given: str, file: BinaryIO) -> tuple[tuple[int, ...], bool, "np.dtype[Any]"]:
    """Shape, whether in Fortran order, and dtype, as the head of a .npy file gives them."""
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    try:
        reader = readers.get(npy.read_magic(file))
        if reader is None:
            # Version 3.0 exists for structured dtypes with field names beyond Latin-1, and only for them.
            raise ValueError("its version of the format is for records only")
        shape, fortran_order, dtype = reader(file)
        if any(length < 0 for length in shape):
            raise ValueError(f"its shape {shape} is impossible")
    except OSError:
        raise
    except Exception as error:  # whatever a hostile header makes the parser raise
        brief = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise InvalidInput(f"{given!r} is not a whole .npy file: {brief}", _FIELD) from None
    return shape, fortran_order, dtype


def _reason(error: OSError) -> str:
    if error.errno == errno.ELOOP:
        return "it changed while it was opened"
    return os.strerror(error.errno).lower() if error.errno else "the system gave no reason"
