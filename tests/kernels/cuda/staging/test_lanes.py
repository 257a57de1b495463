"""Threads that read files into places of memory, and what pulls from there; this process stands for the GPU."""

import ctypes
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from warpfold.kernels.cuda.staging import lanes as module
from warpfold.kernels.cuda.staging import native
from warpfold.kernels.cuda.staging.lanes import Board, Driver, Lanes, LaneShape, Puller, table_of
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.source import ArraySource, FileBytes, FileSource, HeldArrays
from warpfold.kernels.sources.chained import ChainedSource, Link

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="lanes are woken by an eventfd")

STREAM = 77
SHAPE = LaneShape(part_bytes=1 << 10, parts=8, first_bytes=1 << 7, most_threads=5)

Word = ctypes.c_int64
_LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int, *[Word] * 11)
_RECORD = ctypes.CFUNCTYPE(ctypes.c_int, Word, Word)
_QUERY = ctypes.CFUNCTYPE(ctypes.c_int, Word)
KERNEL, EVENTS = 5, (6, 7)


def words(address: int, count: int) -> NDArray[np.int64]:
    """Words of memory, as an array."""
    return np.ctypeslib.as_array((Word * count).from_address(address))


class HostGpu:
    """Pulls parts as `pull.cu` says. A launch returns when it has pulled all, or has given up."""

    def __init__(self, error: int = 0) -> None:
        self.launches: list[tuple[int, int, int]] = []
        self._error = error
        self._functions = (_LAUNCH(self._launch), _RECORD(self._record), _QUERY(self._query))
        driver = Driver(*(ctypes.cast(each, ctypes.c_void_p).value or 0 for each in self._functions))
        self.puller = Puller(driver, KERNEL, STREAM, EVENTS)

    def _launch(self, kernel: int, *shape_and_arguments: int) -> int:
        blocks, *_, stream, pointers, _ = shape_and_arguments
        assert (kernel, stream) == (KERNEL, STREAM)
        arguments = [int(words(address, 1)[0]) for address in words(pointers, 8).tolist()]
        places, taken, busy, slots, first, stop, target, again = arguments
        self.launches.append((first, stop, again))
        for block in range(blocks):
            for part in range(first + block, stop, blocks):
                place, took = words(places, 8 * slots).reshape(slots, 8)[part % slots], words(taken, slots)
                if again and took[part % slots] > part:
                    continue
                if not self._comes(place, part):
                    break
                if place[0] == part + 1:
                    ctypes.memmove(target + int(place[3]), int(place[1]), int(place[2]))
                    took[part % slots] = part + 1
            words(busy, blocks)[block] += 1000
        self._end()
        return self._error

    def _end(self) -> None: ...

    def _comes(self, place: NDArray[np.int64], part: int) -> bool:
        until = time.monotonic() + 0.008
        while place[0] <= part:
            if time.monotonic() > until:
                return False
            time.sleep(0)
        return True

    def _record(self, event: int, stream: int) -> int:
        assert event in EVENTS
        assert stream == STREAM
        return 0

    def _query(self, event: int) -> int:
        assert event in EVENTS
        return 0


class ImpatientGpu(HostGpu):
    """Pulls what is read when it is launched, and gives up on all else. Says once for each launch that it goes on."""

    def __init__(self) -> None:
        super().__init__()
        self._goes_on = False

    def _comes(self, place: NDArray[np.int64], part: int) -> bool:
        return bool(place[0] > part)

    def _end(self) -> None:
        time.sleep(2 * native.PATIENCE_NS / 1e9)  # that it gives up before is no lie then
        self._goes_on = True

    def _query(self, event: int) -> int:
        self._goes_on, before = False, self._goes_on
        return native.NOT_READY if before else super()._query(event)


@dataclass
class Bench:
    """Lanes, the memory that they fill, and the GPU that pulls from it."""

    lanes: Lanes
    gpu: HostGpu
    shape: LaneShape
    memory: NDArray[np.uint8]

    def begin(self, source: FileSource, piece: int) -> None:
        self.lanes.begin([source], piece, self.addresses)

    @property
    def addresses(self) -> NDArray[np.int64]:
        addresses: NDArray[np.int64] = self.memory.ctypes.data + self.shape.part_bytes * np.arange(self.shape.parts)
        return addresses

    def brought(
        self, *sources: ArraySource | FileSource | ChainedSource | HeldArrays, piece: int
    ) -> list[NDArray[np.uint8]]:
        """The bytes of all sources, as they arrive."""
        self.lanes.begin(sources, piece, self.addresses)
        out = [np.full(source.count * source.dtype.itemsize, 0xEE, np.uint8) for source in sources]
        for start in range(0, sources[0].count, piece):
            for source, array in zip(sources, out, strict=True):
                assert self.lanes.pull(array.ctypes.data + start * source.dtype.itemsize) == 0
                assert self.lanes.arrive()[0] == 0
        return out


@contextmanager
def bench(shape: LaneShape = SHAPE, gpu: HostGpu | None = None) -> Iterator[Bench]:
    gpu = gpu or HostGpu()
    lanes = Lanes(shape, gpu.puller, Board(shape, np.empty(Board.words(shape), np.int64)))
    try:
        yield Bench(lanes, gpu, shape, np.zeros(shape.parts * shape.part_bytes, np.uint8))
    finally:
        lanes.close()


@pytest.fixture(autouse=True)
def _cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "usable_cores", lambda: 8)


def in_file(folder: Path, content: bytes, dtype: str, offset: int = 0) -> FileSource:
    path = folder / "x"
    path.write_bytes(b"?" * offset + content)
    with path.open("rb") as file:
        row = DTYPES[dtype]
        return FileSource(row, len(content) // row.itemsize, FileBytes(file.fileno(), 0), offset)


def test_the_bytes_of_a_file_arrive_whatever_its_length(tmp_path: Path) -> None:
    random = np.random.default_rng()
    with bench() as own:
        for count in (1, 127, 128, 129, 1023, 1024, 1025, 4096, 4097, 16 * 1024, 40_961):
            content = random.bytes(count)
            (arrived,) = own.brought(in_file(tmp_path, content, "uint8", offset=count % 7), piece=4096)
            assert arrived.tobytes() == content
            read_s, copied_s = own.lanes.taken_seconds()
            assert read_s > 0
            assert copied_s > 0


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("parts", [1, 3, 8])
def test_threads_and_places_of_any_number_give_the_same_bytes(tmp_path: Path, threads: int, parts: int) -> None:
    content = np.random.default_rng().bytes(30_000)
    shape = LaneShape(part_bytes=512, parts=parts, first_bytes=100, most_threads=threads)
    with bench(shape) as own:
        (arrived,) = own.brought(in_file(tmp_path, content, "float32"), piece=1000)
    assert arrived.tobytes() == content


def test_two_sources_arrive_piece_after_piece(tmp_path: Path) -> None:
    random = np.random.default_rng()
    first = random.standard_normal(5000)
    with bench() as own:
        content = random.bytes(5000 * 2)
        arrived = own.brought(ArraySource(first), in_file(tmp_path, content, "int16"), piece=512)
    assert arrived[0].tobytes() == first.tobytes()
    assert arrived[1].tobytes() == content


def chain(folder: Path, contents: list[bytes]) -> ChainedSource:
    """Bytes in files of their own, each behind another number of other bytes."""
    links = []
    for number, content in enumerate(contents):
        path = folder / f"{number}"
        path.write_bytes(b"?" * number + content)
        with path.open("rb") as file:
            source = FileSource(DTYPES["uint8"], len(content), FileBytes(file.fileno(), number), 0)
        links.append(Link(repr(path.name), len(content), lambda source=source: source))  # type: ignore[misc]
    return ChainedSource(DTYPES["uint8"], links)


def test_many_files_arrive_as_one_array(tmp_path: Path) -> None:
    random = np.random.default_rng()
    with bench() as own:
        for lengths in ([1, 1], [0, 3, 0, 5000, 0], [4096, 4096, 1], [1023, 1025, 4095, 1, 9999], [700] * 40):
            contents = [random.bytes(length) for length in lengths]
            (arrived,) = own.brought(chain(tmp_path, contents), piece=4096)
            assert arrived.tobytes() == b"".join(contents)


def test_arrays_of_a_decoded_piece_arrive_as_one(tmp_path: Path) -> None:
    random = np.random.default_rng()
    with bench() as own:
        for lengths in ([5], [0, 3, 0, 5000, 0], [1023, 1025, 4095, 1, 9999]):
            arrays = [random.standard_normal(length) for length in lengths]
            (arrived,) = own.brought(HeldArrays(DTYPES["float64"], arrays), piece=sum(lengths))
            assert arrived.tobytes() == np.concatenate(arrays).tobytes()


def test_moments_of_every_part_follow_one_another(tmp_path: Path) -> None:
    with bench() as own:
        assert own.lanes.moments().shape == (0, 2)
        before = time.perf_counter_ns()
        own.brought(in_file(tmp_path, bytes(50_000), "uint8"), piece=4096)
        after = time.perf_counter_ns()
        moments = own.lanes.moments()
    assert len(moments) > 50_000 // SHAPE.part_bytes
    for begun, read in moments.tolist():
        assert before <= begun <= read <= after


def test_seconds_are_told_once(tmp_path: Path) -> None:
    with bench() as own:
        own.brought(in_file(tmp_path, bytes(50_000), "uint8"), piece=4096)
        assert min(own.lanes.taken_seconds()) > 0
        assert own.lanes.taken_seconds() == (0.0, 0.0)


def test_of_many_files_the_one_that_is_cut_is_named(tmp_path: Path) -> None:
    files = chain(tmp_path, [bytes(20_000)] * 5)
    assert files.extents() is not None
    os.truncate(tmp_path / "3", 10_000)
    with bench() as own, pytest.raises(InvalidInput, match=r"^'3': the file became shorter while it was read$"):
        own.brought(files, piece=4096)


def test_what_the_gpu_gives_up_on_is_pulled_by_another_launch(tmp_path: Path) -> None:
    content = np.random.default_rng().bytes(30_000)
    gpu = ImpatientGpu()
    with bench(gpu=gpu) as own:
        (arrived,) = own.brought(in_file(tmp_path, content, "uint8"), piece=15_000)
    assert arrived.tobytes() == content
    assert sum(again for _, _, again in gpu.launches) >= 2, "more parts than places cannot be there at once"


def test_a_piece_that_is_read_in_time_takes_one_launch(tmp_path: Path) -> None:
    shape = LaneShape(part_bytes=1 << 10, parts=8, first_bytes=1 << 10, most_threads=2)
    content = np.random.default_rng().bytes(8 << 10)
    with bench(shape) as own:
        own.begin(in_file(tmp_path, content, "uint8"), 8 << 10)
        own.lanes._native.wait_idle(own.lanes._control)
        assert not own.lanes.under_way
        out = np.zeros(8 << 10, np.uint8)
        assert own.lanes.pull(out.ctypes.data) == 0
        assert own.lanes.arrive()[0] == 0
        assert own.gpu.launches[0] == (0, 8, 0)
        assert own.lanes.under_way
        own.lanes.settled()
        assert not own.lanes.under_way
    assert out.tobytes() == content


def test_pieces_are_asked_for_before_they_are_read(tmp_path: Path) -> None:
    content = np.random.default_rng().bytes(8 << 10)
    for gpu in (HostGpu(), ImpatientGpu()):
        with bench(gpu=gpu) as own:
            own.begin(in_file(tmp_path, content, "uint8"), 2 << 10)
            out = np.zeros(8 << 10, np.uint8)
            events = []
            assert own.lanes.pull(out.ctypes.data) == 0
            for piece in range(1, 4):
                assert own.lanes.pull(out.ctypes.data + (piece << 11)) == 0
                events.append(own.lanes.arrive())
            events.append(own.lanes.arrive())
        assert events == [(0, 6), (0, 7), (0, 6), (0, 7)]
        assert out.tobytes() == content


def test_a_file_that_is_cut_is_refused_and_the_next_is_read(tmp_path: Path) -> None:
    content = np.random.default_rng().bytes(50_000)
    source = in_file(tmp_path, content, "uint8")
    os.truncate(tmp_path / "x", 20_000)
    with bench() as own:
        with pytest.raises(InvalidInput, match="became shorter while it was read"):
            own.brought(source, piece=4096)
        (arrived,) = own.brought(in_file(tmp_path, content, "uint8"), piece=4096)
        assert arrived.tobytes() == content


def test_what_cannot_be_read_says_what_the_system_says(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)  # reading a folder fails
    try:
        source = FileSource(DTYPES["uint8"], 9000, FileBytes(descriptor, 0), 0)
        with bench() as own, pytest.raises(InvalidInput, match="cannot be read: is a directory"):
            own.brought(source, piece=4096)
    finally:
        os.close(descriptor)


def test_an_error_of_the_gpu_is_handed_on(tmp_path: Path) -> None:
    out = np.zeros(4096, np.uint8)
    with bench(gpu=HostGpu(error=700)) as own:
        own.begin(in_file(tmp_path, bytes(9000), "uint8"), 4096)
        assert own.lanes.pull(out.ctypes.data) == 700


def test_threads_stop_in_the_middle_of_a_file(tmp_path: Path) -> None:
    content = np.random.default_rng().bytes(100_000)
    with bench() as own:
        out = np.zeros(100_000, np.uint8)
        for pieces in range(4):
            own.begin(in_file(tmp_path, content, "uint8"), 4096)
            for piece in range(pieces):
                assert own.lanes.pull(out.ctypes.data + 4096 * piece) == 0
                assert own.lanes.arrive()[0] == 0
            own.lanes.stop()
            assert out[: 4096 * pieces].tobytes() == content[: 4096 * pieces]
        (arrived,) = own.brought(in_file(tmp_path, content, "uint8"), piece=4096)
        assert arrived.tobytes() == content


def test_every_byte_is_in_one_part_within_one_piece() -> None:
    for shape in (SHAPE, LaneShape(part_bytes=1 << 10, first_bytes=1 << 10), LaneShape(part_bytes=64, first_bytes=1)):
        for count in (1, 511, 512, 4096, 4097, 20_000):
            sources = [ArraySource(np.empty(count)), ArraySource(np.empty(count, np.int16))]
            table, ends = table_of(sources, 512, shape)
            at = {0: sources[0].array.ctypes.data, 1: sources[1].array.ctypes.data}
            begins = [0, *ends[:-1]]
            for number, (first, stop) in enumerate(zip(begins, ends, strict=True)):
                row = table[first:stop]
                assert (row[:, 2] > 0).all()
                assert (row[:, 2] <= shape.part_bytes).all()
                assert (row[:, 1] == at[number % 2] + np.cumsum(row[:, 2]) - row[:, 2]).all()
                assert (row[:, 3] == np.cumsum(row[:, 2]) - row[:, 2]).all()
                at[number % 2] += int(row[:, 2].sum())
            assert at == {n: each.array.ctypes.data + each.array.nbytes for n, each in enumerate(sources)}


def test_lanes_that_nobody_closes_end_with_their_owner() -> None:
    lanes = Lanes(SHAPE, HostGpu().puller, Board(SHAPE, np.empty(Board.words(SHAPE), np.int64)))
    lanes.load()
    threads = list(lanes._threads)
    assert all(thread.is_alive() for thread in threads)
    del lanes
    assert not any(thread.is_alive() for thread in threads)
