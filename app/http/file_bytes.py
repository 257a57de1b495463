"""Answers that are a stored file, or the bytes of it that `Range` asks for."""

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, BinaryIO

from fastapi import Header
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from warpfold.app.http.errors import RangeNotSatisfiable

ByteRange = Annotated[
    str | None,
    Header(alias="Range", description="The bytes of a stored file to send, such as `bytes=0-99`.", max_length=1024),
]
IfRange = Annotated[
    str | None,
    Header(
        description="The ETag for which `Range` is meant; if the file has another ETag, the answer is the whole file.",
        max_length=256,
    ),
]
IfNoneMatch = Annotated[str | None, Header(description="The ETag of a file that you have.", max_length=1024)]

_PIECE = 1 << 20
_RANGE = re.compile(r"bytes=(\d{0,19})-(\d{0,19})")


def _span_of(asked: str, size: int) -> tuple[int, int] | None:
    """The bytes that a `Range` asks for, from the first to behind the last; None where it is to be ignored, as one of
    several ranges may be. Raises RangeNotSatisfiable."""
    match = _RANGE.fullmatch(asked.strip())
    if match is None or not (match[1] or match[2]):
        return None
    if not match[1]:
        start, stop = max(0, size - int(match[2])), size
    else:
        start, stop = int(match[1]), min(size, int(match[2]) + 1) if match[2] else size
        if match[2] and int(match[2]) < start:
            return None
    if start >= min(stop, size):
        raise RangeNotSatisfiable(
            f"The file has {size} bytes, and the requested range lies outside of them.",
            headers={"Content-Range": f"bytes */{size}"},
        )
    return start, stop


class _FileBytesResponse(StreamingResponse):
    """Bytes `start` … `stop` − 1 of an open file, which is closed however the answer ends."""

    def __init__(self, file: BinaryIO, start: int, stop: int, *, status: int, headers: Mapping[str, str]) -> None:
        super().__init__(_pieces(file, start, stop), status, headers)
        self._file = file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._file.close()


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file whose bytes never change: its size in bytes and its SHA-256 in hexadecimal digits."""

    size: int
    sha256: str

    @property
    def etag(self) -> str:
        return f'"{self.sha256}"'

    def span(self, byte_range: str | None, if_range: str | None) -> tuple[int, int] | None:
        """The bytes that the headers `Range` and `If-Range` ask for; None for all. Raises RangeNotSatisfiable."""
        asked = byte_range if if_range is None or if_range == self.etag else None
        return None if asked is None else _span_of(asked, self.size)

    def response(self, file: BinaryIO, span: tuple[int, int] | None, headers: Mapping[str, str]) -> Response:
        """All bytes of the open file, or those of `span`. The file is closed with the answer."""
        start, stop = (0, self.size) if span is None else span
        digest = base64.b64encode(bytes.fromhex(self.sha256)).decode()
        described = {
            **headers,
            "ETag": self.etag,
            "Accept-Ranges": "bytes",
            "Repr-Digest": f"sha-256=:{digest}:",
            "Content-Length": str(stop - start),
        }
        if span is not None:
            described["Content-Range"] = f"bytes {start}-{stop - 1}/{self.size}"
        return _FileBytesResponse(file, start, stop, status=200 if span is None else 206, headers=described)


def _pieces(file: BinaryIO, start: int, stop: int) -> Iterator[bytes]:
    file.seek(start)
    while start < stop:
        piece = file.read(min(_PIECE, stop - start))
        if not piece:
            raise OSError(f"{file.name} is shorter than it was stored")
        start += len(piece)
        yield piece
