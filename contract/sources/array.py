"""Arrays in files on the server."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

from warpfold.contract.folders import Folders
from warpfold.contract.sources.options import ArrayOptions, NamedFile, open_file
from warpfold.kernels.sources.sequential import Elements


class ArrayFileSource(ArrayOptions, NamedFile):
    """An array in a file on the server, or a part of the array. The file is a .npy file, an .npz archive, an HDF5 or a
    NetCDF-4 file, or a Zarr hierarchy of version 2 or 3, which is a folder. A URL names a file in a place of the
    server's configuration.

    Elements are taken in C order. The first bytes of a file tell its format.
    """

    type: Literal["array"]

    def identity(self) -> str:
        return f"the file {self.path}{self.described()}"

    @staticmethod
    def summary(stored: Mapping[str, Any]) -> str | None:
        if "path" not in stored:
            return None
        return f"array {stored['path']}" + (f" {stored['array']}" if stored.get("array") else "")

    def open(self, folders: Folders) -> Elements:
        open_in = partial(self.open_in, name=self.path)
        return open_file(self.path, folders, "source.path", open_in, self.open_folder_in)

    def dimensions(self, folders: Folders) -> tuple[str, ...]:
        return open_file(self.path, folders, "source.path", self.dimensions_in, self.dimensions_in_folder)
