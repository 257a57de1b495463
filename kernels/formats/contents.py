"""Lists what is in a file: names, dtypes, lengths and nulls, as far as its head, its footer or its first block tells
them. What reads a format is imported for files of that format alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, BinaryIO

from warpfold.kernels.dtypes import DTYPES, dtype_of, part_dtype
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.dialect import TextOptions
from warpfold.kernels.formats.folder import Tree
from warpfold.kernels.formats.naming import damaged
from warpfold.kernels.formats.npy_head import written_head
from warpfold.kernels.formats.signature import Format, readable_format
from warpfold.kernels.machine.extras import required

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True)
class Content:
    """An array or a column. `reduced_as` is the dtype that a job gives its elements, None where no job can reduce it.
    `chunks` is the shape of a chunk (in a Parquet file, the rows of the largest row group), and `nbytes` its size in
    the file. A field is None where the format does not record it, or where only reading the whole file would tell
    it."""

    name: str
    dtype: str
    reduced_as: str | None
    shape: tuple[int, ...] | None
    nulls: int | None = None
    chunks: tuple[int, ...] | None = None
    nbytes: int | None = None

    @classmethod
    def array(
        cls,
        name: str,
        dtype: "np.dtype[Any]",
        shape: tuple[int, ...],
        chunks: tuple[int, ...] | None = None,
        nbytes: int | None = None,
    ) -> "Content":
        """An array of the shape `shape`. An array without axes is a single value, and no job reduces it."""
        try:
            parts = part_dtype(dtype)
            known = dtype_of(dtype).name if parts is None else str(dtype.newbyteorder("="))
            reduced_as = known if shape else None
        except InvalidInput:
            reduced_as = None
        return cls(name, str(dtype), reduced_as, shape, None, chunks, nbytes)

    @classmethod
    def column(
        cls,
        field: Any,
        rows: int | None,
        nulls: int | None = None,
        chunks: tuple[int, ...] | None = None,
        nbytes: int | None = None,
    ) -> "Content":
        """A column of a table with this number of rows; `field` is the column's field in pyarrow's schema."""
        from warpfold.kernels.formats.tables import dtype_of_column, meaning_of_column

        try:
            meaning = meaning_of_column(field.type)
            reduced_as = dtype_of_column(field.name, field.type).name if meaning is None else meaning.kind
        except InvalidInput:
            reduced_as = None
        return cls(field.name, str(field.type), reduced_as, None if rows is None else (rows,), nulls, chunks, nbytes)


def contents_of(file: BinaryIO, text: TextOptions) -> list[Content]:
    """The arrays in a file, or the columns of its table; `text` says how text is to be read.

    Raises InvalidInput and Unavailable.
    """
    kind = readable_format(file)
    with damaged("cannot be looked into", Exception):
        match kind:
            case Format.NPY:
                return [_array(file)]
            case Format.NPZ:
                return list(_archive(file))
            case Format.HDF5:
                return list(_datasets(file))
            case Format.PARQUET:
                return list(_parquet(file))
            case Format.ARROW_FILE | Format.ARROW_STREAM:
                return list(_arrow(file, kind))
        return list(_sheet(file, text) if kind is Format.XLSX else _text(file, kind, text))


def contents_of_folder(folder: Tree) -> list[Content]:
    """The arrays of a Zarr hierarchy. Raises InvalidInput and Unavailable."""
    from warpfold.kernels.formats import zarr_

    if not zarr_.is_zarr(folder):
        raise InvalidInput("is a folder, but not a Zarr hierarchy")
    with damaged("cannot be looked into", Exception):
        return [_of_zarr(*properties) for properties in zarr_.arrays_in(folder)]


def _array(file: BinaryIO) -> Content:
    written = written_head(file)
    if written.plain is not None and written.shape:
        nbytes = written.count * DTYPES[written.plain].itemsize
        return Content("", written.dtype, written.plain, written.shape, nbytes=nbytes)
    from warpfold.kernels.formats.npy import read_head, stored_name
    from warpfold.kernels.lowering.float8 import bytes_of
    from warpfold.kernels.lowering.times import times_of_dtype

    file.seek(0)
    head = read_head(file, wider=True)
    array = Content.array("", head.dtype, head.shape, nbytes=head.data_bytes)
    times = times_of_dtype(head.dtype)
    wider = stored_name(head.dtype) if times is None else times.kind
    wider = "float32" if bytes_of(head.dtype) is not None else wider
    return replace(array, reduced_as=wider if head.shape else None)


def _of_zarr(name: str, dtype: "np.dtype[Any]", shape: tuple[int, ...], chunks: tuple[int, ...]) -> Content:
    from warpfold.kernels.lowering.times import times_of_dtype

    array, times = Content.array(name, dtype, shape, chunks), times_of_dtype(dtype)
    return array if times is None or not shape else replace(array, reduced_as=times.kind)


def _archive(file: BinaryIO) -> Iterator[Content]:
    from warpfold.kernels.formats import npz, zipped

    tree = zipped.zipped_zarr(file)
    if tree is not None:
        yield from contents_of_folder(tree)
        return
    for name, head, nbytes in npz.heads(file):
        if head is None:
            yield Content(name, "no numbers", None, None, nbytes=nbytes)
        else:
            yield Content.array(name, head.dtype, head.shape, nbytes=nbytes)


def _datasets(file: BinaryIO) -> Iterator[Content]:
    from warpfold.kernels.formats import hdf5

    with hdf5.opened(file) as tree:
        for path in hdf5.datasets(tree):
            array = tree[path]
            yield Content.array(path, array.dtype, tuple(array.shape), array.chunks, array.id.get_storage_size())


def _parquet(file: BinaryIO) -> Iterator[Content]:
    from warpfold.kernels.formats.parquet_footer import Footer

    footer = Footer.of(file)
    groups = [footer.metadata.row_group(number) for number in range(footer.metadata.num_row_groups)]
    largest = max((group.num_rows for group in groups), default=0)
    closed = footer.unreadable(footer.schema.names)
    for field, stored in zip(footer.schema, footer.stored, strict=True):
        counts: list[int | None] = []
        nbytes = None
        if field.name not in closed:
            counts = [footer.nulls(number, field.name) for number in range(len(groups))]
            nbytes = sum(int(group.column(at).total_compressed_size) for group in groups for at in stored)
        known = None if None in counts or field.name in closed else sum(count or 0 for count in counts)
        yield Content.column(field, footer.metadata.num_rows, known, (largest,), nbytes)


def _text(file: BinaryIO, kind: Format | None, text: TextOptions) -> Iterator[Content]:
    from warpfold.kernels.formats.text import first_block

    return (Content.column(field, None) for field in first_block(file, kind, text))


def _sheet(file: BinaryIO, text: TextOptions) -> Iterator[Content]:
    from warpfold.kernels.formats.xlsx_columns import Sheet

    sheet = Sheet.of(file, text)
    for field in sheet.schema:
        content = Content.column(field, sheet.rows)
        yield content if sheet.why_refused(field.name) is None else replace(content, reduced_as=None)


def sheets_of(file: BinaryIO) -> Sequence[str]:
    """The names of the sheets of a workbook; none of any other file. Raises InvalidInput and Unavailable."""
    if readable_format(file) is not Format.XLSX:
        return ()
    from warpfold.kernels.formats.xlsx import Workbook

    return Workbook(file).sheets


def _arrow(file: BinaryIO, kind: Format) -> Iterator[Content]:
    from warpfold.kernels.formats.tables import random_access

    ipc = required("pyarrow.ipc", "tables")
    source: Any = random_access(file)
    rows = None
    if kind is Format.ARROW_FILE:
        rows = required("pyarrow.dataset", "tables").IpcFileFormat().make_fragment(source).count_rows()
        source.seek(0)
    for field in ipc.open_file(source).schema if kind is Format.ARROW_FILE else ipc.open_stream(source).schema:
        yield Content.column(field, rows)
