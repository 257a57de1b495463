"""From a spec's source to elements: numbers of the request, a generator, a .npy file under a data root, or an uploaded
array."""

import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from warpfold.app.datasets.store import Store
from warpfold.contract.sources import DatasetSource, GenerateSource, PathSource, ValuesSource
from warpfold.contract.sources import Source as SourceSpec
from warpfold.kernels.dtypes import dtype_named
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.npy import Head, read_head
from warpfold.kernels.source import ArraySource, GeneratedSource
from warpfold.kernels.values import array_of
from warpfold.worker.folders import Folders

_FIELD = "source.path"


def source_of(spec: SourceSpec, folders: Folders) -> ArraySource | GeneratedSource:
    """The elements that `spec` names. Raises InvalidInput."""
    match spec:
        case ValuesSource():
            return ArraySource(array_of(spec.values, dtype_named(spec.dtype), "source.values"))
        case GenerateSource():
            return GeneratedSource(spec.distribution, spec.n, spec.seed, dtype_named(spec.dtype), spec.parameters)
        case PathSource():
            return ArraySource(map_npy(spec.path, folders.roots))
        case DatasetSource():
            return ArraySource(map_dataset(spec.id, Store(folders.datasets)))


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
    try:
        head = read_head(file)
    except InvalidInput as error:
        raise InvalidInput(f"{given!r} {error}", _FIELD) from None
    there = status.st_size - head.offset
    if there < head.data_bytes:
        raise InvalidInput(
            f"{given!r} is truncated: its header promises {head.data_bytes} bytes of data, {there} are there", _FIELD
        )
    return _mapped(file, head)


def _mapped(file: BinaryIO, head: Head) -> NDArray[Any]:
    if head.data_bytes == 0:
        return np.empty(0, head.dtype)
    order: Literal["F", "C"] = "F" if head.fortran_order else "C"
    return np.asarray(np.memmap(file, head.dtype, mode="r", offset=head.offset, shape=head.shape, order=order))


def map_dataset(dataset_id: str, store: Store) -> NDArray[Any]:
    """An uploaded array, mapped into memory for reading. Raises InvalidInput.

    The file is as long as its head promises, or it is refused. It is not hashed again: that would cost more than most
    reductions of it, and the file got its name only after its bytes had been hashed.
    """
    try:
        with store.path(dataset_id).open("rb") as file:
            head = read_head(file)
            if os.fstat(file.fileno()).st_size == head.offset + head.data_bytes:
                return _mapped(file, head)
            said = "is damaged: its file is not as long as its head promises"
    except FileNotFoundError:
        said = "is not there: it was deleted after the job was accepted"
    except InvalidInput as error:
        said = str(error)
    except OSError as error:
        said = f"cannot be read: {_reason(error)}"
    raise InvalidInput(f"dataset {dataset_id} {said}", "source.id")


def _reason(error: OSError) -> str:
    if error.errno == errno.ELOOP:
        return "it changed while it was opened"
    return os.strerror(error.errno).lower() if error.errno else "the system gave no reason"
