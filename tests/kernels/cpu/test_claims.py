"""Arrays that threads claim piece by piece, and errors of reading their files."""

import ctypes
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.kernels.claiming import PIECE, adversarial, opened, summed
from warpfold.kernels.cpu import claims as module
from warpfold.kernels.cpu.accumulator import FloatAccumulator
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.cpu.claims import LEAST_BYTES, Claims, claims_on, stream_claims
from warpfold.kernels.cpu.folds import SumFold
from warpfold.kernels.cpu.windows.standing import FUNCTION
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import ExactState
from warpfold.kernels.formats.npy import open_array, read_head
from warpfold.kernels.ops import OPS, NanPolicy, Terms
from warpfold.kernels.source import ArraySource, FileBytes, FileSource, GeneratedSource
from warpfold.kernels.sources.sequential import Elements, SequentialSource

F32 = DTYPES["float32"]
LONG = LEAST_BYTES // 4


def in_file(folder: Path, array: NDArray[np.float32], ahead: int = 20) -> FileSource:
    (folder / "x").write_bytes(b"?" * ahead + array.tobytes())
    with (folder / "x").open("rb") as file:
        return FileSource(F32, array.size, FileBytes(file.fileno(), 0), ahead)


def claims_of(source: FileSource | ArraySource, piece_bytes: int = 1 << 10) -> Claims:
    return Claims(source, piece_bytes)


def empty() -> FloatAccumulator:
    return FloatAccumulator([F32], Terms.VALUES, magnitudes=False)


def add_claimed(added: FloatAccumulator, claims: Claims) -> None:
    """Have this thread do what a thread that stands by does."""
    job = added.claiming(claims)
    ctypes.CFUNCTYPE(None, ctypes.c_int64)(int(job.words[FUNCTION]))(job.words.ctypes.data)
    added.claimed(job)


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
    add_claimed(added, claims)
    whole = empty()
    whole.add(array)
    assert added.state() == whole.state()
    assert (claims.in_file, claims.done) == (True, 5000)
    assert all(seconds > 0 for seconds in claims.seconds())


def test_nothing_is_taken_after_a_stop() -> None:
    claims = claims_of(ArraySource(np.ones(5000, np.float32)))
    claims.stop()
    added = empty()
    add_claimed(added, claims)
    assert (added.state().count, claims.done) == (0, 0)


def test_a_file_that_became_shorter_is_refused(tmp_path: Path) -> None:
    source = in_file(tmp_path, np.ones(5000, np.float32))
    os.truncate(tmp_path / "x", 9000)
    claims = claims_of(source)
    added = empty()
    add_claimed(added, claims)
    with pytest.raises(InvalidInput, match="the file became shorter while it was read"):
        claims.check()
    assert added.state().count == claims.done < 9000 // 4


def test_an_error_of_the_system_is_told_in_its_words(tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        claims = claims_of(FileSource(F32, 5000, FileBytes(folder, 0), 0))
    finally:
        os.close(folder)
    add_claimed(empty(), claims)
    with pytest.raises(InvalidInput, match="the file cannot be read: is a directory"):
        claims.check()


def test_a_map_that_became_shorter_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones(1 << 16, np.float32))
    with (tmp_path / "x.npy").open("rb") as file:
        claims = claims_of(open_array(file, read_head(file)), 1 << 14)
    os.truncate(tmp_path / "x.npy", 1 << 15)
    add_claimed(empty(), claims)
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
        add_claimed(added, Claims(source))
        assert added.state() == ExactState.of(array)
        kept[most] = mapped_bytes() - before
        del source
    assert kept[1 << 30] > array.nbytes // 2
    assert kept[1 << 20] < array.nbytes // 8


def mapped_bytes() -> int:
    """How much of files this process has in its memory."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("RssFile:")[2].split()[0]) << 10


@pytest.fixture
def several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SHARE_BYTES", 1)
    monkeypatch.setattr(module, "usable_cores", lambda: 5)


def zeros(folder: Path, count: int) -> FileSource:
    """A sparse file of float32."""
    with (folder / "x").open("w+b") as file:
        file.truncate(4 * count)
        return FileSource(DTYPES["float32"], count, FileBytes(file.fileno(), 0), 0)


@pytest.mark.usefixtures("several_threads")
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("op", ["sum", "norm1", "sum_squares"])
def test_the_state_is_that_of_the_definition_at_every_length(tmp_path: Path, dtype: str, op: str) -> None:
    in_piece = PIECE // DTYPES[dtype].itemsize
    row = OPS[op]
    for count in (1, 7, in_piece - 1, in_piece, in_piece + 1, 5 * in_piece, 33 * in_piece + 3):
        array = adversarial(count, dtype)
        want = ExactState.of(array, row.terms, magnitudes=row.magnitudes)
        assert summed(opened(tmp_path, array), op).state() == want
        assert summed(ArraySource(array), op).state() == want


@pytest.mark.usefixtures("several_threads")
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, -0.0])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_values_are_seen_wherever_they_are(dtype: str, special: float) -> None:
    for at in (0, 5000, 9999):
        array = np.full(10_000, -0.0 if special == 0 else 1.0, dtype)
        array[at] = special
        assert summed(ArraySource(array)).state() == ExactState.of(array)


@pytest.mark.usefixtures("several_threads")
@pytest.mark.parametrize("threads", [1, 2, 16])
def test_the_number_of_threads_changes_nothing(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "usable_cores", lambda: threads)
    array = adversarial(50_000, "float64")
    assert summed(ArraySource(array)).state() == ExactState.of(array)


class Stopped(Exception):
    """Raised by a progress callback."""


@pytest.mark.usefixtures("several_threads")
def test_progress_never_falls_and_what_it_raises_stops_the_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REPORT_S", 1e-3)
    calls: list[int] = []

    def stop(done: int, of: int) -> None:
        assert of == 1 << 36
        calls.append(done)
        if len(calls) == 20:
            raise Stopped

    claims = Claims(zeros(tmp_path, 1 << 36), 1 << 20)  # all of it would take a minute
    with pytest.raises(Stopped):
        stream_claims(claims, lambda: SumFold(OPS["sum"], [F32], NanPolicy.PROPAGATE), stop)
    done = claims.done
    time.sleep(0.05)
    assert claims.done == done, "no thread goes on"
    assert calls == sorted(calls)
    assert 0 < calls[-1] < 1 << 36


def _standing() -> int:
    """How many threads stand by in this process."""
    return sum(thread.name.startswith("standing") for thread in threading.enumerate())


@pytest.mark.usefixtures("several_threads")
def test_threads_are_kept_for_the_next_array() -> None:
    array = ArraySource(adversarial(50_000, "float32"))
    summed(array)
    started = _standing()  # earlier tests may have asked for more threads
    names = {thread.ident for _ in range(20) if summed(array).count for thread in threading.enumerate()}
    assert _standing() == started
    assert names == {thread.ident for thread in threading.enumerate()}, "none of them has ended"


@pytest.mark.usefixtures("several_threads")
def test_reductions_at_once_share_the_threads() -> None:
    arrays = [adversarial(40_000 + number, "float64") for number in range(12)]
    with ThreadPoolExecutor(len(arrays)) as pool:
        states = list(pool.map(lambda array: summed(ArraySource(array)).state(), arrays))
    assert states == [ExactState.of(array) for array in arrays]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.usefixtures("several_threads")
def test_a_forked_process_starts_threads_of_its_own() -> None:
    array = ArraySource(np.ones(50_000, np.float32))
    assert summed(array).count == 50_000
    child = os.fork()
    if child == 0:
        os._exit(0 if summed(array).count == 50_000 else 1)
    deadline = time.monotonic() + 20
    while (ended := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    if ended[0] == 0:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert ended == (child, 0)


@pytest.mark.usefixtures("several_threads")
def test_progress_ends_with_everything() -> None:
    calls: list[tuple[int, int]] = []
    summed(ArraySource(np.ones(50_000, np.float32)), progress=lambda done, of: calls.append((done, of)))
    assert calls[-1] == (50_000, 50_000)


@pytest.mark.usefixtures("several_threads")
def test_a_file_that_is_cut_while_it_is_read_is_refused(tmp_path: Path) -> None:
    source = opened(tmp_path, np.ones(1 << 20, np.float32))
    os.truncate(tmp_path / "x.npy", 1 << 12)
    with pytest.raises(InvalidInput, match="became shorter while it was read"):
        summed(source)


@pytest.mark.usefixtures("several_threads")
@pytest.mark.parametrize("op", ["sum", "mean", "norm1", "norm2", "sum_squares"])
def test_a_backend_gives_a_long_file_the_value_of_its_elements_in_another_order(tmp_path: Path, op: str) -> None:
    array = np.random.default_rng().standard_normal(LEAST_BYTES // 4 + 3).astype(np.float32)
    cpu = CpuBackend()
    got = cpu.reduce(opened(tmp_path, array), op)
    want = cpu.reduce(ArraySource(np.repeat(array[::-1], 2)[::2]), op)  # with gaps: its pieces are copied
    assert (got.value, got.state, got.count) == (want.value, want.state, want.count)
    assert got.stages is not None
    assert got.stages.read_s is not None


@pytest.mark.usefixtures("several_threads")
def test_other_policies_for_nan_hold_for_a_long_array() -> None:
    array = np.ones(LEAST_BYTES // 4 + 3, np.float32)
    array[1_000_003] = np.nan
    cpu = CpuBackend()
    assert np.isnan(float(cpu.reduce(ArraySource(array), "sum").value))
    assert cpu.reduce(ArraySource(array), "sum", nan_policy=NanPolicy.OMIT).value == array.size - 1
    with pytest.raises(InvalidInput, match="element 1000003 is NaN"):
        cpu.reduce(ArraySource(array), "sum", nan_policy=NanPolicy.RAISE)
