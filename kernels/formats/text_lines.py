"""Lines of text, compiled: the columns of a block whose words are decimal numbers, or are taken as they are, at several
times the speed of a parser for any text. Words of other columns are read over, eight bytes at a time."""

# ruff: noqa: PLR0917 - compiled calls are positional

from typing import Any

import numba
import numpy as np
from llvmlite import ir

from warpfold.kernels.formats.text_numbers import byte, decimal, integer
from warpfold.kernels.machine.jit import intrinsic, jit

_types: Any = numba.types

NOT_PLAIN = -1
"""The answer of `scan` for a block that needs another parser."""

DOUBT = 4
"""The words of a doubt: the place among the wanted columns, the row, and where its word begins and ends."""

FLOAT, INTEGER, WORD, KEY = 0, 1, 2, 3
"""What the words of a column become: bits of float64, integers, where the word begins and ends, or integers without
leading zeros."""

_MAGNITUDE = np.int64((1 << 63) - 1)
_ONES, _TOPS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)


@intrinsic
def _trailing_zeros(context: Any, word: Any) -> Any:
    """How many zeros stand behind the last bit of a word that is not 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return _types.int64(_types.uint64), generate


@intrinsic
def _eight(context: Any, address: Any) -> Any:
    """Eight bytes of memory as a word."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = builder.load(builder.inttoptr(arguments[0], ir.IntType(64).as_pointer()))
        word.align = 1
        return word

    return _types.uint64(_types.int64), generate


@jit
def _end_of_word(text: Any, size: Any, at: Any, ends: Any, delimiters: Any) -> Any:
    """Where a word ends that has not ended before `at`. `delimiters` is eight times the delimiter.

    Of eight bytes at a time only the first is looked at that is below 45, as both ends of a line and any quote are, or
    that is a delimiter.
    """
    while at + 8 <= size:
        word = _eight(text + at)
        other = word ^ delimiters
        below = (word - _ONES * np.uint64(45)) & ~word
        below |= (other - _ONES) & ~other
        below &= _TOPS
        if below == 0:
            at += 8
            continue
        at += _trailing_zeros(below) >> 3
        if ends[byte(text + at)]:
            return at
        at += 1
    while not ends[byte(text + at)]:
        at += 1
    return at


@jit
def _end_of_quoted(text: Any, size: Any, at: Any, quote: Any) -> Any:
    """Where a word ends that begins at `at` with a quote; NOT_PLAIN where its quotes have no end."""
    while byte(text + at) == quote:  # two quotes stand for one
        at += 1
        while at < size and byte(text + at) != quote:
            at += 1
        at += 1
        if at >= size:
            return NOT_PLAIN
    return at


@jit
def _word(text: Any, size: Any, at: Any, ends: Any, nulls: Any, delimiters: Any, quote: Any) -> Any:
    """Where a word ends that begins at `at`, or NOT_PLAIN; whether it stands as it is, without quotes in it, and is
    surely no null; and its place: where it begins, times 2**32, and where it ends."""
    if byte(text + at) == quote:
        end = _end_of_quoted(text, size, at, quote)
        first = at + 1
        while first < end and byte(text + first) != quote:
            first += 1
        return end, first == end - 1, ((at + 1) << 32) | (end - 1)
    end, first = _end_of_word(text, size, at, ends, delimiters), byte(text + at)
    return end, end > at and end - at > nulls[first], (at << 32) | end


@intrinsic
def _set_bits(context: Any, word: Any) -> Any:
    """How many bits of a word are set."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return _types.uint64(_types.uint64), generate


@jit
def most_lines(text: Any, size: Any, quote: Any) -> Any:
    """At least as many as there are line feeds among the bytes at the address `text`, and whether one of the bytes is
    `quote`, which is beyond all bytes where there is none: of eight bytes at a time, one behind a line feed may be
    taken for another one."""
    lines, whole, quotes = np.uint64(0), size & ~7, np.uint64(0)
    marks = _ONES * np.uint64(quote)
    for at in range(0, whole, 8):
        word = _eight(text + at)
        other = word ^ (_ONES * np.uint64(10))
        lines += _set_bits((other - _ONES) & ~other & _TOPS)
        other = word ^ marks
        quotes |= (other - _ONES) & ~other & _TOPS
    for at in range(whole, size):
        lines += np.uint64(byte(text + at) == 10)
        quotes |= np.uint64(byte(text + at) == quote)
    return np.int64(lines), quote < 256 and quotes != 0


@jit
def end_within_quotes(text: Any, size: Any, delimiter: Any, quote: Any) -> Any:
    """Whether the text of `size` bytes at the address `text` ends within quotes if it begins with a cell, and if it
    begins within the quotes of one (`text_quotes.py` says which quotes count; `quote` is the byte of one)."""
    outside, inside, ended_outside, ended_inside = False, True, False, False
    quotes, at = _ONES * np.uint64(quote), 0
    while at < size:
        if at + 8 <= size:
            other = _eight(text + at) ^ quotes
            marks = (other - _ONES) & ~other & _TOPS
            if marks == 0:
                at += 8
                continue
            at += _trailing_zeros(marks) >> 3
        if byte(text + at) == quote:
            before = byte(text + at - 1) if at > 0 else np.uint8(10)
            begins = before in (delimiter, 10, 13)
            doubled = before == quote
            counts = outside or begins or (doubled and ended_outside)
            ended_outside = outside
            outside = outside != counts
            counts = inside or begins or (doubled and ended_inside)
            ended_inside = inside
            inside = inside != counts
        at += 1
    return outside, inside


@jit
def copy_words(text: Any, places: Any, offsets: Any, words: Any) -> None:
    """Copy the words at `places`, as `scan` gives them, to `words` (uint8), word i from offsets[i] to
    offsets[i + 1]."""
    for row in range(places.size):
        begin, to = text + (places[row] >> 32), offsets[row]
        for at in range(offsets[row + 1] - to):
            words[to + at] = byte(begin + at)


@jit
def scan(  # noqa: PLR0912 - a call for each word, which Numba does not inline, takes a third of the time
    text: Any, size: Any, start: Any, delimiter: Any, quote: Any, point: Any, ends: Any, nulls: Any, width: Any,
    wanted: Any, kinds: Any, bits: Any, doubts: Any,
) -> Any:  # fmt: skip
    """Read the rows of a text from its byte `start` on; returns how many rows there are, how many of their words are
    doubtful, and the bits of the largest magnitude of a FLOAT; or NOT_PLAIN, 0 and 0. The text lies at the address
    `text`, has `size` bytes, and ends with a line feed.

    A row has `width` words. Those of the columns `wanted` (ascending) go to `bits` (int64, shape (wanted, rows)), as
    `kinds` (FLOAT, INTEGER, WORD or KEY) says; the place of a word is where it begins times 2**32, and where it ends.
    `quote` is the byte around quoted words, beyond all bytes where there is none, and `point` the one before a
    fraction. `ends` (shape (256,)) is true for the bytes that end a word: the delimiter, both ends of a line, and the
    quote. `nulls` (int64, shape (256,)) has the length of the longest null that begins with a byte, 0 if none does.
    `doubts` (shape (any, DOUBT)) takes the words that are not plain; a text with more of them than it has room for is
    not plain.
    """
    at, row, doubtful, largest = start, 0, 0, 0
    last, several = width - 1, width > 1
    delimiters = _ONES * np.uint64(delimiter)
    while at < size:
        ended = byte(text + at)
        if several and (ended == 10 or (ended == 13 and byte(text + at + 1) == 10)):  # an empty line is no row
            at += 1 if ended == 10 else 2
            continue
        place = 0
        for column in range(width):
            if place < wanted.size and wanted[place] == column:
                begin = at
                if kinds[place] == WORD:
                    at, plain, bits[place, row] = _word(text, size, at, ends, nulls, delimiters, quote)
                else:
                    if kinds[place] != FLOAT:
                        at, plain, bits[place, row] = integer(text, at)
                        first = begin + np.int64(byte(text + begin) == 45)
                        plain = plain and not (kinds[place] == KEY and byte(text + first) == 48 and at > first + 1)
                    else:
                        at, plain, bits[place, row] = decimal(text, at, point)
                        largest = max(largest, bits[place, row] & _MAGNITUDE)
                    if not (plain and ends[byte(text + at)]):
                        plain, at = False, _end_of_word(text, size, at, ends, delimiters)
                if not plain:
                    if doubtful == doubts.shape[0]:
                        return NOT_PLAIN, 0, 0
                    doubt = doubts[doubtful]
                    doubt[0], doubt[1], doubt[2], doubt[3] = place, row, begin, at
                    doubtful += 1
                place += 1
            elif byte(text + at) == quote:
                at = _end_of_quoted(text, size, at, quote)
            else:
                at = _end_of_word(text, size, at, ends, delimiters)
            if at == NOT_PLAIN:
                return NOT_PLAIN, 0, 0
            if byte(text + at) == 13 and byte(text + at + 1) == 10:
                at += 1
            # A quote within a word, or another number of words, needs another parser.
            if byte(text + at) != (10 if column == last else delimiter):
                return NOT_PLAIN, 0, 0
            at += 1
        row += 1
    return row, doubtful, largest
