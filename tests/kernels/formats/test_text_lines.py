"""Columns of numbers in lines of text."""

import numpy as np
import pytest

from warpfold.kernels.formats.text_lines import DOUBT, NOT_PLAIN, scan

ENDS = np.zeros(256, np.bool_)
ENDS[[*b',\r\n"']] = True


def of_rows(text: bytes, width: int, wanted: list[int], room: int = 8) -> tuple[int, list[list[float]], int]:
    bits, doubts = np.zeros((len(wanted), 64), np.int64), np.zeros((room, DOUBT), np.int64)
    kinds = np.zeros(len(wanted), np.bool_)
    array = np.frombuffer(text, np.uint8)
    rows, doubtful = scan(
        array.ctypes.data, array.size, 0, ord(","), ENDS, width, np.array(wanted), kinds, bits, doubts
    )
    return rows, bits.view(np.float64)[:, : max(rows, 0)].tolist(), doubtful


def test_wanted_columns_are_found_between_others() -> None:
    assert of_rows(b"a,1,b,2\n\r\nc,3,,4\r\n", 4, [1, 3]) == (2, [[1, 3], [2, 4]], 0)
    assert of_rows(b'a long word (with a bracket),1,"a "" quote, and a comma",2\n', 4, [1, 3]) == (1, [[1], [2]], 0)


@pytest.mark.parametrize("text", [b"1,2\n1\n", b"1,2\n1,2,3\n", b'1,"2"\n', b"1,2\r1,2\n", b'"1"1,2\n', b'"1\n",2\n'])
def test_rows_of_other_lengths_and_odd_quotes_are_not_plain(text: bytes) -> None:
    assert of_rows(text, 2, [1])[0] == NOT_PLAIN


def test_a_text_with_many_doubts_is_not_plain() -> None:
    assert of_rows(b"x\ny\n", 1, [0], room=2) == (2, [[0, 0]], 2)
    assert of_rows(b"x\ny\nz\n", 1, [0], room=2)[0] == NOT_PLAIN
