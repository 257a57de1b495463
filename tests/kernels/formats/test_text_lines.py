"""Columns of numbers in lines of text."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpfold.kernels.formats.text_lines import DOUBT, FLOAT, NOT_PLAIN, WORD, copy_words, most_lines, scan

MARKS = ord(","), ord('"'), ord(".")
ENDS = np.zeros(256, np.bool_)
ENDS[[*b',\r\n"']] = True
NULLS = np.zeros(256, np.int64)
NULLS[[*b"Nn#"]] = 4


def of_rows(text: bytes, width: int, wanted: list[int], room: int = 8) -> tuple[int, list[list[float]], int]:
    bits, doubts = np.zeros((len(wanted), 64), np.int64), np.zeros((room, DOUBT), np.int64)
    kinds = np.full(len(wanted), FLOAT)
    array = np.frombuffer(text, np.uint8)
    rows, doubtful, _ = scan(
        array.ctypes.data,
        array.size,
        0,
        ord(","),
        ord('"'),
        ord("."),
        ENDS,
        NULLS,
        width,
        np.array(wanted),
        kinds,
        bits,
        doubts,
    )
    return rows, bits.view(np.float64)[:, : max(rows, 0)].tolist(), doubtful


def test_wanted_columns_are_found_between_others() -> None:
    assert of_rows(b"a,1,b,2\n\r\nc,3,,4\r\n", 4, [1, 3]) == (2, [[1, 3], [2, 4]], 0)
    assert of_rows(b'a long word (with a bracket),1,"a "" quote, and a comma",2\n', 4, [1, 3]) == (1, [[1], [2]], 0)


@pytest.mark.parametrize("text", [b"1,2\n1\n", b"1,2\n1,2,3\n", b'1,"2"\n', b"1,2\r1,2\n", b'"1"1,2\n', b'"1\n,2\n'])
def test_rows_of_other_lengths_and_odd_quotes_are_not_plain(text: bytes) -> None:
    assert of_rows(text, 2, [1])[0] == NOT_PLAIN


def test_a_text_with_many_doubts_is_not_plain() -> None:
    assert of_rows(b"x\ny\n", 1, [0], room=2) == (2, [[0, 0]], 2)
    assert of_rows(b"x\ny\nz\n", 1, [0], room=2)[0] == NOT_PLAIN


@given(st.binary(max_size=100), st.integers(0, 20))
def test_the_room_for_lines_is_enough_and_not_much_more(text: bytes, fed: int) -> None:
    text += b"\n" * fed
    array = np.frombuffer(text + b"x", np.uint8)
    lines = text.count(b"\n")
    most, quoted = most_lines(array.ctypes.data, len(text), ord('"'))
    assert lines <= most <= lines + text.count(b"\x0b")
    assert quoted == (b'"' in text)


def test_the_largest_magnitude_of_the_floats_of_a_text_is_told() -> None:
    array, bits = np.frombuffer(b"1.5,9\n-7e3,99999\n2,3\n", np.uint8), np.zeros((1, 8), np.int64)
    doubts = np.zeros((8, DOUBT), np.int64)
    *_, largest = scan(
        array.ctypes.data,
        array.size,
        0,
        ord(","),
        ord('"'),
        ord("."),
        ENDS,
        NULLS,
        2,
        np.array([0]),
        np.array([FLOAT]),
        bits,
        doubts,
    )
    assert np.int64(largest).view(np.float64) == 7e3


def words_of(lines: bytes) -> tuple[list[bytes], list[bytes]]:
    """The words of the first column as they are copied, and the doubtful words."""
    text = np.frombuffer(lines, np.uint8)
    bits, doubts = np.zeros((1, 64), np.int64), np.zeros((8, DOUBT), np.int64)
    address = text.ctypes.data
    rows, doubtful, _ = scan(
        address,
        text.size,
        0,
        ord(","),
        ord('"'),
        ord("."),
        ENDS,
        NULLS,
        2,
        np.array([0]),
        np.array([WORD]),
        bits,
        doubts,
    )
    places = bits[0, :rows]
    offsets = np.concatenate([[0], np.cumsum((places & 0xFFFFFFFF) - (places >> 32))]).astype(np.int32)
    words = np.empty(offsets[-1], np.uint8)
    copy_words(address, places, offsets, words)
    copied = [words[start:stop].tobytes() for start, stop in pairwise(offsets)]
    return copied, [lines[begin:end] for begin, end in doubts[:doubtful, 2:].tolist()]


def test_words_are_copied_without_their_quotes() -> None:
    assert words_of('north,1\n"a, b",2\r\n"",3\nZürich,4\n'.encode()) == (
        [b"north", b"a, b", b"", "Zürich".encode()],
        [],
    )


def test_words_that_may_be_nulls_and_quotes_between_quotes_are_doubtful() -> None:
    lines = b',1\nNA,2\nnull,3\nnorth,4\n#N/A,5\n"a ""b""",6\nNorth,7\n"NA",8\n'
    assert words_of(lines)[1] == [b"", b"NA", b"null", b"#N/A", b'"a ""b"""']
