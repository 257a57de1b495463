"""The head of a .npy file as it is written. It is read without NumPy, for which a short command that sends a small file
does not wait; `npy.py` makes NumPy's dtype of it.
"""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, BinaryIO

from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput

MOST_HEAD_BYTES = 10_000
"""The longest head that is read, without the 12 bytes before it: NumPy's own limit. 64 dimensions take 1,500 bytes."""

_MAGIC = b"\x93NUMPY"
_MAGIC_LENGTH = len(_MAGIC) + 2
_LENGTHS = {(1, 0): "<H", (2, 0): "<I"}
_NAMES = ("descr", "fortran_order", "shape")
_TRUTH = {"True": True, "False": False}
_MOST_DIGITS = 20
_TOKEN = re.compile(
    r"""[ \t\r\n\f]*(?:
        [uU]?'(?P<single>[^'"\\\n]*)' | [uU]?"(?P<double>[^'"\\\n]*)"
        | (?P<number>-?(?:0|[1-9][0-9]*))L?(?![0-9A-Za-z_.])
        | (?P<truth>True|False)(?![0-9A-Za-z_.])
        | (?P<mark>[{}()\[,:])
        | (?P<end>\Z)
    )""",
    re.VERBOSE,
)
_NO_TUPLE = "the shape in its head is no tuple of whole numbers"
_FIELD = re.compile(r"\(\s*[uU]?['\"]([^'\"\\]{1,64})['\"]")
_MOST_FIELDS = 8
_PLAIN = {"b1": ("bool", "?"), "f2": ("float16", "e"), "f4": ("float32", "f"), "f8": ("float64", "d")} | {
    f"{kind}{size}": (f"{name}{8 * size}", letter)
    for kind, name, letters in (("i", "int", "bhiq"), ("u", "uint", "BHIQ"))
    for size, letter in zip((1, 2, 4, 8), letters, strict=True)
}
"""The dtypes of numbers as a head writes them, behind the byte order: their names here, and those of `struct`."""


@dataclass(frozen=True, slots=True)
class WrittenHead:
    """What the head of an array says, and where its data begins. `descr` is the dtype as NumPy writes it."""

    shape: tuple[int, ...]
    fortran_order: bool
    descr: str
    offset: int

    @property
    def plain(self) -> str | None:
        """The name of the dtype, if it is one of plain numbers."""
        order, kind = self.descr[:1], self.descr[1:]
        return _PLAIN[kind][0] if order in ("<", ">", "|") and kind in _PLAIN else None

    @property
    def dtype(self) -> str:
        """What NumPy prints for the dtype of plain numbers: the name, or of the other byte order how it is written."""
        return self.descr if self.descr[0] == ">" and self.descr[2:] != "1" else str(self.plain)

    @property
    def count(self) -> int:
        """The number of elements."""
        return prod(self.shape)


def written_head(file: BinaryIO) -> WrittenHead:
    """The head at the start of `file`, which is left behind it. At most MOST_HEAD_BYTES and 12 bytes are read. Raises
    InvalidInput."""
    descr, fortran_order, shape = parsed(head_text(file))
    return WrittenHead(shape, fortran_order, descr, file.tell())


def plain_values(file: BinaryIO, head: WrittenHead) -> list[Any] | None:
    """The numbers behind a head of plain ones, as Python's; None where the file has not all that its head promises."""
    assert head.plain is not None, head.descr
    kind = _PLAIN[head.descr[1:]][1]
    data = file.read(head.count * DTYPES[head.plain].itemsize)
    order = head.descr[0].replace("|", "<")
    form = f"{order}{head.count}{kind}"
    return list(struct.unpack(form, data)) if len(data) == struct.calcsize(form) else None


def parsed(text: str) -> tuple[str, bool, tuple[int, ...]]:
    """The dtype, the order and the shape that a head says. Raises InvalidInput."""
    return _Parser(text).fields()


def is_npy(first: bytes | bytearray) -> bool:
    """Whether a file that begins with these bytes says that it is a .npy file."""
    return first.startswith(_MAGIC)


def head_text(file: BinaryIO) -> str:
    """The head as it is written, bounded before it is read."""
    first = file.read(_MAGIC_LENGTH)
    if not first:
        raise broken("it is empty")
    if len(first) < _MAGIC_LENGTH or not is_npy(first):
        raise broken("it does not begin as one")
    version = (first[-2], first[-1])
    if version not in _LENGTHS:
        # Version 3.0 exists for structured dtypes with field names beyond Latin-1, and only for them.
        raise broken("its version of the format is for records only")
    width = struct.calcsize(_LENGTHS[version])
    field = file.read(width)
    if len(field) < width:
        raise broken("it ends within its head")
    (length,) = struct.unpack(_LENGTHS[version], field)
    if length > MOST_HEAD_BYTES:
        raise broken(f"its head claims {length} bytes, and that of an array of numbers has at most {MOST_HEAD_BYTES}")
    written = file.read(length)
    if len(written) < length:
        raise broken("it ends within its head")
    return written.decode("latin-1")


class _Parser:
    """Reads `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }` in any order, with single or double quotes,
    and the L behind the numbers of Python 2."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._split()
        self._now: object = next(self._tokens, _Mark(""))

    def fields(self) -> tuple[str, bool, tuple[int, ...]]:
        values: dict[str, object] = {}
        self._take("{")
        while self._now != _Mark("}"):
            name = self._next()
            if not isinstance(name, str) or name not in _NAMES:
                raise broken(f"its head may hold {', '.join(_NAMES)} and nothing else")
            if name in values:
                raise broken(f"its head says {name} twice")
            self._take(":")
            values[name] = self._value()
            if self._now != _Mark("}"):
                self._take(",")
        self._take("}")
        self._take("")
        match values:
            case {"descr": str(descr), "fortran_order": bool(order), "shape": tuple(shape)}:
                return descr, order, shape
            case {"descr": _, "fortran_order": _, "shape": _}:
                raise broken("its head needs a dtype's name as descr, a truth value as fortran_order, a tuple as shape")
        raise broken(f"its head lacks {', '.join(name for name in _NAMES if name not in values)}")

    def _value(self) -> object:
        if self._now == _Mark("["):
            names = _FIELD.findall(self._text)
            more = ", …" if len(names) > _MOST_FIELDS else ""
            raise InvalidInput(f"holds records with the fields {', '.join(names[:_MOST_FIELDS])}{more}, not numbers")
        return self._lengths() if self._now == _Mark("(") else self._next()

    def _lengths(self) -> tuple[int, ...]:
        self._take("(")
        lengths: list[int] = []
        comma = True
        while (token := self._next()) != _Mark(")"):
            if not comma or not isinstance(token, int):
                raise broken(_NO_TUPLE)
            lengths.append(token)
            comma = self._now == _Mark(",")
            if comma:
                self._next()
        if len(lengths) == 1 and not comma:
            raise broken(_NO_TUPLE)
        return tuple(lengths)

    def _next(self) -> object:
        taken, self._now = self._now, next(self._tokens, _Mark(""))
        return taken

    def _take(self, mark: str) -> None:
        if self._next() != _Mark(mark):
            raise broken("its head is not written as NumPy writes one")

    def _split(self) -> Iterator[object]:
        at = 0
        while (token := _TOKEN.match(self._text, at)) is not None:
            at = token.end()
            match token.lastgroup:
                case "number":
                    yield _number(token["number"])
                case "truth":
                    yield _TRUTH[token["truth"]]
                case "single" | "double":
                    yield token[token.lastgroup]
                case "mark":
                    yield _Mark(token["mark"])
                case _:
                    return
        raise broken("its head is not written as NumPy writes one")


@dataclass(frozen=True, slots=True)
class _Mark:
    """A bracket, comma or colon; empty at the end."""

    sign: str


def _number(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise InvalidInput(f"has an impossible shape, with a length of {len(digits)} digits")
    return int(digits)


def broken(why: str) -> InvalidInput:
    """What a head that is not whole is refused with."""
    return InvalidInput(f"is not a whole .npy file: {why}")
