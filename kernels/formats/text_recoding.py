"""Text in other encodings than UTF-8, and text with lines of comments, as rows of UTF-8: decoded as it is read, in
bounded memory."""

import codecs
import re
from typing import Any

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.dialect import Dialect
from warpfold.kernels.formats.text_quotes import ends_within

_READ_BYTES = 1 << 20
_LINE_END = re.compile(rb"\r\n|\r|\n")

LONGEST_LINE = 1 << 22
"""The most bytes of a line."""


class RecodedText:
    """A stream of UTF-8 without a mark and without comments, of a stream of text in a dialect."""

    def __init__(self, stream: Any, dialect: Dialect) -> None:
        self._stream, self._dialect = stream, dialect
        self._decoder = codecs.getincrementaldecoder(dialect.encoding)()
        self._comment = dialect.comment.encode()
        self._ready, self._ended, self._begun = bytearray(), False, False
        self._rest = b""
        """The line whose end was not read yet."""
        self._skipping, self._within = False, False
        self._before_comment = re.compile(rb"(?:\r\n|\r|\n)(?=%b)" % re.escape(self._comment))

    def read(self, count: int) -> bytes:
        """The next `count` bytes, fewer only at the end. Raises InvalidInput where bytes are not of the encoding."""
        while len(self._ready) < count and not self._ended:
            read = self._stream.read(_READ_BYTES)
            self._ended = not read
            self._ready += self._kept(self._decoded(read), ended=self._ended)
        taken = bytes(self._ready[:count])
        del self._ready[:count]
        return taken

    def _decoded(self, read: bytes) -> bytes:
        try:
            text = self._decoder.decode(read, not read)
        except UnicodeDecodeError as error:
            raise InvalidInput(
                f"is not in {self._dialect.encoding}, as its byte {error.object[error.start]:#04x} shows: `encoding` "
                "says what the text is in, such as latin-1 or cp1252",
                "encoding",
            ) from None
        if not self._begun and text:
            text, self._begun = text.removeprefix("\ufeff"), True
        return text.encode()

    def _kept(self, text: bytes, *, ended: bool) -> bytes:
        """The text without its comments. A line that begins within quotes is none, whatever it begins with."""
        if not self._comment:
            return text
        text, self._rest = self._rest + text, b""
        if text.endswith(b"\r") and not ended:  # a line feed may follow
            text, self._rest = text[:-1], b"\r"
        kept, at = bytearray(), 0
        while at < len(text):
            if self._skipping or (not self._within and text.startswith(self._comment, at)):
                end = _LINE_END.search(text, at)
                self._skipping, at = end is None, len(text) if end is None else end.end()
                continue
            following = self._before_comment.search(text, at)
            stop = following.end() if following is not None else len(text)
            if following is None and not ended:
                stop = max(text.rfind(b"\n", at), text.rfind(b"\r", at)) + 1
                if not stop:  # the end of its line tells more
                    self._rest = text[at:] + self._rest
                    break
            lines = text[at:stop]
            if self._dialect.quote and self._dialect.quote.encode() in lines:
                self._within = ends_within(memoryview(lines), self._dialect, within=self._within)
            kept += lines
            at = stop
        if len(self._rest) > LONGEST_LINE:
            raise line_too_long(LONGEST_LINE)
        return bytes(kept)


def line_too_long(most: int) -> InvalidInput:
    """The error about a line of more than so many bytes."""
    return InvalidInput(
        f"cannot be read as a table of text: a line has more than {most:,} bytes, or a quote that "
        "begins a cell has no end"
    )
