"""How sources are cut for the threads that read them."""

import numpy as np
import pytest

from warpfold.kernels.cuda.staging import parts
from warpfold.kernels.cuda.staging.parts import RingShape, parts_of
from warpfold.kernels.source import ArraySource

SHAPES = [
    RingShape(part_bytes=1 << 10),
    RingShape(part_bytes=1 << 10, most_threads=5, first_bytes=100),
    RingShape(part_bytes=1 << 10, waves=4),
    RingShape(part_bytes=1 << 10, first_bytes=1, waves=3),
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("cores", [1, 16])
def test_every_element_is_in_one_part_within_one_piece(
    monkeypatch: pytest.MonkeyPatch, shape: RingShape, cores: int
) -> None:
    monkeypatch.setattr(parts, "usable_cores", lambda: cores)
    monkeypatch.setattr(parts, "_LEAST_BYTES", 1 << 6)
    for count in (0, 1, 511, 512, 4096, 4097, 20_000):
        first, second = ArraySource(np.empty(count)), ArraySource(np.empty(count, np.int16))
        ends = {id(first): 0, id(second): 0}
        piece = 512
        for part in parts_of([first, second], piece, shape):
            assert part.start == ends[id(part.source)], "the parts of a source come in order"
            assert part.size > 0
            assert part.start // piece == (part.start + part.size - 1) // piece, "a part lies within a piece"
            assert part.size * part.source.dtype.itemsize <= max(shape.part_bytes, part.source.dtype.itemsize)
            ends[id(part.source)] += part.size
        assert set(ends.values()) == {count}


def test_the_first_parts_grow_and_no_part_is_larger_than_the_last_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "usable_cores", lambda: 16)
    source = ArraySource(np.empty(1 << 14, np.uint8))
    sizes = [part.size for part in parts_of([source], 1 << 14, RingShape(part_bytes=1 << 10, first_bytes=100))]
    assert sizes[0] == 100
    assert sizes[:12] == sorted(set(sizes[:12])), "twelve threads, each with a larger part"
    assert set(sizes[12:-1]) == {1 << 10}


def test_a_short_source_is_cut_into_more_parts_than_there_are_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "usable_cores", lambda: 16)
    shape = RingShape(waves=4)
    assert shape.largest(200_000_000) < shape.part_bytes
    assert 200_000_000 / shape.largest(200_000_000) >= 4 * shape.threads()
    assert shape.largest(8 << 30) == shape.part_bytes
    assert shape.largest(1) > 0
