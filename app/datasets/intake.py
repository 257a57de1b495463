"""Takes an upload in, piece by piece: checks it, hashes it, writes it."""

import hashlib
import io
import os
from pathlib import Path
from typing import IO

from warpfold.app.datasets.repository import Contents
from warpfold.app.http.errors import Invalid
from warpfold.kernels.dtypes import DType, dtype_of
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.npy import MOST_HEAD_BYTES, Head, head_of, is_npy, read_head

_BARE = "; bare elements need their `dtype`"
FIRST_BYTES = MOST_HEAD_BYTES + 12
"""How much must be there, or be all there is, before the head of a .npy file can be judged."""


class Intake:
    """One upload on its way into `file`. What is wrong is told as soon as it shows. Raises Invalid, OSError."""

    def __init__(self, file: IO[bytes], raw: DType | None, declared: int | None) -> None:
        """`raw` is the dtype of bare elements, None for a .npy file; `declared` how many bytes the sender promised."""
        self._file = file
        self._raw = raw
        self._declared = declared
        self._hash = hashlib.sha256()
        self._head: Head | None = None
        self._written = 0
        if raw is not None:
            self._begin_raw(raw)

    def begin(self, piece: bytes | bytearray) -> int:
        """Look at the first bytes, FIRST_BYTES of them if there are so many, and write none: how many bytes the file is
        to have. They are fed afterwards."""
        if self._head is None:
            self._head = self._begin_npy(bytes(piece[:FIRST_BYTES]))
        return self._promised(self._head)

    @property
    def path(self) -> Path:
        return Path(self._file.name)

    def feed(self, piece: bytes | bytearray) -> None:
        """Take the next bytes: of a .npy file at first FIRST_BYTES of them, if there are so many."""
        if self._head is None:
            self.begin(piece)
        elif self._raw is not None and self._written == self._head.offset and is_npy(piece):
            raise Invalid.of("dtype", "is of bare elements, and the body is a .npy file with its own: leave it out")
        self._write(piece)
        if self._written > self.begin(piece):
            raise Invalid.of("", "there are more bytes than the head of the .npy file promises")

    def finish(self) -> Contents:
        """What came in, all of it on the disk."""
        if self._head is None:
            raise Invalid.of("", "the body is empty")
        promised = self._promised(self._head)
        if self._written < promised:
            raise Invalid.of("", f"the upload is truncated: {promised} bytes are promised, {self._written} came")
        self._file.flush()
        os.fsync(self._file.fileno())
        return Contents(self._hash.hexdigest(), dtype_of(self._head.dtype).name, self._head.shape, self._written)

    def _begin_raw(self, dtype: DType) -> None:
        if self._declared is None:
            raise Invalid.of("Content-Length", "is needed with `dtype`: bare elements do not say how many there are")
        count, rest = divmod(self._declared, dtype.itemsize)
        if rest:
            raise Invalid.of(
                "dtype",
                f"{self._declared} bytes are no whole number of {dtype.name} elements of {dtype.itemsize} bytes",
            )
        head = head_of(dtype, count)
        self._head = Head((count,), False, dtype.numpy.newbyteorder("<"), len(head))
        self._write(head)

    def _begin_npy(self, first: bytes) -> Head:
        try:
            head = read_head(io.BytesIO(first))
        except InvalidInput as error:
            raise Invalid.of("", f"the body {error}{'' if is_npy(first) else _BARE}") from None
        if self._declared is not None and self._declared != self._promised(head):
            raise Invalid.of(
                "",
                f"the head of the .npy file promises {self._promised(head)} bytes in all, "
                f"Content-Length {self._declared}: the file is truncated or has something behind its data",
            )
        return head

    def _promised(self, head: Head) -> int:
        return head.offset + head.data_bytes

    def _write(self, piece: bytes | bytearray) -> None:
        self._hash.update(piece)
        self._file.write(piece)
        self._written += len(piece)
