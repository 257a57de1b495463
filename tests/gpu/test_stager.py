"""Sources on their way to the GPU: pieces, parts, threads, files that change."""

import math
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from warpfold.kernels.backend import Stages
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.cuda.backend import CudaBackend
from warpfold.kernels.cuda.staging import parts, stager
from warpfold.kernels.cuda.staging.lanes import LaneShape
from warpfold.kernels.cuda.staging.parts import RingShape
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.npy import open_array, read_head
from warpfold.kernels.lowering.decimals import Decimals
from warpfold.kernels.source import ArraySource, GeneratedSource
from warpfold.kernels.sources.sequential import Elements, SequentialSource

PIECE, PART = 1 << 14, 1 << 10


@pytest.fixture(autouse=True)
def _short_pieces(backend: CudaBackend, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Pieces of 16 KiB, read in parts of 1 KiB: threads, rings and ends of pieces within small arrays."""
    with staged(backend, monkeypatch, RingShape(part_bytes=PART)):
        yield


@contextmanager
def staged(backend: CudaBackend, monkeypatch: pytest.MonkeyPatch, shape: RingShape) -> Iterator[None]:
    """The backend brings sources to the GPU by short pieces, through a ring of this shape."""
    short = stager.Stager(backend.gpu, replace(shape, decoded_bytes=PIECE))
    with monkeypatch.context() as patched:
        patched.setattr(stager, "COPIED_BYTES", PIECE)
        patched.setattr(backend, "_stager", short)
        yield
    with backend.gpu.active():
        backend.gpu.stream.synchronize()
        short.close()


def opened(path: Path) -> ArraySource:
    with path.open("rb") as file:
        return open_array(file, read_head(file))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "bool"])
def test_a_file_gives_the_same_bits_as_its_array_at_every_length(
    backend: CudaBackend, tmp_path: Path, dtype: str
) -> None:
    random = np.random.default_rng()
    itemsize = DTYPES[dtype].itemsize
    edges = {
        count + off for count in (PART, PIECE, 2 * PIECE, 3 * PIECE, 4 * PIECE) for off in (-itemsize, 0, itemsize)
    }
    for nbytes in sorted({itemsize, *edges, 17 * PIECE + 3 * itemsize}):
        numbers = random.integers(-100, 100, nbytes // itemsize) * random.random(nbytes // itemsize)
        array = numbers > 0 if dtype == "bool" else numbers.astype(dtype)
        np.save(tmp_path / "x.npy", array)
        op = "count_nonzero" if dtype == "bool" else "sum"
        want = int(array.sum()) if array.dtype.kind in "bi" else math.fsum(array.astype(np.float64))
        rounded = float(np.float32(want)) if dtype == "float32" else want
        got = backend.reduce(opened(tmp_path / "x.npy"), op)
        assert got.value == pytest.approx(rounded, rel=1e-6)
        assert got.state == backend.reduce(ArraySource(array), op).state


@pytest.mark.parametrize("op", ["sum", "mean", "min", "max", "norm1", "norm_inf", "argmin"])
def test_decimals_have_the_values_of_a_cpu_slot(backend: CudaBackend, op: str) -> None:
    integers = np.random.default_rng().integers(-(10**15), 10**15, 3 * PIECE)
    results = [
        own.reduce(SequentialSource(DTYPES["int64"], lambda: iter([integers]), meaning=Decimals(2)), op)
        for own in (backend, CpuBackend())
    ]
    facts = [(each.value, each.decimal, each.dtype, each.count, each.correctly_rounded) for each in results]
    assert facts[0] == facts[1]


@pytest.mark.parametrize("order", [">f8", "F"])
def test_other_layouts_of_a_file_are_read_as_their_elements(backend: CudaBackend, tmp_path: Path, order: str) -> None:
    array = np.random.default_rng().standard_normal((101, 1001))
    stored = array.astype(">f8") if order == ">f8" else np.asfortranarray(array)
    np.save(tmp_path / "x.npy", stored)
    source = opened(tmp_path / "x.npy")
    assert backend.reduce(source, "sum").state == backend.reduce(ArraySource(array), "sum").state
    assert backend.reduce(source, "argmax").value == int(np.argmax(array))


def test_two_sources_are_read_side_by_side(backend: CudaBackend, tmp_path: Path) -> None:
    count = 5 * PIECE // 8 + 7
    made = GeneratedSource("normal", count, 3, DTYPES["float64"])
    np.save(tmp_path / "x.npy", np.random.default_rng().standard_normal(count))
    file = opened(tmp_path / "x.npy")
    plain = ArraySource(np.load(tmp_path / "x.npy"))
    for first, second in ((file, made), (made, file), (file, file)):
        swapped = tuple(plain if source is file else source for source in (first, second))
        got = backend.reduce(first, "dot", other=second)
        assert got.state == backend.reduce(swapped[0], "dot", other=swapped[1]).state


def test_a_file_that_is_cut_while_it_is_read_is_refused(backend: CudaBackend, tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.ones(40 * PIECE // 4, np.float32))
    source = opened(path)

    def cut(done: int, total: int) -> None:
        if done:
            with path.open("r+b") as file:
                file.truncate(PIECE)

    with pytest.raises(InvalidInput, match="became shorter while it was read"):
        backend.reduce(source, "sum", progress=cut)
    assert backend.reduce(ArraySource(np.ones(5 * PIECE, np.float32)), "sum").value == 5 * PIECE


def test_a_reduction_that_ends_early_leaves_nothing_in_the_buffers(backend: CudaBackend) -> None:
    class Stop(Exception):
        pass

    def stop(done: int, total: int) -> None:
        if done >= PIECE:
            raise Stop

    for _ in range(20):
        with pytest.raises(Stop):
            backend.reduce(ArraySource(np.full(40 * PIECE, 7.0, np.float32)), "sum", progress=stop)
        assert backend.reduce(ArraySource(np.ones(3 * PIECE, np.float32)), "sum").value == 3 * PIECE


@pytest.mark.parametrize("made", [False, True])
def test_progress_tells_what_is_done_and_never_goes_back(backend: CudaBackend, made: bool) -> None:
    count = 10 * PIECE // 4 + 1
    array = ArraySource(np.ones(count, np.float32))
    seen: list[int] = []
    backend.reduce(
        GeneratedSource("zeros", count, 0, DTYPES["float32"]) if made else array,
        "sum",
        progress=lambda done, total: seen.append(done),
    )
    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == (0, count)


@pytest.mark.parametrize("op", ["sum", "max", "argmax", "var", "count_nonzero"])
@pytest.mark.parametrize("dtype", ["float32", "int16"])
@pytest.mark.parametrize("strategy", ["auto", "cupy"])
def test_a_source_that_comes_in_order_gives_the_bits_of_its_array(
    backend: CudaBackend, op: str, dtype: str, strategy: str
) -> None:
    """Its length is not known before: pieces find room as they come."""
    if strategy == "cupy" and op == "var":
        pytest.skip("CuPy's variance is not among its claims")
    array = (np.random.default_rng(6).standard_normal(23 * PIECE // 4 + 3) * 1000).astype(dtype)
    for cuts in ([], [1, 700, 701], [PIECE, PIECE + 5]):
        source = SequentialSource(DTYPES[dtype], lambda cuts=cuts: iter(np.split(array, cuts)))  # type: ignore[misc]
        got = backend.reduce(source, op, strategy=strategy)
        want = backend.reduce(ArraySource(array), op, strategy=strategy)
        assert (got.value, got.count, got.state) == (want.value, want.count, want.state)
        assert source.tally.elements == array.size


def test_two_sources_in_order_are_read_side_by_side(backend: CudaBackend) -> None:
    x, y = np.random.default_rng(7).standard_normal((2, 9 * PIECE // 8 + 1))
    want = backend.reduce(ArraySource(x), "dot", other=ArraySource(y)).state
    first = SequentialSource(DTYPES["float64"], lambda: iter(np.split(x, [5])))
    second = SequentialSource(DTYPES["float64"], lambda: iter(np.split(y, [900, 1000])))
    assert backend.reduce(first, "dot", other=second).state == want
    assert backend.reduce(ArraySource(x), "dot", other=SequentialSource(DTYPES["float64"], lambda: iter([y]))).state
    short = SequentialSource(DTYPES["float64"], lambda: iter([y[:-1]]))
    with pytest.raises(InvalidInput, match="both sources need one length"):
        backend.reduce(ArraySource(x), "dot", other=short)


def test_a_source_in_order_without_elements_or_with_an_error_leaves_the_gpu_in_order(backend: CudaBackend) -> None:
    assert backend.reduce(SequentialSource(DTYPES["float32"], lambda: iter([])), "sum").value == 0.0

    def broken() -> Iterator[NDArray[np.float32]]:
        yield np.ones(3 * PIECE, np.float32)
        raise InvalidInput("is damaged")

    with pytest.raises(InvalidInput, match="is damaged"):
        backend.reduce(SequentialSource(DTYPES["float32"], broken), "sum")
    assert backend.reduce(ArraySource(np.ones(3 * PIECE, np.float32)), "sum").value == 3 * PIECE


@pytest.mark.parametrize(
    "shape",
    [
        RingShape(part_bytes=PART, parts=3, most_threads=5, first_bytes=PART // 4, lanes=None),
        RingShape(part_bytes=PART, parts=4, most_threads=3, waves=4, lanes=None),
        RingShape(part_bytes=PART, first_bytes=PART // 8, waves=2, lanes=None),
        RingShape(part_bytes=PART, lanes=LaneShape(part_bytes=PART // 4, parts=7, first_bytes=40, most_threads=3)),
        RingShape(part_bytes=PART, parts=3, lanes=LaneShape(part_bytes=PART, parts=3, first_bytes=8, most_threads=5)),
    ],
)
def test_a_ring_of_any_shape_brings_the_same_elements(
    backend: CudaBackend, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, shape: RingShape
) -> None:
    monkeypatch.setattr(parts, "_LEAST_BYTES", 1 << 6)
    with staged(backend, monkeypatch, shape):
        for count in (1, PART // 8 + 1, PIECE // 8, 5 * PIECE // 8 + 3):
            array = np.random.default_rng(count).standard_normal(count)
            np.save(tmp_path / "x.npy", array)
            # The order of elements matters to an index and to pairs, and not to a sum.
            assert backend.reduce(opened(tmp_path / "x.npy"), "argmax").value == int(np.argmax(array))
            file, memory = opened(tmp_path / "x.npy"), ArraySource(array)
            got, want = (backend.reduce(first, "dot", other=memory).state for first in (file, memory))
            assert got == want


def test_what_a_kernel_gave_up_waiting_for_arrives_all_the_same(
    backend: CudaBackend, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    array = np.random.default_rng().standard_normal(3 * PIECE // 8)
    np.save(tmp_path / "x.npy", array)
    want = backend.reduce(ArraySource(array), "sum").state
    woken = os.eventfd_write

    def late(descriptor: int, count: int) -> None:
        for number in range(count):  # the kernel waits for 8 ms
            threading.Timer(0.02 * (1 + number), woken, (descriptor, 1)).start()

    shape = RingShape(part_bytes=PART, lanes=LaneShape(part_bytes=PART // 8, parts=7, first_bytes=40, most_threads=3))
    with staged(backend, monkeypatch, shape):
        backend.reduce(opened(tmp_path / "x.npy"), "sum")  # which starts the threads
        with monkeypatch.context() as slow:
            slow.setattr(os, "eventfd_write", late)
            assert backend.reduce(opened(tmp_path / "x.npy"), "sum").state == want


def stages_of(backend: CudaBackend, source: Elements, **options: str) -> Stages:
    stages = backend.reduce(source, "sum", **options).stages  # type: ignore[arg-type]
    assert stages is not None
    return stages


def timed_stages(stages: Stages) -> set[str]:
    """The stages that have a time."""
    by_name = {"read": stages.read_s, "decode": stages.decode_s, "copy": stages.copy_s, "reduce": stages.reduce_s}
    assert all(seconds is None or seconds > 0 for seconds in by_name.values())
    return {name for name, seconds in by_name.items() if seconds is not None}


@pytest.mark.parametrize("strategy", ["exact", "cupy"])
def test_the_stages_of_every_kind_of_source_are_told(backend: CudaBackend, tmp_path: Path, strategy: str) -> None:
    array = np.random.default_rng(8).standard_normal(9 * PIECE // 8 + 1)
    np.save(tmp_path / "x.npy", array)
    decoded = SequentialSource(DTYPES["float64"], lambda: iter(np.split(array, [5, 3000])))
    sources: list[tuple[Elements, set[str]]] = [
        (opened(tmp_path / "x.npy"), {"read", "copy", "reduce"}),
        (ArraySource(array), {"copy", "reduce"}),
        (ArraySource(array[:3]), {"copy", "reduce"}),
        (GeneratedSource("normal", array.size, 3, DTYPES["float64"]), {"read", "reduce"}),
        (decoded, {"decode", "copy", "reduce"}),
    ]
    for source, stages in sources:
        assert timed_stages(stages_of(backend, source, strategy=strategy)) == stages, source


def test_the_time_of_a_copy_is_that_of_its_own_reduction(backend: CudaBackend) -> None:
    """A reduction after a longer one counts no copies of that, also where that ended early."""

    class Stop(Exception):
        pass

    long, short = (ArraySource(np.ones(count, np.float32)) for count in (4000 * PIECE // 4, 3))

    def stop(done: int, total: int) -> None:
        if done >= long.count // 2:
            raise Stop

    whole = stages_of(backend, long).copy_s
    assert whole is not None

    def copied_in() -> float:
        copied = stages_of(backend, short).copy_s
        assert copied is not None
        return copied

    # A GPU that other processes use, too, may stop within a copy: so one look of twenty is to be short.
    alone = [copied_in() for _ in range(20)]
    assert min(alone) < whole / 5, f"{whole} s for 64,000 parts, {alone} for one"
    after = []
    for _ in range(20):
        with pytest.raises(Stop):
            backend.reduce(long, "sum", progress=stop)
        after.append(copied_in())
        if after[-1] < whole / 5:
            return
    pytest.fail(f"a reduction counts the copies of the one before, which take {whole} s: {after}")


def test_a_slow_file_bounds_a_reduction_by_reading(backend: CudaBackend) -> None:
    class SlowFile:
        """Elements of a file, of which a thread takes five milliseconds to read a part."""

        dtype, count = DTYPES["float32"], 10 * PIECE // 4

        def read(self, start: int, stop: int) -> NDArray[np.float32]:
            time.sleep(5e-3)
            return np.ones(stop - start, np.float32)

        def read_into(self, start: int, out: NDArray[np.uint8]) -> None:
            out[:] = self.read(start, start + out.size // 4).view(np.uint8)

    stages = stages_of(backend, SlowFile())
    assert stages.read_s is not None
    assert stages.copy_s is not None
    parts_read = 10 * PIECE // PART
    assert stages.read_s >= parts_read * 5e-3 / RingShape().most_threads
    assert stages.read_s > stages.copy_s
