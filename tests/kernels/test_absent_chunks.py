"""What a result says of absent chunks, where several readings of one array found them."""

import pytest

from warpfold.kernels.absent_chunks import AbsentChunks, WhereAbsent, notice_of
from warpfold.kernels.errors import InvalidInput


def test_readings_of_one_array_count_each_chunk_once() -> None:
    first, second, other = AbsentChunks("x", 9, "0"), AbsentChunks("x", 9, "0"), AbsentChunks("y", 2, "7")
    first.found(["0/1", "0/2"])
    second.found(["0/2", "1/0"])
    assert notice_of([first, second]) == "3 of 9 chunks of 'x' absent, read as fill value 0"
    other.found((), 2)
    assert (notice_of([other, first, other]) or "").split("; ") == [
        "2 of 2 chunks of 'y' absent, read as fill value 7",
        "2 of 9 chunks of 'x' absent, read as fill value 0",
    ]
    assert notice_of([AbsentChunks("x", 9, "0")]) is None


def test_arrays_of_several_files_are_counted_together() -> None:
    files = [AbsentChunks("", 2, "7", file=name) for name in ("a", "b", "c")]
    for each in files[:2]:
        each.found(["c/1"])
    assert notice_of(files) == "2 of 6 chunks absent, read as fill value 7"


@pytest.mark.parametrize(("fill", "field"), [(None, None), ("0", "missing_chunks")])
def test_chunks_that_nothing_stands_for_are_refused(fill: str | None, field: str | None) -> None:
    absent = AbsentChunks("x", 9, fill, WhereAbsent.RAISE)
    absent.found(())
    with pytest.raises(InvalidInput, match="holds 'x' without its chunk '0/1'") as caught:
        absent.found(["0/1"])
    assert caught.value.field == field
