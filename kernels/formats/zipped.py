"""A Zarr hierarchy in a zip archive, which is the form of an upload. Its files are read by their names, as the files of
a folder are."""

import stat
import zipfile
from collections.abc import Iterator
from typing import BinaryIO

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.folder import Tree
from warpfold.kernels.formats.npz import archive_in, check_names, check_packing, read_whole
from warpfold.kernels.formats.zarr_ import is_zarr
from warpfold.kernels.places.file import is_remote


class ZippedTree(Tree):
    """The files of an archive below `top`, which is empty or ends in a slash. The archive's file must stay open."""

    def __init__(self, archive: zipfile.ZipFile, top: str, file: BinaryIO) -> None:
        self._archive, self._file = archive, file
        self._members = {
            info.filename.removeprefix(top): info
            for info in archive.infolist()
            if info.filename.startswith(top) and not info.is_dir()
        }
        self._folders: dict[str, set[str]] = {}
        for name in self._members:
            parts = name.split("/")
            for depth in range(len(parts) - 1):
                self._folders.setdefault("/".join(parts[:depth]), set()).add(parts[depth])

    def size(self, name: str) -> int | None:
        info = self._members.get(name.strip("/"))
        return None if info is None else info.file_size

    def read(self, name: str, start: int, stop: int | None, most: int) -> bytes | None:
        info = self._members.get(name.strip("/"))
        if info is None:
            return None
        check_packing(info)
        if stat.S_ISLNK(info.external_attr >> 16):
            raise InvalidInput(f"holds {name!r}, which is not a regular file")
        size = info.file_size
        begin = max(0, size + start) if start < 0 else start
        length = max(0, min(size, size if stop is None else stop) - begin)
        packed = info.compress_type != zipfile.ZIP_STORED
        if (size if packed else length) > most:  # a compressed member can only be read from its beginning
            raise InvalidInput(f"holds {name!r} with {length:,} bytes, and at most {most:,} are read at a time")
        with self._archive.open(info) as member:
            member.seek(begin)
            return read_whole(member, length).tobytes()

    def folders(self, name: str = "") -> Iterator[str]:
        yield from sorted(self._folders.get(name.strip("/"), ()))

    def check_names(self) -> None:
        if is_remote(self._file):  # the names in a file of this machine were checked as it was opened
            check_names(self._archive, self._file)


def zipped_zarr(file: BinaryIO) -> ZippedTree | None:
    """The Zarr hierarchy that an archive holds, at its top or in its only folder; None if it holds no hierarchy. Raises
    InvalidInput where `file` is not a whole archive."""
    archive = archive_in(file)
    tree = ZippedTree(archive, "", file)
    if not is_zarr(tree) and len(tops := list(tree.folders())) == 1:
        tree = ZippedTree(archive, f"{tops[0]}/", file)
    return tree if is_zarr(tree) else None
