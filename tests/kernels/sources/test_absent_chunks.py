"""What a result says of absent chunks, where several readings of one array found them, and of HDF5 datasets that were
never written."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.array_files import opened, refused
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.sources.absent_chunks import AbsentChunks, WhereAbsent, notice_of
from warpfold.kernels.sources.sequential import noticed

h5py: Any = pytest.importorskip("h5py")


def test_readings_of_one_array_count_each_chunk_once() -> None:
    first, second, other = AbsentChunks("x", 9, "0"), AbsentChunks("x", 9, "0"), AbsentChunks("y", 2, "7")
    first.note(["0/1", "0/2"])
    second.note(["0/2", "1/0"])
    assert notice_of([first, second]) == "3 of 9 chunks of 'x' absent, read as fill value 0"
    other.note((), 2)
    assert (notice_of([other, first, other]) or "").split("; ") == [
        "2 of 2 chunks of 'y' absent, read as fill value 7",
        "2 of 9 chunks of 'x' absent, read as fill value 0",
    ]
    assert notice_of([AbsentChunks("x", 9, "0")]) is None


def test_arrays_of_several_files_are_counted_together() -> None:
    files = [AbsentChunks("", 2, "7", file=name) for name in ("a", "b", "c")]
    for each in files[:2]:
        each.note(["c/1"])
    assert notice_of(files) == "2 of 6 chunks absent, read as fill value 7"


@pytest.mark.parametrize(("fill", "field"), [(None, None), ("0", "missing_chunks")])
def test_chunks_that_nothing_stands_for_are_refused(fill: str | None, field: str | None) -> None:
    absent = AbsentChunks("x", 9, fill, WhereAbsent.RAISE)
    absent.note(())
    with pytest.raises(InvalidInput, match="holds 'x' without its chunk '0/1'") as caught:
        absent.note(["0/1"])
    assert caught.value.field == field


def _written(root: Path, *, rows: int = 2, never: bool = False, **how: Any) -> None:
    created = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if never:
        created.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    with h5py.File(root / "x.h5", "w") as file:
        how = {"chunks": (2, 2), "fillvalue": 7, **how}
        stored = file.create_dataset("x", (6, 4), "i4", dcpl=created, **how)
        if rows:
            stored[:rows] = 1


def _sum(root: Path, **options: Any) -> tuple[Any, str | None]:
    source = opened(root, "x.h5", **options)
    return CpuBackend().reduce(source, "sum").value, noticed([source])


@pytest.mark.parametrize("how", [{}, {"compression": "gzip"}, {"maxshape": (None, 4)}, {"fillvalue": None}])
def test_the_result_says_how_many_chunks_are_absent(data_root: Path, how: dict[str, Any]) -> None:
    _written(data_root, **how)
    fill = how.get("fillvalue", 7) or 0
    assert _sum(data_root) == (8 + 16 * fill, f"4 of 6 chunks of 'x' absent, read as fill value {fill}")


@pytest.mark.parametrize(
    ("select", "notice"),
    [
        ([{"stop": 2}], None),
        ([{"start": 1, "stop": 3}], "2 of 4 chunks of 'x' absent, read as fill value 7"),
        ([{"step": 5}, 0], "1 of 2 chunks of 'x' absent, read as fill value 7"),
    ],
)
def test_only_chunks_of_selected_elements_count(data_root: Path, select: Any, notice: str | None) -> None:
    _written(data_root)
    assert _sum(data_root, select=select)[1] == notice


def test_a_dataset_whose_chunks_are_all_there_needs_no_word(data_root: Path) -> None:
    _written(data_root, rows=6)
    assert _sum(data_root, missing_chunks="raise") == (24, None)


def test_storage_without_chunks_that_was_never_written_counts_as_one(data_root: Path) -> None:
    _written(data_root, rows=0, chunks=None)
    assert _sum(data_root) == (24 * 7, "1 of 1 chunks of 'x' absent, read as fill value 7")
    _written(data_root, rows=1, chunks=None)
    assert _sum(data_root)[1] is None


def test_absent_chunks_are_refused_where_the_request_says_so(data_root: Path) -> None:
    _written(data_root)
    message = refused(data_root, "x.h5", "source.missing_chunks", missing_chunks="raise")
    assert "holds 'x' without 4 of its 6 chunks, and missing_chunks is raise" in message
    assert _sum(data_root, missing_chunks="raise", select=[{"stop": 2}])[0] == 8


def test_chunks_that_are_never_filled_are_refused(data_root: Path) -> None:
    _written(data_root, never=True)
    assert "without 4 of its 6 chunks, and no fill value says what was there" in refused(data_root, "x.h5")
    _written(data_root, never=True, rows=6)
    assert _sum(data_root) == (24, None)
