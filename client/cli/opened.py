"""A file of the user's that is no plain .npy file, and several files that are one array: the elements here, and what is
sent."""

import shutil
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import typer

from warpfold.client.cli.opening import faults, folder_at, name_faults
from warpfold.client.files_here import elements_of
from warpfold.client.sources import ManyFiles
from warpfold.contract.groupings import numbered
from warpfold.contract.sources.options import AnyOptions, read_folder_of, read_of
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.zarr_ import is_zarr
from warpfold.kernels.ops import Op
from warpfold.kernels.sources.sequential import Elements


@dataclass(frozen=True, slots=True)
class Opened:
    """A file that is no plain .npy file, with the options by which it is read."""

    path: Path
    options: Mapping[str, Any]

    def elements(self, parameter: str, op: Op | None, *, in_place: bool = False) -> Elements:
        """The elements of the file, for `op`; with `in_place` no null is left out. Raises BadParameter. Faults that
        show while elements are read are reported with the path."""
        wanted = AnyOptions.model_validate(self.options)
        if in_place or (op is not None and (op.places or op.sources > 1)):
            wanted = wanted.in_place()
        with faults("", parameter):
            if self.path.is_dir():
                return read_folder_of(str(self.path), "", lambda: wanted.open_folder_in(folder_at(self.path)))
            open_in = partial(wanted.open_in, name=self.path.name)
            return read_of(str(self.path), "", lambda: self.path.open("rb"), open_in)

    def dimensions(self) -> tuple[str, ...]:
        """The names of the array's dimensions. Raises InvalidInput and Unavailable."""
        wanted = AnyOptions.model_validate(self.options)
        if self.path.is_dir():
            return read_folder_of(str(self.path), "", lambda: wanted.dimensions_in_folder(folder_at(self.path)))
        return read_of(str(self.path), "", lambda: self.path.open("rb"), wanted.dimensions_in)

    @contextmanager
    def sent(self, parameter: str) -> Iterator[Path | ManyFiles]:
        """The file to be uploaded. For a Zarr hierarchy it is an archive, which has the name of the folder and is
        removed after the block. Raises BadParameter where the hierarchy lacks what an option names."""
        if not self.path.is_dir():
            yield self.path
            return
        with name_faults(self.path, parameter):
            AnyOptions.model_validate(self.options).open_folder_in(folder_at(self.path))
        with faults(str(self.path), parameter):
            if not is_zarr(folder_at(self.path)):
                raise InvalidInput("is a folder, but not a Zarr hierarchy")
        with TemporaryDirectory(prefix="warpfold-") as folder:
            packed = Path(folder) / f"{self.path.resolve().name}.zip"
            with zipfile.ZipFile(packed, "w") as archive:
                for file in sorted(path for path in self.path.rglob("*") if path.is_file()):
                    # Members have no time of modification, so that the same hierarchy always gives the same file.
                    member = zipfile.ZipInfo(file.relative_to(self.path).as_posix())
                    with file.open("rb") as stored, archive.open(member, "w", force_zip64=True) as to:
                        shutil.copyfileobj(stored, to)
            yield ManyFiles([packed], [str(self.path)])


@dataclass(frozen=True, slots=True)
class ArrayOfFiles:
    """The array that many files are together. A string names a file that the service reads."""

    files: Sequence[Path | str]
    options: Mapping[str, Any]

    def elements(self, parameter: str, op: Op | None, *, in_place: bool = False) -> Elements:
        """The elements of the files, which are on this machine. Raises BadParameter."""
        paths = [file for file in self.files if isinstance(file, Path)]
        with faults("", parameter):
            return elements_of(paths, self.options, in_place=in_place or (op is not None and op.places))

    @contextmanager
    def sent(self, parameter: str) -> Iterator[object]:
        """The files for the client, which checks them. Of folders it gets archives, which are removed after the block.
        Raises BadParameter where the files are not one array."""
        with ExitStack() as opened, faults("", parameter):
            sent = list[Path | str]()
            for file in self.files:
                if isinstance(file, Path) and file.is_dir():
                    packed = opened.enter_context(Opened(file, self.options).sent(parameter))
                    sent += packed.files if isinstance(packed, ManyFiles) else [packed]
                else:
                    sent.append(file)
            yield ManyFiles(sent, list(map(str, self.files)))


def axes_by_number(axis: str | list[int | str], array: object) -> int | tuple[int, ...]:
    """The numbers of axes of which some are called by their names. Raises BadParameter."""
    if not isinstance(array, Opened):
        raise typer.BadParameter("names an axis, and the array has no names of dimensions", param_hint="--axis")
    with faults(str(array.path), "--axis"):
        return numbered(tuple(axis) if isinstance(axis, list) else axis, array.dimensions())
