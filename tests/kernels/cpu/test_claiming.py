"""Long arrays that threads reduce by taking pieces."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from warpfold.kernels.cpu import claiming
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.cpu.claiming import stream_claims
from warpfold.kernels.cpu.claims import LEAST_BYTES, Claims
from warpfold.kernels.cpu.folds.sums import SumFold
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import ExactState
from warpfold.kernels.npy import open_array, read_head
from warpfold.kernels.ops import OPS, NanPolicy
from warpfold.kernels.source import ArraySource, FileBytes, FileSource

PIECE = 1 << 10


@pytest.fixture(autouse=True)
def _several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claiming, "_SHARE_BYTES", 1)
    monkeypatch.setattr(claiming, "usable_cores", lambda: 5)


def opened(folder: Path, array: NDArray[np.generic]) -> ArraySource:
    np.save(folder / "x.npy", array)
    with (folder / "x.npy").open("rb") as file:
        return open_array(file, read_head(file))


def summed(
    source: ArraySource | FileSource,
    op: str = "sum",
    progress: Callable[[int, int], None] | None = None,
    piece: int = PIECE,
) -> SumFold:
    make = lambda: SumFold(OPS[op], source.dtype, NanPolicy.PROPAGATE)  # noqa: E731 - a fold for each thread
    return stream_claims(Claims(source, piece), make, progress).fold


def zeros(folder: Path, count: int) -> FileSource:
    """A sparse file of float32."""
    with (folder / "x").open("w+b") as file:
        file.truncate(4 * count)
        return FileSource(DTYPES["float32"], count, FileBytes(file.fileno(), 0), 0)


def adversarial(count: int, dtype: str) -> NDArray[np.generic]:
    """Finite floats of all exponents and both signs, of which the second half takes a part away again."""
    row = DTYPES[dtype]
    random = np.random.default_rng(count)
    bits = random.integers(0, 256, count * row.itemsize, np.uint8).view(row.numpy)
    array = np.where(np.isfinite(bits), bits, row.numpy.type(-0.0))
    array[count // 2 : count // 2 + count // 4] = -array[: count // 4]
    return array


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


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, -0.0])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_values_are_seen_wherever_they_are(dtype: str, special: float) -> None:
    for at in (0, 5000, 9999):
        array = np.full(10_000, -0.0 if special == 0 else 1.0, dtype)
        array[at] = special
        assert summed(ArraySource(array)).state() == ExactState.of(array)


@pytest.mark.parametrize("threads", [1, 2, 16])
def test_the_number_of_threads_changes_nothing(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claiming, "usable_cores", lambda: threads)
    array = adversarial(50_000, "float64")
    assert summed(ArraySource(array)).state() == ExactState.of(array)


class Stopped(Exception):
    """Raised by a progress callback."""


def test_progress_never_falls_and_what_it_raises_stops_the_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claiming, "REPORT_S", 1e-3)
    calls: list[int] = []

    def stop(done: int, of: int) -> None:
        assert of == 1 << 36
        calls.append(done)
        if len(calls) == 20:
            raise Stopped

    before = threading.active_count()
    with pytest.raises(Stopped):
        summed(zeros(tmp_path, 1 << 36), progress=stop, piece=1 << 20)  # all of it would take a minute
    assert threading.active_count() == before
    assert calls == sorted(calls)
    assert 0 < calls[-1] < 1 << 36


def test_progress_ends_with_everything() -> None:
    calls: list[tuple[int, int]] = []
    summed(ArraySource(np.ones(50_000, np.float32)), progress=lambda done, of: calls.append((done, of)))
    assert calls[-1] == (50_000, 50_000)


def test_a_file_that_is_cut_while_it_is_read_is_refused(tmp_path: Path) -> None:
    source = opened(tmp_path, np.ones(1 << 20, np.float32))
    os.truncate(tmp_path / "x.npy", 1 << 12)
    with pytest.raises(InvalidInput, match="became shorter while it was read"):
        summed(source)


@pytest.mark.parametrize("op", ["sum", "mean", "norm1", "norm2", "sum_squares"])
def test_a_backend_gives_a_long_file_the_value_of_its_elements_in_another_order(tmp_path: Path, op: str) -> None:
    array = np.random.default_rng().standard_normal(LEAST_BYTES // 4 + 3).astype(np.float32)
    cpu = CpuBackend()
    got = cpu.reduce(opened(tmp_path, array), op)
    want = cpu.reduce(ArraySource(np.repeat(array[::-1], 2)[::2]), op)  # with gaps: its pieces are copied
    assert (got.value, got.state, got.count) == (want.value, want.state, want.count)
    assert got.stages is not None
    assert got.stages.read_s is not None


def test_other_policies_for_nan_hold_for_a_long_array() -> None:
    array = np.ones(LEAST_BYTES // 4 + 3, np.float32)
    array[1_000_003] = np.nan
    cpu = CpuBackend()
    assert np.isnan(float(cpu.reduce(ArraySource(array), "sum").value))
    assert cpu.reduce(ArraySource(array), "sum", nan_policy=NanPolicy.OMIT).value == array.size - 1
    with pytest.raises(InvalidInput, match="element 1000003 is NaN"):
        cpu.reduce(ArraySource(array), "sum", nan_policy=NanPolicy.RAISE)
