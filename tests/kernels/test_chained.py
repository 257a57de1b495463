import os
from pathlib import Path

import numpy as np

from warpfold.kernels.chained import ChainedSource, Link
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.npy import open_array, read_head
from warpfold.kernels.source import ArraySource, Source, extents_of


def linked(folder: Path, arrays: list[Source], most: int) -> ChainedSource:
    opened = [Link(f"{number}", source.count, lambda source=source: source) for number, source in enumerate(arrays)]  # type: ignore[misc]
    chain = ChainedSource(DTYPES["float64"], opened)
    chain.MOST_OPEN = most
    return chain


def test_a_short_chain_of_files_tells_where_its_elements_lie(tmp_path: Path) -> None:
    arrays: list[Source] = []
    for number, count in enumerate((3, 0, 5)):
        np.save(tmp_path / f"{number}.npy", np.full(count, float(number)))
        with (tmp_path / f"{number}.npy").open("rb") as file:
            arrays.append(open_array(file, read_head(file)))
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
    arrays: list[Source] = []
    for number, count in enumerate((3, 0, 5)):
        np.save(tmp_path / f"{number}.npy", np.full(count, float(number)))
        with (tmp_path / f"{number}.npy").open("rb") as file:
            arrays.append(open_array(file, read_head(file)))
    maps = linked(tmp_path, arrays, 3).maps()
    assert maps is not None
    assert [each.tolist() for each in maps] == [[0.0] * 3, [2.0] * 5]
    assert linked(tmp_path, arrays, 2).maps() is None, "too many to stay open"
    assert linked(tmp_path, [*arrays, ArraySource(np.ones(2))], 9).maps() is None, "one is in memory"
