"""How a text is written, as its beginning tells it where the request does not: the delimiter, the quote, the decimal
mark, what groups digits, the encoding, comments, and whether the first row has names.

No number may change in silence. Where two readings are possible the text is refused, with the option that decides; a
column whose numbers have two readings is refused where it is asked for as numbers. A later word that does not fit the
reading is an error, as any word that is no number.
"""

import csv
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from io import BytesIO, StringIO
from itertools import islice, product

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.dialect import SPACES, Dialect, TextOptions
from warpfold.kernels.formats.text_recoding import RecodedText

HEAD_BYTES = 1 << 12
"""What is looked at of a text that is written as most are."""

SAMPLE_BYTES = 1 << 16
"""What is looked at of others."""

_MOST_BYTES = 1 << 22
"""What is looked at for the end of a first line that is long."""

_MOST_ROWS = 1000
_DELIMITERS = ",;\t|"
_MARKS = ",.' " + SPACES[1:]
_UTF8, _UTF16_LE, _UTF16_BE = b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"
_VALUE = re.compile(r"[+-]?(?:[0-9]|[.,][0-9])[0-9.,' eE+-]*|[0-9]{4}-[0-9]{2}-[0-9]{2}.*|(?i:true|false)", re.DOTALL)
_INTEGER = re.compile(r"[+-]?[0-9]+")
_LOOSE = re.compile(rf"[+-]?[0-9.,'{SPACES}]*[0-9][0-9.,'{SPACES}]*(?:[eE][+-]?[0-9]+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Sniffed:
    """A dialect, and the columns whose numbers have two readings in it, each by its place with such a word."""

    dialect: Dialect
    doubtful: Mapping[int, str] = field(default_factory=dict)


def sniffed(read: Callable[[int], bytes], options: TextOptions) -> Sniffed:
    """How a text is written. `read` gives so many bytes of its beginning, or all if it has fewer. Raises InvalidInput
    naming the option that would decide."""
    head = read(HEAD_BYTES)
    if _is_plain(head, options):
        return Sniffed(Dialect(options.delimiter or options.of_name or ",", options.null_words, options.words))
    raw = read(SAMPLE_BYTES)
    if len(raw) == SAMPLE_BYTES and not re.search(rb"[\r\n]", raw):
        raw = read(_MOST_BYTES)
    encoding = _encoding(raw, options.encoding)
    text = raw.decode(encoding, "replace").removeprefix("\ufeff")
    if len(raw) >= SAMPLE_BYTES:  # the last line is not whole
        text = text[: max(text.rfind("\n"), text.rfind("\r")) + 1] or text
    comment = _comment(text) if options.comment is None else options.comment
    quote = _quote(text, comment) if options.quote is None else options.quote
    delimiter, rows = _rows(text, Dialect(quote=quote, comment=comment), options)
    header = _has_names(rows) if options.header is None else options.header
    dialect = Dialect(delimiter, options.null_words, options.words, quote, ".", "", encoding, comment, header)
    return _with_numbers(dialect, _columns(rows[int(header) :], dialect), options)


def _is_plain(head: bytes, options: TextOptions) -> bool:
    """Whether a text is surely written in UTF-8, with the usual delimiter, without quotes in its beginning but around
    names, and with names that are no numbers. Then nothing else needs to be known."""
    chosen = (options.quote, options.decimal, options.thousands, options.encoding, options.comment, options.header)
    delimiter = options.delimiter or options.of_name or ","
    if any(option is not None for option in chosen) or delimiter not in ",\t":
        return False
    others = b"'\0,;\t|".replace(delimiter.encode(), b"")
    if head.startswith((b"#", _UTF16_LE, _UTF16_BE)) or any(other in head for other in others):
        return False
    first, *below = re.split(rb"[\r\n]", head.removeprefix(_UTF8), maxsplit=1)
    if not first or not below or first.count(b'"') % 2 or b'"' in below[0]:
        return False
    rows = _split(first.decode("utf-8", "replace"), Dialect(delimiter))
    return bool(rows) and not any(_VALUE.fullmatch(cell.strip()) for cell in rows[0])


def _encoding(raw: bytes, asked: str | None) -> str:
    marked = {_UTF8: "utf-8", _UTF16_LE: "utf-16-le", _UTF16_BE: "utf-16-be"}.get(
        raw[:3] if raw.startswith(_UTF8) else raw[:2]
    )
    if asked == "utf-16" and marked is None:
        raise InvalidInput("has no mark of UTF-16: `encoding` says utf-16-le or utf-16-be", "encoding")
    if marked is not None and asked is not None and not marked.startswith(asked):
        raise InvalidInput(f"begins with the mark of {marked}, and `encoding` says {asked}", "encoding")
    if asked is None and marked is None and b"\0" in raw:
        why = "holds zero bytes: of UTF-16 without a mark `encoding` says utf-16-le or utf-16-be"
        raise InvalidInput(why, "encoding")
    return marked or asked or "utf-8"


def _comment(text: str) -> str:
    """What begins a comment. Lines that begin with # and stand before all others are comments; the last of them is the
    row of names where it has as many cells as the first row."""
    lines = text.lstrip("\r\n").splitlines()
    above = next((number for number, line in enumerate(lines) if not line.startswith("#")), len(lines))
    named = 0 < above < len(lines) and _are_names(lines[above - 1], lines[above])
    if above == named:
        return ""
    if not named:
        return "#"
    marks = re.match(r"##?", lines[0])
    assert marks is not None, "it begins so"
    if lines[above - 1].startswith(marks[0]):
        raise InvalidInput(
            "begins with lines of #, of which the last may be a comment or the names of the columns: `comment` says "
            "what begins a comment, and is empty where nothing does",
            "comment",
        )
    return marks[0]


def _are_names(line: str, following: str) -> bool:
    """Whether a line that begins with # may have the names of the columns of the line that follows."""
    return any(
        line.count(delimiter) == following.count(delimiter) > 0 for delimiter in _DELIMITERS if delimiter in following
    )


def _quote(text: str, comment: str) -> str:
    """A single quote where no double quote occurs, where every single quote is at an end of a cell, and where as many
    cells are quoted as there are rows below the first."""
    if '"' in text or "'" not in text:
        return '"'
    if comment:
        text = "\n".join(line for line in text.splitlines() if not line.startswith(comment))
    around = re.findall(r"(?:^|[,;\t|\n\r])'[^'\r\n]*'(?=[,;\t|\n\r]|$)", text)
    return "'" if len(around) * 2 == text.count("'") and len(around) >= len(text.splitlines()) - 1 else '"'


def _rows(text: str, dialect: Dialect, options: TextOptions) -> tuple[str, list[list[str]]]:
    """The delimiter, and the rows of cells that it makes."""
    known = options.delimiter or options.of_name
    candidates = [known] if known else [each for each in _DELIMITERS if each in text] or [","]
    split = {each: _split(text, replace(dialect, delimiter=each)) for each in candidates}
    if known:
        return known, split[known]
    widths = {each: {len(row) for row in rows} for each, rows in split.items()}
    fitting = [each for each in candidates if len(widths[each]) == 1 and max(widths[each]) > 1]
    if len(fitting) > 1:
        either = " or ".join(map(repr, fitting))
        raise InvalidInput(f"has rows of cells by {either}: `delimiter` says what stands between cells", "delimiter")
    delimiter = fitting[0] if fitting else ","
    return delimiter, split[delimiter] if delimiter in split else _split(text, dialect)


def _split(text: str, dialect: Dialect) -> list[list[str]]:
    if dialect.comment:
        text = RecodedText(BytesIO(text.encode()), dialect).read(len(text) * 4).decode()
    lines, quote = StringIO(text, newline=""), dialect.quote
    if quote:
        reader = csv.reader(lines, delimiter=dialect.delimiter, quotechar=quote)
    else:
        reader = csv.reader(lines, delimiter=dialect.delimiter, quoting=csv.QUOTE_NONE)
    try:
        return [row for row in islice(reader, _MOST_ROWS) if row]
    except csv.Error:  # a cell is too long for a sample
        return []


def _columns(rows: Sequence[Sequence[str]], dialect: Dialect) -> list[list[str]]:
    """The words of each column that are no nulls."""
    width, nulls = max(map(len, rows), default=0), {*dialect.nulls_of_numbers}
    return [[word for row in rows if at < len(row) and (word := row[at].strip()) not in nulls] for at in range(width)]


def _has_names(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row has the names of the columns: it has where no cell of it may be a value, and where a cell
    of it is no value while all others of the column are. Raises InvalidInput where it may be either."""
    if not rows:
        return True
    first, columns = rows[0], _columns(rows[1:], Dialect())
    are_values = [bool(_VALUE.fullmatch(cell.strip())) for cell in first]
    below = [bool(words) and all(map(_VALUE.fullmatch, words)) for words in columns]
    below += [not columns] * (len(first) - len(below))
    if any(beneath and not value and cell for cell, value, beneath in zip(first, are_values, below, strict=False)):
        return True
    if any(value and beneath for value, beneath in zip(are_values, below, strict=False)):
        cells = ", ".join(map(repr, first[:4])) + (", …" if len(first) > 4 else "")
        raise InvalidInput(
            f"begins with a row of {cells[:120]}, which may be names or values: `header` says whether the first row "
            "has the names of the columns",
            "header",
        )
    return True


def _with_numbers(dialect: Dialect, columns: Sequence[Sequence[str]], options: TextOptions) -> Sniffed:
    """The same dialect with the marks of its numbers, and the columns that have two readings."""
    readings = {at: _readings(words, options) for at, words in enumerate(columns) if _may_be_numbers(words)}
    settled = [each[0] for each in readings.values() if len(each) == 1]
    decimal = options.decimal or {".": ",", ",": "."}.get(options.thousands or "")
    if decimal is None:
        decimal = "," if {mark for mark, _ in settled if mark} == {","} else "."
    # Where no cell of semicolons hints at another country, 1.234 is what it is to computers.
    usual = ".", ""
    soft = options.decimal is None and dialect.delimiter != ";" and decimal == "."
    doubtful = {at: each for at, each in readings.items() if len(each) > 1 and not (soft and usual in each)}
    groups = {group for mark, group in settled if group and mark in ("", decimal)}
    thousands = groups.pop() if options.thousands is None and len(groups) == 1 else options.thousands or ""
    words = {at: next(word for word in columns[at] if not word.isdecimal()) for at in doubtful}
    return Sniffed(replace(dialect, decimal=decimal, thousands=thousands), words)


def _may_be_numbers(words: Sequence[str]) -> bool:
    """Whether words are numbers in some reading, and one of them has a mark."""
    return any(mark in word for word in words[:_MOST_ROWS] for mark in _MARKS) and all(map(_LOOSE.fullmatch, words))


def _readings(words: Sequence[str], options: TextOptions) -> list[tuple[str, str]]:
    """The readings in which all words are numbers, and in which they are different numbers: the decimal mark, empty
    where none occurs, and what groups digits, empty where nothing does."""
    decimals = (options.decimal,) if options.decimal else [each for each in ".," if each != options.thousands]
    marks = {" " if mark in SPACES else mark for mark in set("".join(words))}
    grouping = ",. '" if options.thousands is None else options.thousands
    groups = ("", *(mark for mark in grouping if mark in marks))
    by_values = dict[tuple[str, ...], tuple[str, str]]()
    for decimal, thousands in product(decimals, groups):
        reading = _reading(decimal, thousands)
        if decimal != thousands and all(map(reading.number.fullmatch, words)):
            occurs = any(decimal in word for word in words)
            by_values.setdefault(tuple(map(reading.plain, words)), (decimal if occurs else "", thousands))
    return list(by_values.values())


@cache
def _reading(decimal: str, thousands: str) -> Dialect:
    return Dialect(decimal=decimal, thousands=thousands)
