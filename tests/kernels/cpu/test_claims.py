"""Which arrays are claimed piece by piece, and what reading of their files tells."""

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from warpfold.kernels.cpu import claims as module
from warpfold.kernels.cpu.accumulator import FloatAccumulator
from warpfold.kernels.cpu.claims import LEAST_BYTES, Claims, claims_on
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import ExactState
from warpfold.kernels.npy import open_array, read_head
from warpfold.kernels.ops import Terms
from warpfold.kernels.sequential import Elements, SequentialSource
from warpfold.kernels.source import ArraySource, FileBytes, FileSource, GeneratedSource

F32 = DTYPES["float32"]
LONG = LEAST_BYTES // 4


def in_file(folder: Path, array: NDArray[np.float32], ahead: int = 20) -> FileSource:
    (folder / "x").write_bytes(b"?" * ahead + array.tobytes())
    with (folder / "x").open("rb") as file:
        return FileSource(F32, array.size, FileBytes(file.fileno(), 0), ahead)


def claims_of(source: FileSource | ArraySource, piece_bytes: int = 1 << 10) -> Claims:
    return Claims(source, piece_bytes)


def empty() -> FloatAccumulator:
    return FloatAccumulator(F32, Terms.VALUES, magnitudes=False)


def unaligned(count: int) -> NDArray[np.float32]:
    return np.frombuffer(bytearray(4 * count + 1), np.uint8)[1:].view(np.float32)


@pytest.mark.parametrize(
    "source",
    [
        ArraySource(np.ones(LONG - 1, np.float32)),
        ArraySource(np.ones(LONG, np.int32)),
        ArraySource(np.ones(LONG, ">f4")),
        ArraySource(np.ones((2, LONG), np.float32)[:, ::2]),
        ArraySource(unaligned(LONG)),
        GeneratedSource("normal", LONG, 1, F32),
        SequentialSource(F32, lambda: iter([]), LONG),
    ],
    ids=["short", "integers", "other byte order", "with gaps", "unaligned", "made", "in order"],
)
def test_some_sources_are_not_claimed(source: Elements) -> None:
    assert claims_on(source) is None


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_long_floats_are_claimed(dtype: str) -> None:
    row = DTYPES[dtype]
    claims = claims_on(ArraySource(np.zeros(LEAST_BYTES // row.itemsize, row.numpy)))
    assert claims is not None
    assert (claims.nbytes, claims.in_file) == (LEAST_BYTES, False)


def test_elements_of_a_file_are_claimed_wherever_they_begin(tmp_path: Path) -> None:
    array = np.random.default_rng().standard_normal(5000).astype(np.float32)
    claims = claims_of(in_file(tmp_path, array, ahead=13))
    added = empty()
    added.add_claimed(claims)
    whole = empty()
    whole.add(array)
    assert added.state() == whole.state()
    assert (claims.in_file, claims.done) == (True, 5000)
    assert all(seconds > 0 for seconds in claims.seconds())


def test_nothing_is_taken_after_a_stop() -> None:
    claims = claims_of(ArraySource(np.ones(5000, np.float32)))
    claims.stop()
    added = empty()
    added.add_claimed(claims)
    assert (added.state().count, claims.done) == (0, 0)


def test_a_file_that_became_shorter_is_refused(tmp_path: Path) -> None:
    source = in_file(tmp_path, np.ones(5000, np.float32))
    os.truncate(tmp_path / "x", 9000)
    claims = claims_of(source)
    added = empty()
    added.add_claimed(claims)
    with pytest.raises(InvalidInput, match="the file became shorter while it was read"):
        claims.check()
    assert added.state().count == claims.done < 9000 // 4


def test_an_error_of_the_system_is_told_in_its_words(tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        claims = claims_of(FileSource(F32, 5000, FileBytes(folder, 0), 0))
    finally:
        os.close(folder)
    empty().add_claimed(claims)
    with pytest.raises(InvalidInput, match="the file cannot be read: is a directory"):
        claims.check()


def test_a_map_that_became_shorter_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones(1 << 16, np.float32))
    with (tmp_path / "x.npy").open("rb") as file:
        claims = claims_of(open_array(file, read_head(file)), 1 << 14)
    os.truncate(tmp_path / "x.npy", 1 << 15)
    empty().add_claimed(claims)
    with pytest.raises(InvalidInput, match="the file became shorter while it was read"):
        claims.check()
    assert 0 < claims.done < 1 << 13


def test_the_pages_of_a_long_map_do_not_stay_with_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    array = np.random.default_rng().standard_normal(1 << 22).astype(np.float32)
    np.save(tmp_path / "x.npy", array)
    kept = {}
    for most in (1 << 30, 1 << 20):
        monkeypatch.setattr(module, "MOST_MAPPED_BYTES", most)
        with (tmp_path / "x.npy").open("rb") as file:
            source = open_array(file, read_head(file))
        before = mapped_bytes()
        added = empty()
        added.add_claimed(Claims(source))
        assert added.state() == ExactState.of(array)
        kept[most] = mapped_bytes() - before
        del source
    assert kept[1 << 30] > array.nbytes // 2
    assert kept[1 << 20] < array.nbytes // 8


def mapped_bytes() -> int:
    """How much of files this process has in its memory."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("RssFile:")[2].split()[0]) << 10
