"""Sources one after another, read as one, and claimed by threads."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.kernels.claiming import PIECE, adversarial, chain, mapped_chain, summed
from warpfold.kernels.cpu import claims
from warpfold.kernels.cpu.claims import Claims
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import ExactState
from warpfold.kernels.formats.npy import open_array, read_head
from warpfold.kernels.ops import OPS
from warpfold.kernels.source import ArraySource, FileBytes, FileSource, Source, extents_of
from warpfold.kernels.sources.chained import ChainedSource, Link


def linked(folder: Path, arrays: list[Source], most: int) -> ChainedSource:
    opened = [Link(f"{number}", source.count, lambda source=source: source) for number, source in enumerate(arrays)]  # type: ignore[misc]
    chain = ChainedSource(DTYPES["float64"], opened)
    chain.MOST_OPEN = most
    return chain


def mapped_arrays(folder: Path) -> list[Source]:
    """Maps of three files, of which one is empty."""
    arrays: list[Source] = []
    for number, count in enumerate((3, 0, 5)):
        np.save(folder / f"{number}.npy", np.full(count, float(number)))
        with (folder / f"{number}.npy").open("rb") as file:
            arrays.append(open_array(file, read_head(file)))
    return arrays


def test_a_short_chain_of_files_tells_where_its_elements_lie(tmp_path: Path) -> None:
    arrays = mapped_arrays(tmp_path)
    extents = extents_of(linked(tmp_path, arrays, 3))
    assert extents is not None
    assert [extent.count for extent in extents] == [3, 5], "an empty file lies nowhere"
    for extent, value in zip(extents, (0.0, 2.0), strict=True):
        read = os.pread(extent.location.descriptor, 8 * extent.count, extent.location.offset)
        assert np.frombuffer(read).tolist() == [value] * extent.count
    assert extents_of(linked(tmp_path, arrays, 2)) is None, "too many to stay open"
    assert extents_of(linked(tmp_path, [*arrays, ArraySource(np.ones(2))], 9)) is None, "one is in memory"
    assert extents_of(linked(tmp_path, [ArraySource(np.ones(2, ">f8"))], 9)) is None


def test_a_short_chain_of_mapped_files_has_their_maps(tmp_path: Path) -> None:
    arrays = mapped_arrays(tmp_path)
    maps = linked(tmp_path, arrays, 3).maps()
    assert maps is not None
    assert [each.tolist() for each in maps] == [[0.0] * 3, [2.0] * 5]
    assert linked(tmp_path, arrays, 2).maps() is None, "too many to stay open"
    assert linked(tmp_path, [*arrays, ArraySource(np.ones(2))], 9).maps() is None, "one is in memory"


def test_a_change_of_a_file_that_another_thread_closed_is_noticed(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}" for number in range(3)]
    for path in paths:
        path.write_bytes(np.ones(2).tobytes())
    reading, go_on = threading.Event(), threading.Event()

    class Slow(FileBytes):
        """Bytes that are read when the test lets the thread go on."""

        def read_into(self, start: int, out: NDArray[np.uint8]) -> None:
            reading.set()
            assert go_on.wait(30)
            super().read_into(start, out)

    def opened(path: Path) -> Source:
        with path.open("rb") as file:
            kind = Slow if path == paths[0] else FileBytes
            return FileSource(DTYPES["float64"], 2, kind(file.fileno(), 0), 0)

    files = ChainedSource(DTYPES["float64"], [Link(repr(path.name), 2, partial(opened, path)) for path in paths])
    files.MOST_OPEN = 1
    with ThreadPoolExecutor(1) as threads:
        read = threads.submit(files.read, 0, 2)
        assert reading.wait(30)
        assert files.read(2, 6).tolist() == [1.0] * 4  # which closes the first file, as it was
        paths[0].write_bytes(np.full(2, 7.0).tobytes())
        go_on.set()
        with pytest.raises(InvalidInput, match=r"^'0' changed while it was read$"):
            read.result()


@pytest.fixture
def several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "_SHARE_BYTES", 1)
    monkeypatch.setattr(claims, "usable_cores", lambda: 5)


@pytest.mark.usefixtures("several_threads")
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("op", ["sum", "norm1", "sum_squares"])
def test_many_files_are_claimed_as_one_array(tmp_path: Path, dtype: str, op: str) -> None:
    in_piece = PIECE // DTYPES[dtype].itemsize
    for lengths in ([0, 1], [1, 0, 2], [in_piece, in_piece - 1, in_piece + 1], [7 * in_piece + 3, 1, 0, 2 * in_piece]):
        array = adversarial(sum(lengths), dtype)
        files = chain(tmp_path, np.split(array, np.cumsum(lengths)[:-1]), dtype)
        want = ExactState.of(array, OPS[op].terms, magnitudes=OPS[op].magnitudes)
        assert summed(files, op).state() == want


@pytest.mark.usefixtures("several_threads")
def test_of_many_files_the_one_that_is_cut_is_named(tmp_path: Path) -> None:
    files = chain(tmp_path, [np.ones(20_000, np.float32)] * 5, "float32")
    assert files.extents() is not None
    os.truncate(tmp_path / "3", 40_000)
    with pytest.raises(InvalidInput, match=r"^'3': the file became shorter while it was read$"):
        summed(files)


@pytest.mark.usefixtures("several_threads")
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("large", [False, True], ids=["kept", "forgotten"])
def test_maps_of_files_are_claimed_where_cuts_end_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str, large: bool
) -> None:
    monkeypatch.setattr(claims, "survives_cuts", lambda: True)
    monkeypatch.setattr(claims, "MAPPED_BYTES", 1 << 13)  # so that a piece has several steps
    if large:
        monkeypatch.setattr(claims, "MOST_MAPPED_BYTES", 0)
    itemsize = DTYPES[dtype].itemsize
    for lengths in ([1], [0, 1, 2], [(1 << 20) // itemsize + 3, 0, 7, 100_003]):
        array = adversarial(sum(lengths), dtype)
        files = mapped_chain(tmp_path, np.split(array, np.cumsum(lengths)[:-1]), dtype)
        claimed = Claims(files)
        assert claimed.in_file
        assert claimed.elements().ctypes.data in {each.ctypes.data for each in files.maps() or ()}
        assert summed(files).state() == ExactState.of(array, OPS["sum"].terms)


@pytest.mark.usefixtures("several_threads")
def test_of_many_maps_the_one_whose_file_is_cut_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "survives_cuts", lambda: True)
    files = mapped_chain(tmp_path, [np.ones(20_000, np.float32)] * 5, "float32")
    assert files.maps() is not None
    os.truncate(tmp_path / "3.npy", 40_000)
    with pytest.raises(InvalidInput, match=r"^'3': the file became shorter while it was read$"):
        summed(files)


def test_files_are_read_where_a_cut_would_end_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "survives_cuts", lambda: False)  # as other tests make this process
    files = mapped_chain(tmp_path, [np.ones(3), np.ones(4)], "float64")
    assert Claims(files).elements().size == 7  # room for a piece
    misplaced = chain(tmp_path, [np.ones(3), np.ones(4)], "float64")
    assert misplaced.maps() is None
