"""What is in a file, as far as its head, its footer or its first block tell: names, dtypes, lengths, nulls."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.extras import required
from warpfold.kernels.formats import hdf5, npz, zarr_, zipped
from warpfold.kernels.formats.folder import Tree
from warpfold.kernels.formats.naming import damaged
from warpfold.kernels.formats.parquet import check_footer, nulls_in
from warpfold.kernels.formats.signature import Format, format_of
from warpfold.kernels.formats.tables import random_access
from warpfold.kernels.formats.text import first_block
from warpfold.kernels.npy import read_head


@dataclass(frozen=True, slots=True)
class Content:
    """An array or a column: `shape` is None, and so is `nulls`, where only reading all of it would tell."""

    name: str
    dtype: str
    shape: tuple[int, ...] | None
    nulls: int | None = None


def contents_of(file: BinaryIO, delimiter: str) -> list[Content]:
    """The arrays in a file, or the columns of its table; `delimiter` stands between columns of text.

    Raises InvalidInput and Unavailable.
    """
    kind = format_of(file)
    with damaged("cannot be looked into", Exception):
        match kind:
            case Format.NPY:
                head = read_head(file)
                return [Content("", str(head.dtype), head.shape)]
            case Format.NPZ:
                return list(_archive(file))
            case Format.HDF5:
                return list(_datasets(file))
            case Format.PARQUET:
                return list(_parquet(file))
            case Format.ARROW_FILE | Format.ARROW_STREAM:
                return list(_arrow(file, kind))
            case Format.NETCDF3 | Format.FEATHER1:
                raise InvalidInput(f"is a {kind.value} file, which is not read")
        schema = first_block(file, kind, delimiter)
        return [Content(field.name, str(field.type), None) for field in schema]


def contents_of_folder(folder: Tree) -> list[Content]:
    """The arrays of a Zarr hierarchy. Raises InvalidInput and Unavailable."""
    if not zarr_.is_zarr(folder):
        raise InvalidInput("is a folder, and no Zarr hierarchy")
    with damaged("cannot be looked into", Exception):
        return [Content(name, dtype, shape) for name, dtype, shape in zarr_.arrays_in(folder)]


def _archive(file: BinaryIO) -> Iterator[Content]:
    tree = zipped.zipped_zarr(file)
    if tree is not None:
        yield from contents_of_folder(tree)
        return
    for name, head in npz.heads(file):
        yield Content(name, str(head.dtype), head.shape)


def _datasets(file: BinaryIO) -> Iterator[Content]:
    with hdf5.opened(file) as tree:
        for path in hdf5.datasets(tree):
            yield Content(path, str(tree[path].dtype), tuple(tree[path].shape))


def _parquet(file: BinaryIO) -> Iterator[Content]:
    check_footer(file)
    parquet = required("pyarrow.parquet", "tables").ParquetFile(random_access(file))
    metadata = parquet.metadata
    for field in parquet.schema_arrow:
        nulls = [nulls_in(metadata.row_group(group), field.name) for group in range(metadata.num_row_groups)]
        known = None if None in nulls else sum(count for count in nulls if count is not None)
        yield Content(field.name, str(field.type), (metadata.num_rows,), known)


def _arrow(file: BinaryIO, kind: Format) -> Iterator[Content]:
    ipc = required("pyarrow.ipc", "tables")
    source: Any = random_access(file)
    shape = None
    if kind is Format.ARROW_FILE:
        shape = (required("pyarrow.dataset", "tables").IpcFileFormat().make_fragment(source).count_rows(),)
        source.seek(0)
    for field in ipc.open_file(source).schema if kind is Format.ARROW_FILE else ipc.open_stream(source).schema:
        yield Content(field.name, str(field.type), shape)
