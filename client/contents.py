"""What is uploaded: an array, bytes in memory, or a file."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from warpfold.client.errors import WarpfoldError
from warpfold.client.exchange import Content
from warpfold.client.sent_files import FileStamp, SentFiles
from warpfold.client.settings import sent_files_path

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PIECE = 256 << 10
"""Bytes of one buffer, which stays in the cache of a core between its reading and its sending."""


class Sendable(Content, Protocol):
    """An array to be sent, with the properties that are known without reading the array, and those that are to be
    remembered."""

    @property
    def called(self) -> str:
        """The name of a file, else nothing: the service tells a table of text by its name."""

    def known(self) -> str | None:
        """The digest of the array."""

    def unfinished(self) -> str | None:
        """The path of the array's upload that was cut."""

    def keep(self, *, digest: str | None = None, upload: str | None = None) -> None:
        """Remember the digest or the path."""


class _InMemory:
    """Bytes in memory: they have no name, and no digest of them is remembered."""

    @property
    def called(self) -> str:
        return ""

    def known(self) -> str | None:
        return None

    def unfinished(self) -> str | None:
        return None

    def keep(self, *, digest: str | None = None, upload: str | None = None) -> None:
        pass


@dataclass(frozen=True)
class ArrayContent(_InMemory):
    """An array as the .npy file that it would be saved as, its elements in C order: of one dimension or, if `shaped`,
    of its own. Most reductions do not ask for a shape, and the same elements are then sent once."""

    array: "NDArray[Any]"
    shaped: bool = False

    @cached_property
    def _elements(self) -> memoryview:
        import numpy as np

        little = self.array.dtype.newbyteorder("<") if self.array.dtype.kind != "V" else self.array.dtype
        return np.ascontiguousarray(self.array, dtype=little).reshape(-1).view(np.uint8).data

    @cached_property
    def _head(self) -> bytes:
        from warpfold.kernels.formats.npy import head_of

        return head_of(self.array.dtype, self.array.size, self.array.shape if self.shaped else None)

    @property
    def length(self) -> int:
        return len(self._head) + len(self._elements)

    def pieces(self, start: int = 0) -> Iterator[bytes | memoryview]:
        if start < len(self._head):
            yield self._head[start:]
        for at in range(max(0, start - len(self._head)), len(self._elements), _PIECE):
            yield self._elements[at : at + _PIECE]


@dataclass(frozen=True)
class BytesContent(_InMemory):
    """A file in memory."""

    data: memoryview

    @property
    def length(self) -> int:
        return self.data.nbytes

    def pieces(self, start: int = 0) -> Iterator[bytes | memoryview]:
        for at in range(start, self.length, _PIECE):
            yield self.data[at : at + _PIECE]


@dataclass(frozen=True)
class FileContent:
    """A file as it is. With `rehash` nothing is taken from the memory of files that were sent before."""

    path: Path
    rehash: bool = False
    memory: SentFiles = field(default_factory=lambda: SentFiles(sent_files_path()))

    @property
    def called(self) -> str:
        return self.path.name[-128:]

    @cached_property
    def _seen(self) -> FileStamp:
        return FileStamp.now(self.path)

    @property
    def length(self) -> int:
        return self._seen.size

    def pieces(self, start: int = 0) -> Iterator[bytes | memoryview]:
        left, buffer = self.length - start, memoryview(bytearray(_PIECE))
        with self.path.open("rb", buffering=0) as file:
            file.seek(start)
            while left:
                count = file.readinto(buffer[: min(_PIECE, left)])
                if not count or (count == left and not self._seen.is_still()):
                    raise WarpfoldError(f"{self.path} changed while it was read")
                left -= count
                yield buffer[:count]

    def known(self) -> str | None:
        sent = None if self.rehash else self.memory.recall(self._seen)
        return None if sent is None else sent.digest

    def unfinished(self) -> str | None:
        sent = None if self.rehash else self.memory.recall(self._seen)
        return None if sent is None else sent.upload

    def keep(self, *, digest: str | None = None, upload: str | None = None) -> None:
        self.memory.keep(self._seen, digest=digest, upload=upload)
