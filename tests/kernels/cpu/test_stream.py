"""Reading a source in pieces on several threads."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from warpfold.kernels.cpu import pieces, stream
from warpfold.kernels.cpu.folds import fold_for
from warpfold.kernels.cpu.pieces import MADE_PIECE, OneSource, TwoSources
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import OPS, NanPolicy, Terms
from warpfold.kernels.source import ArraySource, GeneratedSource
from warpfold.kernels.sources.chained import ChainedSource, Link

F32 = DTYPES["float32"]


@dataclass(frozen=True)
class Counted:
    """Elements i, made when read; fails on the pieces that `fails` names."""

    count: int
    fails: Callable[[int], bool] = lambda start: False
    dtype: DType = DTYPES["int64"]

    def read(self, start: int, stop: int) -> NDArray[Any]:
        if self.fails(start):
            raise InvalidInput(f"piece at {start}")
        return np.arange(start, stop, dtype=np.int64)

    def read_into(self, start: int, out: NDArray[np.uint8]) -> None:
        out[:] = self.read(start, start + out.size // 8).view(np.uint8)


def total(source: Any, progress: Callable[[int, int], None] | None = None) -> int:
    fold = stream.stream(
        OneSource(source), lambda: fold_for(OPS["sum"], [source.dtype], NanPolicy.PROPAGATE), progress
    ).fold
    return int(fold.value())


@pytest.mark.parametrize("count", [1, MADE_PIECE - 1, MADE_PIECE, MADE_PIECE + 1, 7 * MADE_PIECE + 5])
def test_every_element_is_read_once(count: int) -> None:
    assert total(Counted(count)) == count * (count - 1) // 2


@pytest.mark.parametrize(("wall_s", "load_s"), [(0.007, 0.3), (3.3, 0.7), (1e-9, 1 / 3)])
def test_no_time_is_negative_where_all_of_it_went_into_loading(
    monkeypatch: pytest.MonkeyPatch, wall_s: float, load_s: float
) -> None:
    def worked(shared: Any, fold: Any, progress: object) -> None:
        shared.load_s = load_s

    monkeypatch.setattr(stream, "_work", worked)
    monkeypatch.setattr(pieces, "usable_cores", lambda: 1)
    monkeypatch.setattr(stream, "working_s", iter([0.0, wall_s]).__next__)
    streamed = stream.stream(OneSource(Counted(0)), lambda: fold_for(OPS["sum"], [F32], NanPolicy.PROPAGATE))
    assert (streamed.load_ms, streamed.kernel_ms) == (wall_s * 1e3, 0.0)


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_the_number_of_threads_changes_nothing(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "usable_cores", lambda: threads)
    source = GeneratedSource("all_exponents", 9 * MADE_PIECE + 11, 4, F32)
    streamed = stream.stream(OneSource(source), lambda: fold_for(OPS["sum"], [F32], NanPolicy.PROPAGATE))
    state = streamed.fold.state()
    assert state is not None
    monkeypatch.undo()
    whole = fold_for(OPS["sum"], [F32], NanPolicy.PROPAGATE)
    whole.add(0, source.read(0, source.count))
    assert state == whole.state()
    assert state.terms is Terms.VALUES


def test_progress_never_falls_and_ends_with_everything() -> None:
    calls: list[tuple[int, int]] = []
    count = 30 * MADE_PIECE
    total(Counted(count), lambda done, of: calls.append((done, of)))
    assert calls[-1] == (count, count)
    assert calls == sorted(calls)


def test_progress_is_reported_piece_by_piece_on_one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "usable_cores", lambda: 1)
    done: list[int] = []
    total(Counted(3 * MADE_PIECE), lambda now, of: done.append(now))
    assert done[:3] == [MADE_PIECE, 2 * MADE_PIECE, 3 * MADE_PIECE]


class Stopped(Exception):
    """Raised by a progress callback."""


@pytest.mark.parametrize("threads", [1, 2])
def test_what_progress_raises_stops_a_reduction_that_would_take_days(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "usable_cores", lambda: threads)

    def stop(done: int, of: int) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        total(GeneratedSource("normal", 1 << 40, 1, F32), stop)


@pytest.mark.parametrize("threads", [1, 4])
def test_of_several_errors_the_first_pieces_is_raised(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "usable_cores", lambda: threads)
    bad = 3 * MADE_PIECE
    for _ in range(5):
        with pytest.raises(InvalidInput, match=f"piece at {bad}$"):
            total(Counted(50 * MADE_PIECE, lambda start: start >= bad))


def test_no_thread_outlives_a_stream() -> None:
    before = threading.active_count()
    total(Counted(5 * MADE_PIECE))
    assert threading.active_count() == before


def test_time_is_shared_between_loading_and_reducing() -> None:
    source = ArraySource(np.ones(1000, dtype=np.float32))
    streamed = stream.stream(OneSource(source), lambda: fold_for(OPS["sum"], [F32], NanPolicy.PROPAGATE))
    assert streamed.load_ms >= 0
    assert streamed.kernel_ms > 0


def test_two_sources_are_read_side_by_side() -> None:
    count = 5 * MADE_PIECE + 3
    streamed = stream.stream(TwoSources(Counted(count), Counted(count)), Together)
    assert streamed.fold.count == count


class Together:
    """Counts the elements that come with their like."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, start: int, part: tuple[NDArray[Any], NDArray[Any]]) -> None:
        assert part[0][0] == part[1][0] == start
        self.count += int((part[0] == part[1]).sum())

    def merge(self, other: "Together") -> None:
        self.count += other.count

    def value(self) -> int:
        return self.count

    def state(self) -> None: ...


@pytest.mark.parametrize(("threads", "size"), [(1, 1 << 20), (16, 1 << 18), (64, MADE_PIECE)])
def test_files_that_follow_each_other_are_read_in_long_pieces_but_all_threads_get_some(
    threads: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "usable_cores", lambda: threads)
    array = np.arange(1 << 24, dtype=np.float32)
    links = [Link(name, array.size, lambda: ArraySource(array)) for name in "abcd"]
    cut = list(OneSource(ChainedSource(F32, links)).begin())
    assert {piece.stop - piece.start for piece in cut} == {size}
    assert np.array_equal(cut[-1].read(), array[-size:])
    made = OneSource(GeneratedSource("normal", 1 << 26, 1, F32)).begin()
    assert {piece.stop - piece.start for piece in made} == {MADE_PIECE}
