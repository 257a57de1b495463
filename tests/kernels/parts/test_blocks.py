"""A reduction to very many values block by block: the same values as of the whole, whatever the shape and the order."""

from itertools import combinations, pairwise
from math import prod
from typing import Any

import numpy as np
import pytest

from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.parts.blocks import (
    PanelSource,
    blocks,
    by_position,
    made_runs,
    most_of_block,
    selected,
)
from warpfold.kernels.parts.grouping import AlongAxes, Grouping, Segments
from warpfold.kernels.source import ArraySource, GeneratedSource, PartSource
from warpfold.kernels.sources.sequential import SequentialSource, gathered

CUBE = np.arange(3 * 5 * 4 * 7, dtype=np.int64).reshape(3, 5, 4, 7) % 89


def values_of(sources: Any, shape: tuple[int, ...], grouping: Grouping, most: int) -> list[int]:
    """The sums of products of the sources, made of what each block reads."""
    totals: list[int] = []
    for block in blocks(sources, shape, grouping, most):
        parts = [gathered(source) for source in block.sources]
        read = [part.read(0, part.count) for part in parts]
        product = np.prod(read, axis=0).reshape(block.shape)
        if isinstance(block.grouping, AlongAxes):
            sums = product.sum(axis=block.grouping.reduced(len(block.shape))).reshape(-1)
        else:
            bounds = block.grouping.bounds(product.size)
            sums = np.array([product[a:b].sum() for a, b in pairwise(bounds)])
        assert sums.size == block.values
        totals += sums.tolist()
    return totals


@pytest.mark.parametrize("axes", [axes for count in (1, 2, 3) for axes in combinations(range(4), count)])
@pytest.mark.parametrize("most", [1, 6, 50])
def test_blocks_have_all_values_in_their_order(axes: tuple[int, ...], most: int) -> None:
    truth = CUBE.sum(axis=axes).reshape(-1).tolist()
    squares = (CUBE * CUBE).sum(axis=axes).reshape(-1).tolist()
    for array in (CUBE, np.asfortranarray(CUBE), np.repeat(CUBE, 2, axis=3)[..., ::2]):
        source = ArraySource(array)
        assert values_of([source], CUBE.shape, AlongAxes(axes), most) == truth
        assert values_of([source, ArraySource(CUBE)], CUBE.shape, AlongAxes(axes, keepdims=True), most) == squares


@pytest.mark.parametrize("shape", [(20, 0), (0, 5, 2000), (3, 0, 4)])
def test_no_elements_make_blocks_of_all_values(shape: tuple[int, ...]) -> None:
    grouping = AlongAxes((1,))
    made = list(blocks([ArraySource(np.zeros(shape))], shape, grouping, 7))
    assert all(prod(block.shape) == 0 and block.values <= 7 for block in made)
    assert sum(block.values for block in made) == prod(grouping.result_shape(shape))


def test_a_thousand_million_values_of_nothing_come_block_by_block() -> None:
    shape = (0, 1 << 30)
    made = blocks([ArraySource(np.zeros(shape))], shape, AlongAxes((0,)), 1 << 17)
    first = next(made)
    assert (first.shape, first.values, sum(1 for _ in made)) == ((0, 1 << 17), 1 << 17, (1 << 13) - 1)


def test_a_thousand_million_segments_are_cut_without_a_list_of_them() -> None:
    count = 1 << 30
    made = blocks([GeneratedSource("arange", count, 0, DTYPES["float64"])], (count,), Segments(None, 1), 1 << 17)
    assert (next(made).values, sum(1 for _ in made)) == (1 << 17, (1 << 13) - 1)


def test_short_columns_are_read_in_strips() -> None:
    matrices = np.arange(2 * 3 * 3001, dtype=np.int64).reshape(2, 3, 3001)
    made = list(blocks([ArraySource(matrices)], matrices.shape, AlongAxes((1,)), 2048))
    assert all(isinstance(block.sources[0], PanelSource) for block in made)
    assert [block.values for block in made] == [1365, 1365, 271] * 2
    whole = list(blocks([ArraySource(matrices)], matrices.shape, AlongAxes((1,)), 2048, strips=False))
    assert [block.values for block in whole] == [2048, 953] * 2
    assert values_of([ArraySource(matrices)], matrices.shape, AlongAxes((1,)), 2048) == matrices.sum(1).ravel().tolist()


@pytest.mark.parametrize("segments", [Segments(None, 4), Segments(tuple(range(0, 400, 3)))])
def test_segments_are_cut_between_segments(segments: Segments) -> None:
    flat = CUBE.reshape(-1)
    bounds = segments.bounds(flat.size).tolist()
    truth = [int(flat[a:b].sum()) for a, b in pairwise(bounds)]
    for array in (CUBE, np.asfortranarray(CUBE)):
        assert values_of([ArraySource(array)], CUBE.shape, segments, 10) == truth


def test_what_is_made_by_position_is_cut_where_it_is_in_one_piece() -> None:
    made = GeneratedSource("arange", 60, 0, DTYPES["int64"])
    cube = np.arange(60).reshape(5, 4, 3)
    assert values_of([made], (5, 4, 3), AlongAxes((1,)), 6) == cube.sum(1).ravel().tolist()
    assert len(list(blocks([made], (5, 4, 3), AlongAxes((1,)), 6))) == 3


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 2), (0, 3), (1, 3)])
@pytest.mark.parametrize("most", [1, 6, 50])
def test_what_is_made_by_position_is_cut_into_runs(axes: tuple[int, ...], most: int) -> None:
    made = GeneratedSource("arange", 3 * 5 * 4 * 7, 0, DTYPES["int64"])
    cube = np.arange(3 * 5 * 4 * 7).reshape(3, 5, 4, 7)
    assert values_of([made], cube.shape, AlongAxes(axes), most) == cube.sum(axes).ravel().tolist()
    assert all(block.values <= most for block in blocks([made], cube.shape, AlongAxes(axes), most))


def test_runs_are_read_from_any_element_on() -> None:
    part = (slice(1, 3), slice(0, 5), slice(1, 3), slice(2, 4))
    made = GeneratedSource("arange", 3 * 5 * 4 * 7, 0, DTYPES["int64"])
    runs = selected(made, (3, 5, 4, 7), part)
    cut = np.arange(3 * 5 * 4 * 7).reshape(3, 5, 4, 7)[part].ravel()
    for start, stop in ((0, runs.count), (3, 17), (8, 9)):
        out = np.zeros(8 * (stop - start), np.uint8)
        runs.read_into(start, out)
        assert runs.read(start, stop).tolist() == out.view(np.int64).tolist() == cut[start:stop].tolist()


@pytest.mark.parametrize(
    ("axes", "most", "inner"),
    [((0,), 6, 2), ((1,), 6, 3), ((0, 2), 9, 7), ((0, 1), 5, 2), ((2, 3), 2, 1), ((0, 1, 2), 3, 1)],
)
def test_a_device_makes_a_part_by_the_lengths_of_its_runs(axes: tuple[int, ...], most: int, inner: int) -> None:
    shape = (3, 5, 4, 7)
    made = PartSource(GeneratedSource("arange", 1000, 0, DTYPES["int64"]), 20, prod(shape))
    parts: list[Any] = [block.sources[0] for block in blocks([made], shape, AlongAxes(axes), most, strips=False)]
    lengths = [block.shape for block in blocks([made], shape, AlongAxes(axes), most, strips=False)]
    parts += [  # and parts of parts
        block.sources[0]
        for part, length in zip(parts[:4], lengths[:4], strict=True)
        for block in blocks([part], length, AlongAxes(axes), inner, strips=False)
    ]
    for part in parts:
        generator, runs = made_runs(part) or pytest.fail(f"{part} is not made by a device")
        place = np.arange(part.count)
        indices = runs.first + place // runs.width * runs.pitch + place % runs.width
        assert part.read(0, part.count).tolist() == generator.read(0, 1000)[indices].tolist()


def test_a_part_of_runs_within_runs_is_not_made_by_a_device() -> None:
    made = GeneratedSource("arange", 3 * 5 * 4 * 7, 0, DTYPES["int64"])
    assert made_runs(selected(made, (3, 5, 4, 7), (slice(0, 3), slice(1, 3), slice(0, 4), slice(2, 4)))) is None
    assert made_runs(ArraySource(CUBE)) is None


def test_what_comes_in_order_is_read_once() -> None:
    source = SequentialSource(DTYPES["int64"], lambda: iter([CUBE.reshape(-1)]), CUBE.size, shape=CUBE.shape)
    [block] = blocks([source], CUBE.shape, AlongAxes((0,)), 5)
    assert (block.sources, block.values) == ((source,), prod(CUBE.shape[1:]))


def test_what_comes_in_order_is_gathered_where_its_states_would_take_more() -> None:
    wide = SequentialSource(DTYPES["float64"], lambda: iter([np.ones(2000)]), 2000, shape=(2, 1000))
    assert by_position(wide, 1000, 1000) is wide
    assert isinstance(by_position(wide, 1000, 999), ArraySource)
    tall = SequentialSource(DTYPES["float64"], lambda: iter([]), 1 << 30, shape=(1 << 20, 1024))
    assert by_position(tall, 1024, 999) is tall


def test_a_truth_value_of_any_byte_is_one() -> None:
    stored = np.array([[0, 1, 2], [255, 0, 1]], np.uint8).view(np.bool_)
    panel = PanelSource(stored[:, 1:])
    assert panel.read(0, 4).tolist() == [True, True, False, True]
    out = np.zeros(2, np.uint8)
    panel.read_into(1, out)
    assert out.tolist() == [1, 0]


def test_a_block_whose_states_come_to_the_host_is_smaller_on_a_gpu() -> None:
    assert most_of_block(on_cpu=True, states=False) == most_of_block(on_cpu=True, states=True)
    assert most_of_block(on_cpu=False, states=True) < most_of_block(on_cpu=False, states=False)


def test_a_block_is_smaller_where_little_memory_is_available(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpfold.kernels.parts.blocks.available_bytes", lambda: 1 << 40)
    assert most_of_block(on_cpu=True, states=False) == 1 << 17
    monkeypatch.setattr("warpfold.kernels.parts.blocks.available_bytes", lambda: 1 << 28)
    assert most_of_block(on_cpu=True, states=False) < 1 << 14
