"""What columns of text hold. Text has no dtypes: the words of a column tell its type.

A word is a number if it is one in decimal or scientific form; among floats, `nan` and `inf` are numbers, too. An
integer is a number without a point and without an exponent, and no integer is rounded: pyarrow would read one beyond
int64, and all integers beside one with a plus sign, as floats. A number beyond the range of its float is an error, too:
pyarrow would read it as infinity, which only the word for infinity means here. Keys are words unless all are plain
integers, which are written as `str` writes them: 00501 and 501 are two keys.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.dialect import SPACES, Dialect
from warpfold.kernels.machine.extras import required

PRECISION = {"float": 24, "double": 53}
"""The bits of the significands of pyarrow's floats."""

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DIGIT = re.compile(r"[0-9]")
_NO_FRACTION = re.compile(r"[+-]?(?:nan|inf|infinity)$", re.IGNORECASE)
_MARK = re.compile("[.,]")
_MARKED = re.compile(rf"[+-]?[0-9]+(?:[.,'{SPACES}][0-9]+)+(?:[eE][+-]?[0-9]+)?")


@dataclass(frozen=True, slots=True)
class TextColumns:
    """Columns that are read, each with pyarrow's type. Integers among `keys` must be plain."""

    types: Mapping[str, Any]
    keys: frozenset[str] = frozenset()

    def only(self, name: str) -> "TextColumns":
        """One of the columns."""
        return TextColumns({name: self.types[name]}, self.keys)

    def by_nulls(self, dialect: Dialect) -> Iterator[tuple[dict[str, Any], Sequence[str]]]:
        """The types by which the columns are parsed, and the texts that are nulls: of all columns, or of those of
        numbers and those of words apart. Keys are parsed as words."""
        string = required("pyarrow", "tables").string()
        words = {name: string for name, kind in self.types.items() if name in self.keys or kind == string}
        numbers = {name: kind for name, kind in self.types.items() if name not in words}
        if numbers:
            yield numbers, dialect.nulls_of_numbers
        if words:
            yield words, dialect.nulls_of_words

    def as_keys(self, name: str, column: Any) -> Any:
        """A parsed column; the integers of a key of integers. Raises InvalidInput where a word is no plain integer."""
        if name not in self.keys or str(self.types[name]) == "string":
            return column
        integers = key_integers(column)
        if integers is None:
            odd = next(word for word in column.drop_null().to_pylist() if not _is_plain(word))
            raise InvalidInput(
                f"holds the key {odd[:60]!r} in column {name!r}, whose beginning holds plain integers alone; `words` "
                "may name the column, whose keys are words then",
                "words",
            )
        return integers


@dataclass(frozen=True, slots=True)
class TextTypes:
    """The types of columns that a block tells, as a schema of pyarrow. `odd` has the columns that hold integers and one
    word by which all of them would become floats, each with this word, and `doubtful` those whose numbers have two
    readings, each with such a word: it is a column of words until the request says which reading it is."""

    schema: Any
    dialect: Dialect
    odd: Mapping[str, str]
    doubtful: Mapping[str, str]

    def of_filter(self, name: str, words: Set[str]) -> Any:
        """The type by which a filter compares a column. Integers that are compared with `words` alone are words."""
        pyarrow = required("pyarrow", "tables")
        kind = self.schema.field(name).type
        is_words = self.is_unknown(name) or (name in words and pyarrow.types.is_integer(kind))
        return pyarrow.string() if is_words else kind

    def of_values(self, name: str, chosen: str | None) -> Any:
        """The type by which the values of a column are read, of which the request may have chosen the dtype. Raises
        InvalidInput naming "dtype" or "column"."""
        pyarrow = required("pyarrow", "tables")
        if chosen is not None:
            if chosen in ("float16", "bfloat16"):
                raise InvalidInput(
                    f"is text, which is not read as {chosen}: float32 holds all values of {chosen}", "dtype"
                )
            return pyarrow.type_for_alias(chosen)
        if self.is_unknown(name):
            raise InvalidInput(f"holds only nulls in the first block of column {name!r}; give its `dtype`", "dtype")
        return self.schema.field(name).type

    def why_refused(self, name: str, words: Callable[[], Any]) -> str | None:
        """Why a column that has numbers is not reduced, where one of its words is the reason; None where none is.
        `words` reads the column of the first block as words."""
        if name in self.doubtful:
            word = self.doubtful[name][:60]
            fraction, whole = (_MARK.sub(mark, word) for mark in (".", ""))
            return (
                f"holds {word!r} in column {name!r}, which is {fraction} or {whole}, as are all words before: "
                "`decimal` says what stands before fractions"
            )
        way_on = "and `null_words` a word that is no value"
        if name in self.odd:
            word = self.odd[name]
            holds = "uint64" if word.isdecimal() and (1 << 63) <= int(word) < (1 << 64) else "float64"
            return (
                f"holds {word[:60]!r} in column {name!r} of integers, which int64 does not hold, and by which "
                f"all would become floats: `dtype` may name {holds}, {way_on}"
            )
        if str(self.schema.field(name).type) != "string":
            return None
        read = [word.strip() for word in words().drop_null().to_pylist()]
        odd = [word for word in read if not (self.dialect.number.match(word) or _NO_FRACTION.match(word))]
        if odd and _MARKED.fullmatch(odd[0]):
            return (
                f"holds {odd[0][:60]!r} in column {name!r}, which is no number where {self.dialect.decimal!r} stands "
                "before fractions: `decimal` and `thousands` say how numbers are written"
            )
        if not odd or len(odd) == len(read):
            return None
        return (
            f"holds {odd[0][:60]!r} in column {name!r}, which is no number in decimal or scientific form: `column` may "
            f"name another column, {way_on}"
        )

    def is_unknown(self, name: str) -> bool:
        """Whether a column holds only nulls, as far as its block tells."""
        return bool(required("pyarrow", "tables").types.is_null(self.schema.field(name).type))


def typed(
    table: Any,
    dialect: Dialect,
    doubtful: Mapping[str, str],
    text: memoryview,
    words_of: Callable[[Sequence[str]], Any],
) -> TextTypes:
    """The types of the columns of a table that pyarrow has inferred from `text`; `words_of` reads columns of it as
    words, and `doubtful` columns are words."""
    pyarrow = required("pyarrow", "tables")
    types = pyarrow.types
    kinds = dict(zip(table.schema.names, table.schema.types, strict=True))
    integers = [name for name, kind in kinds.items() if types.is_integer(kind) and has_hexadecimals(text)]
    whole = [name for name, kind in kinds.items() if types.is_floating(kind) and _is_whole(table, name)]
    strings, odd = {*dialect.words, *doubtful}, dict[str, str]()
    if integers or whole:
        words = words_of([*integers, *whole])
        compute = required("pyarrow.compute", "tables")
        strings |= {
            name for name in integers if compute.any(compute.match_substring_regex(words.column(name), "0[xX]")).as_py()
        }
        for name in whole:
            if (word := _odd_word(plain_words(words.column(name), dialect))) is not None:
                odd[name] = word
    fields = [(field.name, pyarrow.string() if field.name in strings else field.type) for field in table.schema]
    return TextTypes(pyarrow.schema(fields), dialect, odd, doubtful)


def _is_whole(table: Any, name: str) -> bool:
    """Whether a column of floats has only whole numbers, NaN and infinity. One of several columns of a name has not."""
    if table.column_names.count(name) != 1:
        return False
    values = table.column(name).to_numpy()
    with np.errstate(invalid="ignore"):
        return bool(np.all((np.floor(values) == values) | ~np.isfinite(values)))


def _odd_word(words: Any) -> str | None:
    """The first word that int64 does not hold, if some words are integers and no word has a point or an exponent."""
    compute = required("pyarrow.compute", "tables")
    if compute.any(compute.match_substring_regex(words, r"\.|[0-9][eE]")).as_py():
        return None
    if not compute.any(compute.match_substring_regex(words, r"^\s*[+-]?[0-9]+\s*$")).as_py():
        return None
    return next((word for word in words.drop_null().to_pylist() if not _is_int64(word)), None)


def _is_int64(word: str) -> bool:
    return re.fullmatch(r"\s*-?[0-9]+\s*", word, re.ASCII) is not None and -(1 << 63) <= int(word) < 1 << 63


def _is_plain(word: str) -> bool:
    """Whether a word is an integer of int64 as `str` writes it."""
    return _is_int64(word) and str(int(word)) == word


def key_integers(words: Any) -> Any:
    """The integers that words are; None where one is no plain integer."""
    pyarrow, compute = required("pyarrow", "tables"), required("pyarrow.compute", "tables")
    try:
        integers = words.cast(pyarrow.int64())
    except pyarrow.ArrowInvalid:
        return None
    same = compute.equal(integers.cast(pyarrow.string()), words)
    return integers if compute.all(same).as_py() is not False else None


def has_hexadecimals(text: memoryview | bytes) -> bool:
    """Whether a number of text may be hexadecimal, which pyarrow reads where it reads integers."""
    content = bytes(text)
    return any(letter in content and b"0" + letter in content for letter in (b"x", b"X"))


def is_number(kind: Any) -> bool:
    """Whether a type of pyarrow, or None, is one of numbers."""
    types = required("pyarrow", "tables").types
    return kind is not None and bool(types.is_integer(kind) or types.is_floating(kind))


def plain_words(words: Any, dialect: Dialect) -> Any:
    """A column of words, with the numbers among them as they are written with a decimal point and without groups."""
    if dialect.decimal == "." and not dialect.thousands:
        return words
    pyarrow = required("pyarrow", "tables")
    plain = [None if word is None else dialect.plain(word.strip()) for word in words.to_pylist()]
    return pyarrow.chunked_array([pyarrow.array(plain, pyarrow.string())])


def ungrouped(words: Any, dialect: Dialect, kind: Any) -> bytes | None:
    """The numbers of a column of words without groups of digits, each in quotes, a line each; a null is an empty line.
    Where `kind` is None, None unless all words are numbers. Raises the error of pyarrow where one has wrong groups."""
    pyarrow, compute = required("pyarrow", "tables"), required("pyarrow.compute", "tables")
    group = f"[{SPACES}]" if dialect.thousands == " " else re.escape(dialect.thousands)
    trimmed = compute.utf8_trim_whitespace(words)
    are_grouped = compute.match_substring_regex(trimmed, group)
    are_numbers = compute.match_substring_regex(trimmed, dialect.number_pattern)
    wrong = compute.and_(are_grouped, compute.invert(are_numbers))
    if kind is None and not (compute.any(are_grouped).as_py() and compute.all(are_numbers).as_py()):
        return None
    if (at := compute.index(wrong, True).as_py()) >= 0:
        raise pyarrow.ArrowInvalid(f"CSV conversion error to {kind}: invalid value '{words[at].as_py()[:60]}'")
    plain = compute.replace_substring_regex(trimmed, group, "")
    if compute.any(compute.match_substring(plain, '"')).as_py():
        raise pyarrow.ArrowInvalid(f"CSV conversion error to {kind}: a word has a quote")
    return "\n".join("" if word is None else f'"{word}"' for word in plain.to_pylist()).encode() + b"\n"


def check_integers(name: str, words: Any) -> None:
    """Raise InvalidInput if one of the words of a column of integers is hexadecimal."""
    compute = required("pyarrow.compute", "tables")
    at = compute.index(compute.match_substring_regex(words, r"^\s*0[xX]"), True).as_py()
    if at >= 0:
        raise InvalidInput(
            f"holds {words[at].as_py()[:60]!r} in column {name!r}: numbers are written in decimal or scientific form"
        )


def beyond(column: Any, precision: int) -> NDArray[np.intp]:
    """The rows of floats above the integers that a significand of `precision` bits holds exactly."""
    values, bound = column.to_numpy(), 2.0**precision
    if values.size and -bound < values.min() and values.max() < bound:  # false where the maximum is a NaN
        return np.empty(0, np.intp)
    return np.flatnonzero(np.abs(values) >= bound)


def check_floats(name: str, words: Any, values: NDArray[Any], rows: NDArray[np.intp]) -> None:
    """Raise InvalidInput if the text of one of `rows` is an integer that a float changed, or a number beyond the
    range of the float."""
    for row in rows:
        word = words[int(row)].as_py().strip()
        if np.isinf(values[row]):
            if _DIGIT.search(word):
                raise InvalidInput(
                    f"holds {word[:60]} in column {name!r}, which is beyond the range of {values.dtype}", "dtype"
                )
        elif _INTEGER.fullmatch(word) and int(word) != int(values[row]):
            raise InvalidInput(
                f"holds {word[:60]} in column {name!r}, an integer that {values.dtype} would round; `dtype` may name "
                "int64 or uint64",
                "dtype",
            )
