"""The arrays that commands reduce: in a plain .npy file, in a file of another format, or at a URL."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from warpfold.client.cli.files import DASH, seekable
from warpfold.client.cli.opening import is_plain
from warpfold.kernels.errors import InvalidInput, KernelError
from warpfold.kernels.formats.npy_head import plain_values, written_head
from warpfold.kernels.formats.signature import is_text, readable_format
from warpfold.kernels.places.place import is_url

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpfold.client.cli.opened import ArrayOfFiles, Opened
    from warpfold.client.sources import Listed
    from warpfold.kernels.ops import Op
    from warpfold.kernels.sources.sequential import Elements

_SPECS = (".json", ".jsonl", ".ndjson", ".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class ArrayRequest:
    """What is asked of an array: the op, the other fields of the spec, those of them that give the result a shape, and
    the options by which a file is read. `columns` of the file are the times and the keys of a window. Where several
    files are one array, `together` has them."""

    op: str
    fields: Mapping[str, Any]
    shape: Mapping[str, Any]
    of_file: Mapping[str, Any]
    columns: Mapping[str, str]
    together: Sequence[Path | str] = ()


@dataclass(frozen=True, slots=True)
class MappedArray:
    """The array of a plain .npy file, mapped into memory, and the path of the file."""

    array: "NDArray[Any]"
    path: Path

    def elements(self, parameter: str, op: "Op | None", *, in_place: bool = False) -> "Elements":
        """The elements of the array."""
        from warpfold.kernels.source import ArraySource

        return ArraySource(self.array)

    @contextmanager
    def sent(self, parameter: str) -> Iterator[object]:
        """The data for the client: the array where it fits into a request, else its file as it is."""
        from warpfold.client.sources import MOST_VALUES  # the client, which a reduction on this machine does not need

        yield self.array if self.array.size <= MOST_VALUES else self.path


@dataclass(frozen=True, slots=True)
class ArrayAtUrl:
    """The array in the files that a URL names, with or without a pattern. The service reads them."""

    url: str

    def elements(self, parameter: str, op: "Op | None", *, in_place: bool = False) -> "Elements":
        """Raises BadParameter."""
        raise typer.BadParameter("is a URL, which the service reads", param_hint=parameter)

    @contextmanager
    def sent(self, parameter: str) -> Iterator[object]:
        """The URL, as the client takes it."""
        yield self.url


@contextmanager
def read_array(name: str, parameter: str, of_file: Mapping[str, Any]) -> Iterator["MappedArray | Opened | ArrayAtUrl"]:
    """The array that `name` names for the option `parameter`: a file or a folder, a pipe, or a URL. Files other than
    plain .npy files are read by the options `of_file`, and what reads them is imported for them alone. Raises
    BadParameter."""
    if is_url(name):
        yield ArrayAtUrl(name)
        return
    path = Path(name)
    if name and path.is_dir():
        from warpfold.client.cli.opened import Opened

        yield Opened(path, of_file)
        return
    with seekable(path, parameter) as file:
        if is_plain(file, of_file):
            yield MappedArray(_mapped(file, "standard input" if str(path) == DASH else str(path), parameter), file)
        else:
            from warpfold.client.cli.opened import Opened

            yield Opened(file, of_file)


@contextmanager
def read_first(name: str, asked: ArrayRequest) -> Iterator["MappedArray | Opened | ArrayAtUrl | ArrayOfFiles"]:
    """The array that a command reduces: that of `name`, or of several files. Raises as `read_array`."""
    if asked.together:
        from warpfold.client.cli.opened import ArrayOfFiles

        yield ArrayOfFiles(asked.together, asked.of_file)
        return
    with read_array(name, "FILE", asked.of_file) as first:
        yield first


@contextmanager
def sent_first(name: str, asked: ArrayRequest, *, alone: bool) -> Iterator[object]:
    """The data of `read_first` for the client. Of a small plain file, `alone` without another array beside it, they are
    the elements, for which NumPy is not imported."""
    path, plain = Path(name), alone and not asked.together and not asked.of_file
    listed = _listed(path) if plain and not is_text(name) and path.is_file() else None
    if listed is not None:
        yield listed
        return
    with read_first(name, asked) as first, first.sent("FILE") as whole:
        yield whole


def _listed(path: Path) -> "Listed | None":
    """The elements of a small file of plain numbers in C order; None of any other file."""
    from warpfold.client.sources import MOST_VALUES, Listed

    with suppress(InvalidInput, OSError), path.open("rb") as file:
        head = written_head(file)
        in_order = not head.fortran_order or len(head.shape) == 1
        if head.plain is not None and head.shape and in_order and head.count <= MOST_VALUES:
            values = plain_values(file, head)
            return None if values is None else Listed.of(values, head.plain, head.shape, str(path))
    return None


def _mapped(path: Path, called: str, parameter: str) -> "NDArray[Any]":
    """The array in a .npy file, mapped into memory. Raises BadParameter."""
    import numpy as np

    from warpfold.kernels.formats.npy import read_head

    try:
        with path.open("rb") as file:
            readable_format(file)
            head = read_head(file)
            size = path.stat().st_size - head.offset
        if size < head.data_bytes:
            raise typer.BadParameter(
                f"{called} is truncated: {head.data_bytes} bytes of data are promised, {size} are there",
                param_hint=parameter,
            )
        if head.data_bytes == 0:
            return np.empty(head.shape, head.dtype)
        order: Any = "F" if head.fortran_order else "C"
        return np.asarray(np.memmap(path, head.dtype, mode="r", offset=head.offset, shape=head.shape, order=order))
    except KernelError as error:
        hint = "; `warpfold submit` takes specs" if path.suffix.lower() in _SPECS else ""
        raise typer.BadParameter(f"{called} {error}{hint}", param_hint=parameter) from None
