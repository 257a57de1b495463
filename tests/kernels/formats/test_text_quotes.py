"""Where rows of text end."""

import csv
import io
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpfold.kernels.formats.dialect import Dialect
from warpfold.kernels.formats.text_lines import end_within_quotes
from warpfold.kernels.formats.text_quotes import QuotedStarts, QuotedText, ends_within

COMMAS = Dialect()
texts = st.text(st.sampled_from('a",\n'), max_size=24)


def within(text: str, *, begins_within: bool = False) -> list[bool]:
    """Whether each place of the text, its end among them, is within quotes, told byte by byte."""
    places, quoted, can_begin, ended = [], begins_within, True, False
    for letter in text:
        places.append(quoted)
        if letter == '"':
            begins = not quoted and (can_begin or ended)
            ended, can_begin = quoted, False
            quoted = begins
        else:
            ended, can_begin = False, letter in ",\n"
    return [*places, quoted]


@given(texts, st.booleans(), st.integers(0, 24))
def test_ends_of_rows_are_outside_of_quotes(text: str, begins_within: bool, stop: int) -> None:
    places = within(text, begins_within=begins_within)
    ends = [at for at, letter in enumerate(text) if letter == "\n" and not places[at]]
    quoted = QuotedText(text.encode(), COMMAS, within=begins_within)
    assert (quoted.first_end(b"\n"), quoted.last_end(b"\n")) == ((ends or [-1])[0], (ends or [-1])[-1])
    assert quoted.count_of_ends(b"\n") == len(ends)
    assert ends_within(memoryview(text.encode()), COMMAS, within=begins_within) == places[-1]
    array = np.frombuffer(text.encode() + b"\n", np.uint8)
    assert end_within_quotes(array.ctypes.data, len(text), ord(","), ord('"'))[begins_within] == places[-1]
    stop = min(stop, len(text))
    before = [at for at in ends if at < stop]
    assert QuotedText(text.encode(), COMMAS, within=begins_within, stop=stop).last_end(b"\n") == (before or [-1])[-1]


@given(texts)
def test_rows_are_those_of_pythons_csv(text: str) -> None:
    if within(text)[-1]:
        return
    rows = list(csv.reader(io.StringIO(text + "\n", newline="")))
    assert QuotedText((text + "\n").encode(), COMMAS).count_of_ends(b"\n") == len(rows)


def test_threads_tell_each_other_how_parts_begin_and_look_once() -> None:
    ends = [(False, True), (True, False), (False, True), (True, False), (True, False), (False, True)] * 20
    looked, lock = list[int](), threading.Lock()

    def look(number: int) -> tuple[bool, bool]:
        with lock:
            looked.append(number)
        return ends[number]

    starts, wanted = QuotedStarts(look), [False]
    for outside, inside in ends:
        wanted.append(inside if wanted[-1] else outside)
    with ThreadPoolExecutor(8) as threads:
        around = list(threads.map(starts.around, range(len(ends))))
    assert around == list(pairwise(wanted))
    assert sorted(looked) == list(range(len(ends)))
    assert starts.around(7) == (wanted[7], wanted[8])
    assert len(looked) == len(ends)


def test_a_part_that_cannot_be_read_is_an_error_for_all_who_need_it() -> None:
    def look(number: int) -> tuple[bool, bool]:
        if number == 2:
            raise OSError("gone")
        return False, True

    starts = QuotedStarts(look)
    assert starts.around(1) == (False, False)
    for number in (2, 5):
        with pytest.raises(OSError, match="gone"):
            starts.around(number)
