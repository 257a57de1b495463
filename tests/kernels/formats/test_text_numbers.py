"""Decimal words as the nearest floats, against those of Python, which are correctly rounded."""

import struct
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from warpfold.kernels.formats.text_lines import DOUBT, FLOAT, INTEGER, scan
from warpfold.kernels.formats.text_numbers import LEAST_POWER, MOST_POWER, nearest

ENDS = np.zeros(256, np.bool_)
ENDS[[*b',\r\n"']] = True
NULLS = np.zeros(256, np.int64)


def scanned(words: list[str], *, integers: bool = False) -> tuple[list[float | int], list[int]]:
    """The values of words, one a line, and the rows of doubtful words."""
    text = np.frombuffer("".join(f"{word}\n" for word in words).encode(), np.uint8)
    bits, doubts = np.zeros((1, len(words)), np.int64), np.zeros((len(words), DOUBT), np.int64)
    wanted, kinds = np.array([0]), np.array([INTEGER if integers else FLOAT])
    marks = ord(","), ord('"'), ord(".")
    rows, doubtful, _ = scan(text.ctypes.data, text.size, 0, *marks, ENDS, NULLS, 1, wanted, kinds, bits, doubts)
    assert rows == len(words)
    return (bits if integers else bits.view(np.float64))[0].tolist(), doubts[:doubtful, 1].tolist()


def bits_of(value: float) -> bytes:
    return struct.pack("<d", value)


@settings(max_examples=300)
@given(st.integers(1, (1 << 64) - 1), st.integers(LEAST_POWER - 2, MOST_POWER + 2))
@example(9007199254740993, 0)  # ties
@example(9007199254740995, 0)
@example((1 << 64) - 1, 0)
@example(9007199254740993 * 5, -1)
@example(1448997445238699, 23)
@example(17976931348623157, 292)
@example(17976931348623159, 292)  # infinite
@example(22250738585072014, -324)
@example(5, -324)
def test_a_decimal_is_the_nearest_float_or_is_left(digits: int, power: int) -> None:
    pattern = int(nearest(np.uint64(digits), power))
    wanted = float(f"{digits}e{power}")
    if pattern >= 0:
        assert struct.pack("<q", pattern) == bits_of(wanted)
    else:
        assert wanted < 2.3e-308 or wanted == np.inf, "subnormal and infinite values alone are left"


@settings(max_examples=200)
@given(st.floats(2.0**-1000, 2.0**1000), st.integers(0, 2))
def test_the_middle_of_two_floats_and_its_neighbours_are_rounded_to_the_right_side(value: float, step: int) -> None:
    middle = (Fraction(value) + Fraction(float(np.nextafter(value, np.inf)))) / 2
    power = 0
    while middle * Fraction(10) ** -power >= 10**19:
        power += 1
    while middle * Fraction(10) ** -power < 10**18:
        power -= 1
    digits = int(middle * Fraction(10) ** -power) + step - 1
    pattern = int(nearest(np.uint64(digits), power))
    assert struct.pack("<q", pattern) == bits_of(float(f"{digits}e{power}"))


numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False).map(str),
    st.integers(-(10**20), 10**20).map(str),
    st.tuples(st.integers(0, 10**19), st.integers(0, 25)).map(lambda pair: f"{pair[0]}.{'0' * pair[1]}1"),
    st.integers(0, 40).map(lambda zeros: f"0.{'0' * zeros}1234567890123456789"),
    st.sampled_from(["0", "-0", "0.0", "-0.0", "00012", "1e5", "1E-5", "1.5e+3", "1e400", "1e-400", "4.9e-324"]),
)


@settings(max_examples=200)
@given(st.lists(numbers, min_size=1, max_size=20))
def test_words_have_the_bits_of_python_or_are_doubtful(words: list[str]) -> None:
    values, doubtful = scanned(words)
    for row, (word, value) in enumerate(zip(words, values, strict=True)):
        if row not in doubtful:
            assert bits_of(value) == bits_of(float(word)), word


def test_numbers_as_people_write_them_are_never_doubtful() -> None:
    random = np.random.default_rng(5)
    floats = [
        *random.normal(100, 15, 500),
        *random.random(500),
        *(random.random(500) * 10.0 ** random.integers(-300, 300, 500)),
    ]
    assert scanned([repr(float(value)) for value in floats]) == ([float(value) for value in floats], [])
    integers = random.integers(-(10**18) + 1, 10**18, 500).tolist()
    assert scanned([str(value) for value in integers], integers=True) == (integers, [])


@pytest.mark.parametrize(
    "word",
    [
        "",
        "-",
        ".",
        "+1",
        " 1",
        "1 ",
        "nan",
        "NA",
        "inf",
        "1.",
        ".5",
        "1e",
        "1e+",
        "0x10",
        "1_0",
        "1e12345",
        "12345678901234567890",
    ],
)
def test_other_words_are_doubtful(word: str) -> None:
    assert scanned([word])[1] == [0]
    assert scanned(["1.5", word, "2.5"])[1] == [1]


@pytest.mark.parametrize("word", ["1.0", "1e3", "-0", "1234567890123456789", ""])
def test_other_integers_are_doubtful(word: str) -> None:
    assert scanned([word], integers=True)[1] == [0]
