"""Receives an upload piece by piece: each piece is checked, written, and hashed by a thread behind. The head of a .npy
file is judged as soon as it has come. A file of another format is recognised by its first bytes, or as text by its
name, and judged by the job that reads it: the libraries that decode such files run in the child of a slot, never here.
"""

import io
import os
from pathlib import Path
from typing import IO

from warpfold.app.datasets.digest import FollowingDigest
from warpfold.app.datasets.repository import Contents
from warpfold.app.http.bodies import Piece
from warpfold.app.http.errors import Invalid
from warpfold.app.http.pipes import Piped
from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.npy import Head, head_of, read_head, stored_name
from warpfold.kernels.formats.npy_head import MOST_HEAD_BYTES, is_npy
from warpfold.kernels.formats.signature import Format, readable_format

_BARE = "; bare elements need their `dtype`, and a table of text a `name` that ends in .csv or .tsv"
TEXT = "text"
"""The format of a table of text, as `Format` names the others."""

_MAGIC = 8
FIRST_BYTES = MOST_HEAD_BYTES + 12
"""The head of a .npy file is checked once this many bytes have come, or all bytes if the file is shorter."""


class Intake:
    """One upload on its way into `file`. An error is raised as soon as the bytes show it. Raises Invalid, OSError."""

    def __init__(
        self, file: IO[bytes], raw: DType | None, declared: int | None, received: int = 0, *, text: bool = False
    ) -> None:
        """`raw` is the dtype of bare elements, None for a file; `declared` how many bytes the sender promised;
        `received` how many of them the file has from requests before this one. With `text` a file of no known format is
        a table of text."""
        self._descriptor = file.fileno()
        self.path = Path(file.name)
        self._raw = raw
        self._text = text
        self._declared = declared
        self._digest = FollowingDigest(self._descriptor)
        self._head: Head | None = None
        self._format: str | None = None
        self._added = 0
        self._written = received
        if raw is not None:
            self._begin_raw(raw)
        if received:
            self._look()
            self._digest.advance(self._written)

    @property
    def received(self) -> int:
        """How many bytes of the body were written."""
        return self._written - self._added

    def begin(self, first: Piece) -> int:
        """Look at the first bytes, at most FIRST_BYTES, without writing them; returns how many bytes the file is to
        have. The caller writes these bytes afterwards."""
        if self._head is None and self._format is None:
            if not first:
                raise Invalid.of("", "the body is empty")
            self._format = self._other_format(bytes(first[:FIRST_BYTES]))
            if self._format is None:
                self._head = self._begin_npy(bytes(first[:FIRST_BYTES]))
        return self._promised()

    def write(self, piece: Piece | Piped) -> None:
        """Append the next bytes to the file. Where the digest has fallen far behind, the call waits for it a little."""
        self._append(piece)
        self._look()

    def finish(self) -> Contents:
        """The received file, once all of it is on the disk."""
        self._look(whole=True)
        promised = self._promised()
        if self._written < promised:
            raise Invalid.of("", f"the upload is truncated: {promised} bytes were announced, {self._written} arrived")
        if self._format is not None:
            return Contents(self._digest.hexdigest(), self._format, (), self._written)
        assert self._head is not None
        return Contents(self._digest.hexdigest(), stored_name(self._head.dtype), self._head.shape, self._written)

    def close(self) -> None:
        """End the threads of an upload that this request does not finish."""
        self._digest.close()

    def _look(self, *, whole: bool = False) -> None:
        """Check the head once enough of it has come or the file is `whole`, and check what else is known by then."""
        enough = FIRST_BYTES if self._declared is None else min(FIRST_BYTES, self._declared)
        if self._head is None and self._format is None and (whole or self._written >= enough):
            self.begin(os.pread(self._descriptor, min(FIRST_BYTES, self._written), 0))
        if self._raw is not None and is_npy(os.pread(self._descriptor, _MAGIC, self._added)):
            raise Invalid.of("dtype", "is for bare elements, and a .npy file has a dtype of its own: leave it out")
        if (self._head is not None or self._format is not None) and self._written > self._promised():
            what = "head of the .npy file" if self._format is None else "Content-Length"
            raise Invalid.of("", f"there are more bytes than the {what} promises")

    def _begin_raw(self, dtype: DType) -> None:
        if self._declared is None:
            raise Invalid.of("Content-Length", "is needed with `dtype`: bare elements do not say how many there are")
        count, rest = divmod(self._declared, dtype.itemsize)
        if rest:
            raise Invalid.of(
                "dtype",
                f"{self._declared} bytes are not a whole number of {dtype.name} elements of {dtype.itemsize} bytes",
            )
        head = head_of(dtype.numpy, count)
        self._head = Head((count,), False, dtype.numpy.newbyteorder("<"), len(head))
        self._added = len(head)
        if self._written:
            self._written += len(head)
        else:
            self._append(head)

    def _begin_npy(self, first: bytes) -> Head:
        try:
            head = read_head(io.BytesIO(first), wider=True)
        except InvalidInput as error:
            raise Invalid.of("", f"the body {error}{'' if is_npy(first) else _BARE}") from None
        promised = head.offset + head.data_bytes
        if self._declared is not None and self._declared != promised:
            raise Invalid.of(
                "",
                f"the head of the .npy file promises {promised} bytes in all, "
                f"Content-Length {self._declared}: the file is truncated or has something behind its data",
            )
        return head

    def _other_format(self, first: bytes) -> str | None:
        """The format of a file that is not a .npy file; None where the first bytes show no format that jobs read."""
        if self._raw is not None:
            return None
        try:
            known = readable_format(io.BytesIO(first))
        except InvalidInput as error:
            raise Invalid.of("", f"the body {error}") from None
        if known is Format.NPY:
            return None
        if known is None and not self._text:
            return None
        if known is None and not _is_text(first):
            raise Invalid.of("", "the body is not a table of text: its first bytes hold zeros, as no text does")
        named = TEXT if known is None else known.value
        if self._declared is None:
            raise Invalid.of("Content-Length", f"is needed of a file of the format {named}")
        return named

    def _promised(self) -> int:
        """How many bytes the file is to have; known once its first bytes were looked at."""
        if self._head is None:
            assert self._declared is not None, "a file of another format has a declared length"
            return self._declared
        return self._head.offset + self._head.data_bytes

    def _append(self, piece: Piece | Piped) -> None:
        if isinstance(piece, Piped):
            while piece:
                self._written += piece.write_to(self._descriptor, self._written)
        else:
            view = memoryview(piece)
            while view:
                count = os.pwrite(self._descriptor, view, self._written)
                self._written += count
                view = view[count:]
        self._digest.advance(self._written)


def _is_text(first: bytes) -> bool:
    """Whether a file that begins with these bytes may be text, in UTF-8, UTF-16 or an encoding of single bytes. In text
    of UTF-16 every second byte of plain letters is 0."""
    return 0 not in first[::2] or 0 not in first[1::2]
