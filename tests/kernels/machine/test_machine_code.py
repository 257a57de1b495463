"""Functions that compiled code of several folders calls."""

import errno as numbers
import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from warpfold.kernels.machine.jit import jit
from warpfold.kernels.machine.machine_code import ENDED, add, load, now_ns, read_whole, store


@jit
def count_up(address: int, times: int) -> None:
    for _ in range(times):
        add(address, 1)


@jit
def exchanged(address: int, value: int) -> int:
    """The word before; `value` stands there afterwards."""
    before = load(address)
    store(address, value)
    return int(before)


def test_words_are_read_and_written_by_their_address() -> None:
    words = np.array([5, -7], np.int64)
    assert exchanged(words.ctypes.data + 8, 9) == -7
    assert words.tolist() == [5, 9]


def test_no_addition_of_several_threads_is_lost() -> None:
    word = np.zeros(1, np.int64)
    threads = [threading.Thread(target=count_up, args=(word.ctypes.data, 100_000)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert word[0] == 400_000


def test_the_clock_is_that_of_python() -> None:
    scratch = np.zeros(2, np.int64)
    before = time.monotonic_ns()
    read = now_ns(scratch.ctypes.data)
    assert before <= read <= time.monotonic_ns()


def test_bytes_of_a_file_are_read_from_an_offset_on(tmp_path: Path) -> None:
    content = np.random.default_rng().integers(0, 256, 100_000, np.uint8)
    (tmp_path / "x").write_bytes(content.tobytes())
    out = np.full(90_001, 0xEE, np.uint8)
    with (tmp_path / "x").open("rb") as file:
        assert read_whole(file.fileno(), 10_000, out.ctypes.data, 90_000) == 0
        assert np.array_equal(out[:-1], content[10_000:])
        assert out[-1] == 0xEE
        assert read_whole(file.fileno(), 10_001, out.ctypes.data, 90_000) == ENDED


def test_the_number_of_the_systems_error_is_returned(tmp_path: Path) -> None:
    out = np.zeros(8, np.uint8)
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        assert read_whole(folder, 0, out.ctypes.data, 8) == numbers.EISDIR
    finally:
        os.close(folder)


@pytest.mark.parametrize("offset", [0, 5])
def test_nothing_is_read_where_nothing_is_asked_for(offset: int) -> None:
    assert read_whole(-1, offset, 0, 0) == 0
