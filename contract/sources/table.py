"""Columns of tables in files on the server."""

from collections.abc import Mapping
from typing import Any, Literal

from warpfold.contract.folders import Folders
from warpfold.contract.sources.options import NamedFile, TableOptions, open_file
from warpfold.kernels.formats.frames import Frame
from warpfold.kernels.sources.sequential import Elements


class TableSource(TableOptions, NamedFile):
    """A column of a table in a file on the server. The file is a Parquet file, an Arrow file or stream (Feather version
    2), an .xlsx workbook, or a file of CSV, TSV or JSON lines, which may be compressed by gzip or zstd. A URL names a
    file in a place of the server's configuration.

    Only the named column and the columns of the filter are read, a part at a time.
    """

    type: Literal["table"]

    def identity(self) -> str:
        return f"the table {self.path}{self.described()}"

    @staticmethod
    def summary(stored: Mapping[str, Any]) -> str | None:
        if "path" not in stored:
            return None
        filtered = ", filtered" if stored.get("filter") else ""
        return f"table {stored['path']}" + (f" {stored['column']}" if stored.get("column") else "") + filtered

    def open(self, folders: Folders) -> Elements:
        return open_file(self.path, folders, "source.path", lambda file: self.open_in(file, self.path))

    def open_table(self, folders: Folders) -> Frame:
        return open_file(self.path, folders, "source.path", lambda file: self.open_table_in(file, self.path))
