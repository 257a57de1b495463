"""Several files of this machine as one array, or as one table: read here as the service reads them, before anything is
uploaded."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from pydantic import BaseModel, ValidationError

from warpfold.client.groups import Axis
from warpfold.contract.faults import first_fault
from warpfold.contract.folders import Folders
from warpfold.contract.groupings import has_names, numbered
from warpfold.contract.keyed import rows_of_frame
from warpfold.contract.kinds.groupby import GroupbySpec
from warpfold.contract.kinds.reduce import ReduceSpec
from warpfold.contract.sources.chaining import Reader, one_array
from warpfold.contract.sources.options import AnyOptions, faults_of
from warpfold.kernels.errors import InvalidInput, Unavailable
from warpfold.kernels.formats.frames import Frame
from warpfold.kernels.formats.signature import readable_format
from warpfold.kernels.lowering.decimals import with_digits
from warpfold.kernels.parts.grouping import AlongAxes
from warpfold.kernels.places.place import NOWHERE
from warpfold.kernels.places.remote import Session
from warpfold.kernels.sources.sequential import Elements, shape_of

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class _FileHere:
    """A file of this machine, and its name where it stands for another one, such as an archive for its folder."""

    path: Path
    name: str

    @property
    def label(self) -> str:
        return self.name

    @property
    def called(self) -> str:
        return self.name

    def begin(self, folders: Folders) -> BinaryIO:
        if self.path.is_dir():
            raise InvalidInput("is a folder: a Zarr hierarchy is one of several files where the service reads them")
        return self.path.open("rb")

    def check_format(self) -> None:
        """Raise InvalidInput where files of this format are not read anywhere."""
        if self.path.is_file():
            with self.path.open("rb") as file, faults_of(self.name, ""):
                readable_format(file)

    def elements_in(self, file: BinaryIO, options: AnyOptions) -> Elements:
        return options.open_in(file, self.path.name)

    def frame_in(self, file: BinaryIO, options: AnyOptions) -> Frame:
        return options.open_table_in(file, self.path.name)


def elements_of(paths: Sequence[Path], options: Mapping[str, Any], *, in_place: bool = False) -> Elements:
    """The elements of all files, one file after another; with `in_place` no null is left out. Raises InvalidInput that
    names the file at fault, and Unavailable."""
    wanted = AnyOptions.model_validate(options)
    return one_array(_files(paths), _reader(wanted.in_place() if in_place else wanted))


def check_array(
    paths: Sequence[Path],
    options: Mapping[str, Any],
    names: Sequence[str] = (),
    axis: Axis | None = None,
    spec: Mapping[str, Any] | None = None,
) -> None:
    """Raise InvalidInput where the `spec` of their reduction is none, where files are not one array, where they lack
    what an option names, and where the array has not such an axis; files may be called by `names`. Left to the service
    are what this machine lacks the packages to read, and a single file that cannot be read."""
    with suppress(Unavailable):
        files = _files(paths, names)
        for file in files:
            file.check_format()
        if spec is not None:
            _validated(ReduceSpec, spec, files)
        try:
            if files:
                wanted = _validated(AnyOptions, options, files)
                elements = one_array(files, _reader(wanted))
                if spec is not None and spec.get("digits") is not None:
                    _check_digits(elements, spec["digits"], files[0].name)
                shape = shape_of(elements)
                if len(files) == 1 and axis is not None:
                    shape = _shape(files[0], wanted)
                check_axis(shape, axis, files[0].name, lambda: _dimensions(files, wanted))
        except InvalidInput as error:
            if error.field or len(files) > 1:
                raise


def _check_digits(elements: Elements, digits: int, called: str) -> None:
    try:
        with_digits(elements, digits)
    except InvalidInput as error:
        raise InvalidInput(f"{called}: {error}", error.field) from None


def _shape(here: _FileHere, options: AnyOptions) -> tuple[int, ...] | None:
    """The shape of the array in a file, which as one of several files has one axis."""
    with here.path.open("rb") as file:
        return shape_of(here.elements_in(file, options))


def _dimensions(files: "Sequence[_FileHere]", options: AnyOptions) -> Sequence[str]:
    """The names of the dimensions of a single file; none of several."""
    if len(files) > 1:
        return ()
    with files[0].path.open("rb") as file:
        return options.dimensions_in(file)


def check_axis(
    shape: tuple[int, ...] | None, axis: Axis | None, called: str, dimensions: Callable[[], Sequence[str]] = tuple
) -> None:
    """Raise InvalidInput where an array of these dimensions, and of this shape if it is known, has not such an axis."""
    if axis is None:
        return
    axes = (axis,) if isinstance(axis, int | str) else tuple(axis)
    try:
        numbers = numbered(axes, dimensions() if has_names(axes) else ())
        if shape is not None:
            AlongAxes(numbers if isinstance(numbers, tuple) else (numbers,)).result_shape(shape)
    except InvalidInput as error:
        raise InvalidInput(f"{called}: {error}", error.field) from None


def check_table(
    paths: Sequence[Path], spec: Mapping[str, Any], options: Mapping[str, Any], names: Sequence[str] = ()
) -> None:
    """Raise InvalidInput where one of the files is no table, or lacks a column that a `groupby` spec can take; else as
    `check_array`."""
    with suppress(Unavailable):
        files = _files(paths, names)
        reader = _reader(_validated(AnyOptions, options, files))
        for file in files:
            try:
                check_frame(reader.table(file), spec)
            except InvalidInput as error:
                called = "" if str(error).startswith(file.name) else f"{file.name} "
                raise InvalidInput(f"{called}{error}", error.field) from None


def check_frame(frame: Frame, spec: Mapping[str, Any]) -> None:
    """Raise InvalidInput where a table has not the columns of a `groupby` spec, or of kinds that are no keys or are not
    reduced, and where the spec is none."""
    rows_of_frame(_validated(GroupbySpec, {**spec, "source": {"type": "files", "paths": ["here"]}}), frame)


def _validated(model: type[M], fields: Mapping[str, Any], files: "Sequence[_FileHere]" = ()) -> M:
    """The model with these fields. Raises InvalidInput, which names the first file where a field is about files."""
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        fault = first_fault(error)
        about = files[0].name + ": " if files and (model is AnyOptions or str(fault.field).startswith("source")) else ""
        raise InvalidInput(f"{about}{fault}", fault.field) from None


def schema_of(path: Path, options: Mapping[str, Any]) -> Any:
    """The schema of pyarrow of a table in a file. Raises InvalidInput and Unavailable."""
    return _reader(AnyOptions.model_validate(options)).table(_FileHere(path, str(path))).schema


def _files(paths: Sequence[Path], names: Sequence[str] = ()) -> Sequence[_FileHere]:
    return [_FileHere(path, name) for path, name in zip(paths, names or map(str, paths), strict=True)]


def _reader(options: AnyOptions) -> Reader:
    return Reader(options, Folders((), Path()), Session(NOWHERE), "")
