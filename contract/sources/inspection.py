"""The contents of a source's files, as far as heads, footers or first blocks tell them: a look before a job."""

import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated, Any, BinaryIO, Literal

from pydantic import ConfigDict, Field

from warpfold.contract.content_view import ContentView
from warpfold.contract.folders import Folders, dataset_in_words
from warpfold.contract.frozen import Frozen
from warpfold.contract.sources.array import ArrayFileSource
from warpfold.contract.sources.dataset import DatasetSource, UploadedFile
from warpfold.contract.sources.files import FilesSource
from warpfold.contract.sources.options import TableOptions, open_file, read_of
from warpfold.contract.sources.path import PathSource
from warpfold.contract.sources.table import TableSource
from warpfold.contract.text_fields import OF_TEXT
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.contents import Content, contents_of, contents_of_folder, sheets_of
from warpfold.kernels.formats.dialect import TextOptions
from warpfold.kernels.formats.folder import Tree
from warpfold.kernels.formats.signature import delimiter_of, is_text, readable_format

MOST_CONTENTS = 1000

FileSources = Annotated[
    PathSource | DatasetSource | ArrayFileSource | TableSource | FilesSource, Field(discriminator="type")
]
"""The sources that are files. What they say of a column, an array or rows does not matter to a look."""


class Inspection(Frozen):
    """The contents of a file, or of the first of many."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "file": "sales.parquet",
                    "files": 1,
                    "format": "Parquet",
                    "bytes": 8123456,
                    "holds": "columns",
                    "rows": 1000000,
                    "contents": [
                        {
                            "name": "price",
                            "dtype": "double",
                            "reduced_as": "float64",
                            "shape": [1000000],
                            "nulls": 17,
                            "chunks": [131072],
                            "bytes": 7812345,
                        }
                    ],
                    "left_out": 0,
                }
            ]
        }
    )

    file: str = Field(description="The file that was inspected, which is the first of many files.")
    files: int = Field(description="How many files the source has.")
    format: str = Field(description="The format of the file: .npy, .npz, HDF5, Zarr, Parquet, Arrow, text, …")
    bytes: int | None = Field(description="The size of the file in bytes; null for a folder.")
    holds: Literal["arrays", "columns"] = Field(description="Whether `contents` are arrays or columns of one table.")
    rows: int | None = Field(description="The rows of the table; null where only reading the whole table would tell.")
    contents: tuple[ContentView, ...] = Field(description=f"The first {MOST_CONTENTS:,} arrays or columns.")
    sheets: tuple[str, ...] = Field(
        (), exclude_if=lambda sheets: not sheets, description="The names of all sheets of an .xlsx workbook."
    )
    left_out: int = Field(description="How many more arrays or columns there are.")


def inspected(source: FileSources, folders: Folders) -> Inspection:
    """Look into the file of `source`, or into the first of its files. Raises InvalidInput whose field begins with
    "source", and Unavailable where a package is not installed."""
    if isinstance(source, DatasetSource):
        named = source.name or ".csv"
        called = source.name or dataset_in_words(source.id)
        look = partial(_in_file, called=called, files=1, options=source.text_options(named), text=True)
        return read_of(source.called, "source.id", partial(source.begin, folders), look)
    names, field = _names(source, folders)
    first = names[0]
    if isinstance(first, UploadedFile):
        own = {"id": first.id, "name": first.name}
        alone = inspected(DatasetSource.model_validate({"type": "dataset", **_text_options(source), **own}), folders)
        return alone.model_copy(update={"files": len(names)})
    text, options = is_text(first), TextOptions(of_name=delimiter_of(first))
    if isinstance(source, TableOptions):
        text, options = text or source.is_text, source.text_options(first)
    look = partial(_in_file, called=first, files=len(names), options=options, text=text)
    return open_file(first, folders, field, look, partial(_in_folder, called=first, files=len(names)))


def _text_options(source: FileSources) -> dict[str, Any]:
    """How text is read."""
    return {name: getattr(source, name) for name in OF_TEXT} if isinstance(source, TableOptions) else {}


def _names(source: FileSources, folders: Folders) -> tuple[Sequence[str | UploadedFile], str]:
    if isinstance(source, FilesSource):
        return source.named(folders), "source.paths" if source.glob is None else "source.glob"
    assert not isinstance(source, DatasetSource)
    return (source.path,), "source.path"


def _in_file(file: BinaryIO, called: str, files: int, options: TextOptions, *, text: bool) -> Inspection:
    kind = readable_format(file)
    tabular = text if kind is None else kind.tabular
    if kind is None and not text:
        raise InvalidInput("is in none of the formats that can be read; for a table of text, `text` says csv or tsv")
    named, nbytes = "text" if kind is None else kind.value, file.seek(0, os.SEEK_END)
    inspection = _answer(called, files, contents_of(file, options), named, nbytes, tabular=tabular)
    return inspection.model_copy(update={"sheets": tuple(sheets_of(file))})


def _in_folder(folder: Tree, called: str, files: int) -> Inspection:
    return _answer(called, files, contents_of_folder(folder), "Zarr", None, tabular=False)


def _answer(
    called: str, files: int, contents: Sequence[Content], kind: str, nbytes: int | None, *, tabular: bool
) -> Inspection:
    rows: Iterator[int] = (content.shape[0] for content in contents if tabular and content.shape is not None)
    return Inspection(
        file=called,
        files=files,
        format=kind,
        bytes=nbytes,
        holds="columns" if tabular else "arrays",
        rows=next(rows, None),
        contents=tuple(ContentView.of(content) for content in contents[:MOST_CONTENTS]),
        left_out=max(0, len(contents) - MOST_CONTENTS),
    )
