"""Sources whose elements come in order: sizes of pieces, lengths, memory."""

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput, OutOfMemory
from warpfold.kernels.source import ArraySource
from warpfold.kernels.sources import sequential
from warpfold.kernels.sources.chained import ChainedSource, Link
from warpfold.kernels.sources.sequential import SequentialSource, ahead, gathered, in_order, side_by_side

I64 = DTYPES["int64"]


def coming(array: NDArray[Any], *cuts: int, count: int | None = None) -> SequentialSource:
    """`array` as it would be decoded, in pieces that end at `cuts`."""
    return SequentialSource(DTYPES[array.dtype.name], lambda: iter(np.split(array, sorted(cuts))), count)


@given(st.integers(0, 50), st.lists(st.integers(0, 50), max_size=8), st.integers(1, 9))
def test_pieces_of_any_size_become_pieces_of_one_size(count: int, cuts: list[int], size: int) -> None:
    array = np.arange(count)
    source = coming(array, *(min(cut, count) for cut in cuts))
    parts = list(in_order(source, size))
    assert np.concatenate([np.empty(0, np.int64), *parts]).tolist() == array.tolist()
    assert [part.size for part in parts[:-1]] == [size] * len(parts[:-1])
    assert source.tally.elements == count


@pytest.mark.parametrize("op", ["sum", "mean", "max", "argmin", "var", "count_nonzero"])
@pytest.mark.parametrize("strategy", ["exact", "numpy"])
def test_a_source_in_order_gives_the_value_of_its_array(op: str, strategy: str) -> None:
    backend = CpuBackend()
    array = np.random.default_rng(7).standard_normal(300_001)
    want = backend.reduce(ArraySource(array), op, strategy=strategy)
    got = backend.reduce(coming(array, 1, 2, 131_072, 140_000), op, strategy=strategy)
    assert (got.value, got.count, got.state) == (want.value, want.count, want.state)


def test_dot_reads_a_source_in_order_beside_any_other() -> None:
    backend = CpuBackend()
    x, y = np.random.default_rng(8).standard_normal((2, 200_000))
    want = backend.reduce(ArraySource(x), "dot", other=ArraySource(y)).state
    assert backend.reduce(coming(x, 5), "dot", other=ArraySource(y)).state == want
    assert backend.reduce(ArraySource(x), "dot", other=coming(y, 150_000)).state == want
    assert backend.reduce(coming(x, 77), "dot", other=coming(y)).state == want


@pytest.mark.parametrize("lengths", [(3, 4), (4, 3), (8, 4), (4, 8), (0, 1)])
def test_sources_of_other_lengths_are_refused(lengths: tuple[int, int]) -> None:
    first, second = (coming(np.arange(length)) for length in lengths)
    with pytest.raises(InvalidInput, match=f"one of them has {min(lengths)} elements") as caught:
        list(side_by_side((first, second), 4))
    assert caught.value.field == "other"


def test_nothing_at_all_is_an_array_too() -> None:
    backend = CpuBackend()
    assert backend.reduce(coming(np.empty(0)), "sum").value == 0.0
    assert gathered(coming(np.empty(0))).count == 0
    with pytest.raises(InvalidInput):
        backend.reduce(coming(np.empty(0)), "max")


def test_a_promise_of_a_length_is_held_to() -> None:
    with pytest.raises(InvalidInput, match="4 elements were announced, but 3 were read"):
        list(in_order(coming(np.arange(3), count=4), 10))


def test_an_error_of_decoding_ends_the_reduction() -> None:
    def broken() -> Iterator[NDArray[Any]]:
        yield np.ones(1 << 18)
        raise InvalidInput("is damaged")

    with pytest.raises(InvalidInput, match="is damaged"):
        CpuBackend().reduce(SequentialSource(DTYPES["float64"], broken), "sum")


def test_what_progress_raises_ends_the_decoding() -> None:
    made = 0

    def endless() -> Iterator[NDArray[Any]]:
        nonlocal made
        while True:
            made += 1
            yield np.ones(1 << 17)

    def stop(done: int, total: int) -> None:
        assert total >= done
        raise TimeoutError

    with pytest.raises(TimeoutError):
        CpuBackend().reduce(SequentialSource(DTYPES["float64"], endless), "sum", progress=stop)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("reduce")]
    assert made < 1000


def test_what_does_not_fit_in_memory_is_not_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    def require(needed: int, what: str) -> None:
        if needed > 1 << 22:
            raise OutOfMemory(what)

    monkeypatch.setattr(sequential, "require", require)
    assert gathered(coming(np.ones(1000))).count == 1000
    with pytest.raises(OutOfMemory):
        gathered(coming(np.ones(1 << 20)))


def test_items_are_made_one_ahead_and_errors_come_in_their_place() -> None:
    made: list[int] = []

    def items() -> Iterator[int]:
        for number in range(1, 4):
            made.append(number)
            yield number
        raise InvalidInput("behind the third")

    with ahead(items()) as coming_items:
        assert next(coming_items) == 1
        assert next(coming_items) == 2
        assert next(coming_items) == 3
        with pytest.raises(InvalidInput, match="behind the third"):
            next(coming_items)
    assert made == [1, 2, 3]


def test_a_chain_reads_across_its_links_and_keeps_few_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ChainedSource, "MOST_OPEN", 2)
    arrays = [np.arange(start, start + 3 * (start % 3)) for start in range(0, 30, 3)] + [np.arange(100, 105)]
    opened: list[int] = []

    def link(number: int) -> Link:
        def source() -> ArraySource:
            opened.append(number)
            return ArraySource(arrays[number])

        return Link(f"{number}", arrays[number].size, source)

    whole = np.concatenate(arrays)
    chain = ChainedSource(I64, [link(number) for number in range(len(arrays))])
    assert chain.count == whole.size
    for start in range(whole.size):
        for stop in range(start, whole.size + 1):
            assert chain.read(start, stop).tolist() == whole[start:stop].tolist()
    assert CpuBackend().reduce(chain, "sum").value == whole.sum()
