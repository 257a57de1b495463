"""The options of sources of files that several sources share, and the errors about their files."""

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, BinaryIO, Literal, Self, TypeVar, cast

from pydantic import Field, StrictBool, StrictInt, field_validator, model_validator

from warpfold.contract.fields import DTypeName
from warpfold.contract.folders import Folders
from warpfold.contract.frozen import Frozen
from warpfold.contract.sources.roots import (
    PathName,
    check_name,
    locate,
    open_folder,
    open_located,
    open_regular,
    reason_of,
    size_at_hand,
)
from warpfold.contract.sources.row_filter import MOST_CONDITIONS, RowFilter, conditions_in
from warpfold.contract.sources.source import SourceSpec
from warpfold.contract.text_fields import FileOptions, InFile, TextFields
from warpfold.contract.unions import said_as
from warpfold.kernels.errors import InvalidInput, Unavailable
from warpfold.kernels.formats.arrays import as_float8, dimensions_in, open_array_file
from warpfold.kernels.formats.conventions import Conventions
from warpfold.kernels.formats.folder import Tree
from warpfold.kernels.formats.frames import Frame, open_frame
from warpfold.kernels.formats.hyperslab import Range
from warpfold.kernels.formats.signature import is_text, readable_format
from warpfold.kernels.formats.tables import ColumnWanted, open_column
from warpfold.kernels.formats.zarr_ import dimensions_of_zarr, is_zarr, open_zarr
from warpfold.kernels.ops import NullPolicy
from warpfold.kernels.places.file import as_file
from warpfold.kernels.places.place import NOWHERE, Places, is_url
from warpfold.kernels.places.remote import RemoteObject, Session
from warpfold.kernels.places.tree import RemoteTree, open_object, own_faults
from warpfold.kernels.source import ArraySource, stamp_of
from warpfold.kernels.sources.absent_chunks import WhereAbsent
from warpfold.kernels.sources.inputs import LocalFile
from warpfold.kernels.sources.sequential import Elements, SequentialSource

T = TypeVar("T")

MOST_AXES = 64
MOST_DEPTH = 16
Index = Annotated[StrictInt, Field(ge=-(1 << 62), le=1 << 62)]


class AxisRange(Frozen):
    """Indices start, start + step, … below `stop` of an axis, as `start:stop:step` in NumPy; an index beyond the axis
    is an error."""

    start: Index = Field(0, description="The first index; a negative one counts from the end.")
    stop: Index | None = Field(
        None, description="The index after the last one; if it is left out, the end of the axis."
    )
    step: Annotated[StrictInt, Field(ge=1, le=1 << 62)] = Field(
        1, description="The distance from one index to the next."
    )


Selected = Annotated[
    Annotated[
        AxisRange | Index | None, said_as('Should be an index, an object such as {"start": 0, "stop": 10}, or null')
    ],
    Field(description="An index, a range of indices, or null for the whole axis."),
]


class ArrayOptions(FileOptions):
    """The options of an array file: the array, and its elements that are reduced."""

    array: InFile | None = Field(
        None,
        description="Name of the array in the file: a member of an .npz archive, or the path of a dataset in an HDF5, "
        "NetCDF-4 or Zarr hierarchy. It may be left out where the file has one array.",
    )
    select: tuple[Selected, ...] = Field(
        (),
        max_length=MOST_AXES,
        description="The part of each axis to reduce, beginning with the first axis: an index, a range, or null for "
        "the whole axis. Axes that are not named are taken whole.",
    )
    stored: StrictBool = Field(
        False,
        description="Reduce elements as they are stored, without regard to the attributes `_FillValue`, "
        "`missing_value`, `valid_min`, `valid_max`, `valid_range`, `_Unsigned`, `scale_factor` and `add_offset`, and "
        "to the fill values of netCDF. Otherwise missing values are nulls, and packed elements are unpacked exactly.",
    )
    missing_chunks: Literal["fill", "raise"] = Field(
        "fill",
        description="The treatment of chunks of HDF5, NetCDF-4 and Zarr arrays that are not in the file: `fill` takes "
        "the array's fill value for their elements, and the result says how many chunks are absent in `notice`; "
        "`raise` fails the job. An absent chunk of an array without a fill value is always an error.",
    )
    float8: Literal["e4m3fn", "e5m2"] | None = Field(
        None,
        description="The format of 8-bit floats in which the array's bytes are read. The elements are widened to "
        "float32, which holds all their values. A .npy file that NumPy wrote names e5m2 by itself, but does not name "
        "e4m3fn.",
    )

    def open_in(self, file: BinaryIO, name: str) -> Elements:
        return open_array_file(file, self.array, self._ranges(), self._conventions(), self.float8)

    def open_folder_in(self, folder: Tree) -> Elements:
        """The elements in a folder, which is a Zarr hierarchy. Raises InvalidInput and Unavailable."""
        if not is_zarr(folder):
            raise InvalidInput("is a folder, but not a Zarr hierarchy")
        return as_float8(open_zarr(folder, self.array, self._ranges(), self._conventions()), self.float8)

    def dimensions_in(self, file: BinaryIO) -> tuple[str, ...]:
        """The names of the array's dimensions, empty where one has none. Raises InvalidInput and Unavailable."""
        return dimensions_in(file, self.array)

    def dimensions_in_folder(self, folder: Tree) -> tuple[str, ...]:
        """The same of an array in a folder, which is a Zarr hierarchy."""
        if not is_zarr(folder):
            raise InvalidInput("is a folder, but not a Zarr hierarchy")
        return dimensions_of_zarr(folder, self.array)

    def _ranges(self) -> tuple[Range, ...]:
        return tuple(_range(axis) for axis in self.select)

    def _conventions(self) -> Conventions:
        return Conventions(self.stored, NullPolicy(self.null_policy), WhereAbsent(self.missing_chunks))


class TableOptions(TextFields):
    """The options of a table: the column that is reduced, and its rows."""

    column: InFile | None = Field(
        None, description="Name of the column. It may be left out where the table has one column."
    )
    filter: RowFilter | None = Field(
        None, description="Which rows are reduced: those for which the condition is true. A null fulfils no comparison."
    )
    dtype: DTypeName | None = Field(
        None,
        description="For text only (CSV, TSV, JSON lines): the dtype as which the column is read. If it is left out, "
        "the first 4 MiB decide. An integer that the dtype does not hold is an error; a decimal fraction is rounded "
        "once to a float.",
    )

    @field_validator("filter")
    @classmethod
    def _bounded(cls, rows: RowFilter | None) -> RowFilter | None:
        depths = [] if rows is None else list(islice(conditions_in(rows), MOST_CONDITIONS + 1))
        if len(depths) > MOST_CONDITIONS or max(depths, default=0) > MOST_DEPTH:
            raise InvalidInput(f"a filter has at most {MOST_CONDITIONS:,} conditions, at most {MOST_DEPTH} deep")
        return rows

    def open_in(self, file: BinaryIO, name: str) -> Elements:
        rows = None if self.filter is None else self.filter.condition()
        nulls = NullPolicy(self.null_policy)
        return open_column(file, ColumnWanted(self.column, rows, nulls, self.dtype, self.text_options(name)))

    def open_table_in(self, file: BinaryIO, name: str) -> Frame:
        """The columns of the table in `file`, which is called `name` and must stay open while they are read. Raises
        InvalidInput and Unavailable."""
        for option in ("column", "dtype"):
            if getattr(self, option) is not None:
                raise InvalidInput(f"has {option}, which is for a single column: groups name theirs", option)
        return open_frame(file, None if self.filter is None else self.filter.condition(), self.text_options(name))


class AnyOptions(TableOptions, ArrayOptions):
    """The options of files of any format: those of an array, or those of a table."""

    @model_validator(mode="after")
    def _of_one_kind(self) -> Self:
        arrays, tables = self._set_options(ArrayOptions), self._set_options(TableOptions)
        if arrays and tables:
            raise InvalidInput(f"{arrays[0]} is for arrays, {tables[0]} is for tables", f"source.{tables[0]}")
        return self

    def open_in(self, file: BinaryIO, name: str) -> Elements:
        kind = readable_format(file)
        tabular = kind.tabular if kind is not None else is_text(name) or self.is_text
        if tabular or self._set_options(TableOptions):
            return TableOptions.open_in(self, file, name)
        return ArrayOptions.open_in(self, file, name)

    def _set_options(self, kind: type[FileOptions]) -> list[str]:
        """The options of `kind` alone that are not left at their defaults; a stored source names all of them."""
        fields = type(self).model_fields
        own = kind.model_fields.keys() - FileOptions.model_fields.keys()
        return [name for name in sorted(own) if getattr(self, name) != fields[name].default]


def _range(axis: AxisRange | int | None) -> Range:
    if axis is None:
        return Range()
    if isinstance(axis, int):
        return Range(axis, None if axis == -1 else axis + 1)
    return Range(axis.start, axis.stop, axis.step)


class NamedFile(SourceSpec):
    """A source that is one file on the server, or an object of a place."""

    path: PathName

    def bytes_at_hand(self, folders: Folders | None) -> int | None:
        return None if folders is None else size_at_hand(self.path, folders.roots, "source.path")

    def files(self, folders: Folders) -> Sequence[LocalFile]:
        return files_named((self.path,), folders, "source.path")

    def check(self, field: str, roots: tuple[Path, ...], most_values: int, places: Places = NOWHERE) -> None:
        check_name(self.path, f"{field}.path", roots, places)


def files_named(names: Sequence[str], folders: Folders, field: str) -> Sequence[LocalFile]:
    """The files of this machine that bear these names, which may be URLs, too."""
    return [LocalFile(name, partial(open_regular, name, folders.roots, field)) for name in names if not is_url(name)]


def open_file(
    name: str,
    folders: Folders,
    field: str,
    open_in: Callable[[BinaryIO], T],
    open_folder_in: Callable[[Tree], T] | None = None,
    *,
    session: Session | None = None,
) -> T:
    """What `open_in` reads of the file `name`, a path below a root or a URL in a place, or `open_folder_in` of a
    folder; as `read_of` has it. Objects that are opened by one `session` share its connections."""
    if is_url(name):
        target = folders.places.target(name, field)
        with faults_of(repr(name), field):
            session = session or Session(folders.places)
            opened = open_object(target, session, folder=open_folder_in is not None)
        return _of_place(opened, repr(name), field, open_in, open_folder_in)
    with faults_of(repr(name), field):
        root, path = locate(name, folders.roots, field)
    if open_folder_in is None or not (root / path).is_dir():
        return read_of(repr(name), field, partial(open_located, name, root, path, field), open_in)
    open_in_folder = open_folder_in
    return read_folder_of(repr(name), field, lambda: open_in_folder(open_folder(name, folders.roots, field)))


def read_of(called: str, field: str, begin: Callable[[], BinaryIO], open_in: Callable[[BinaryIO], T]) -> T:
    """What `open_in` reads of the file that `begin` opens, and that is closed when it is not needed any more. Raises
    InvalidInput, whose message begins with `called`, and Unavailable; so does reading."""
    with faults_of(called, field), ExitStack() as unless_read:
        file = unless_read.enter_context(begin())
        source = open_in(file)
        if not isinstance(source, SequentialSource | Frame):
            return _with_file_name(source, called)  # it has descriptors of its own
        return _named(source, called, field, unless_read.pop_all(), file)


def _with_file_name(source: T, called: str) -> T:
    """The same source, whose checksum, if it has one, names the file in errors."""
    if isinstance(source, ArraySource) and source.file is not None and source.file.checksum is not None:
        file = source.file.with_checksum(replace(source.file.checksum, called=called))
        return cast(T, replace(source, file=file))
    return source


def read_folder_of(called: str, field: str, open_in: Callable[[], T]) -> T:
    """What `open_in` reads of a folder; its errors, and those of reading, are as those of `read_of`."""
    with faults_of(called, field):
        source = open_in()
    return _named(source, called, field, ExitStack())


def _named(source: T, called: str, field: str, still_open: ExitStack, file: BinaryIO | None = None) -> T:
    """The same source, whose errors name the file, and which closes `still_open` in the end. That
    `file` changes while it is read is one of the faults."""
    if not isinstance(source, SequentialSource | Frame):
        return source
    stamp = _stamp(file)

    @contextmanager
    def unchanged() -> Iterator[None]:
        with faults_of(called, field):
            yield
            if _stamp(file) != stamp:
                raise InvalidInput("changed while it was read")

    sequential = source.within(unchanged)
    weakref.finalize(sequential, still_open.close)
    return cast(T, sequential)


def _of_place(
    opened: RemoteObject | RemoteTree,
    called: str,
    field: str,
    open_in: Callable[[BinaryIO], T],
    open_folder_in: Callable[[Tree], T] | None,
) -> T:
    with faults_of(called, field), own_faults(opened):
        if isinstance(opened, RemoteObject):
            source = open_in(as_file(opened))
        else:
            assert open_folder_in is not None, "only then it is looked for"
            source = open_folder_in(opened)
    if not isinstance(source, SequentialSource | Frame):
        return source
    source.tally.objects.append(opened)

    @contextmanager
    def faults_of_reading() -> Iterator[None]:
        with faults_of(called, field), own_faults(opened):
            yield

    return cast(T, source.within(faults_of_reading))


def _stamp(file: BinaryIO | None) -> tuple[int, int] | None:
    """The stamp of a file of this machine."""
    try:
        return None if file is None else stamp_of(file.fileno())
    except OSError:  # it has no descriptor
        return None


@contextmanager
def faults_of(called: str, field: str) -> Iterator[None]:
    """Tell the faults of a file with its name, and those of options with the field of the source that has them."""
    try:
        yield
    except InvalidInput as error:
        if str(error).startswith(called):
            raise
        raise InvalidInput(f"{called} {error}", f"source.{error.field}" if error.field else field) from None
    except Unavailable as error:
        raise Unavailable(f"{called} cannot be read: {error}") from None
    except OSError as error:
        raise InvalidInput(f"{called} cannot be read: {reason_of(error)}", field) from None
