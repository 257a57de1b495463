"""Files on the server, objects and uploads that are read as one array, or as one table."""

import hashlib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from pydantic import TypeAdapter

from warpfold.app.datasets.store import Store
from warpfold.contract.folders import Folders
from warpfold.contract.keyed import open_rows, plan_of
from warpfold.contract.kinds.groupby import GroupbySpec
from warpfold.contract.sources import chaining
from warpfold.contract.sources.files import FilesSource
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.parts.grouping import Segments
from warpfold.kernels.sources.chained import ChainedSource, files_read
from warpfold.kernels.sources.sequential import Elements, FileCount, SequentialSource

FILES: TypeAdapter[FilesSource] = TypeAdapter(FilesSource)


def folders_of(root: Path) -> Folders:
    return Folders((root,), root / "datasets")


def opened(root: Path, **options: Any) -> Elements:
    asked = FILES.validate_python({"type": "files", **options})
    return FILES.validate_json(asked.model_dump_json()).open(folders_of(root))


def uploaded(root: Path, path: Path, name: str | None = None) -> dict[str, str]:
    """Move a file to where uploads lie; returns it as a source names it."""
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    target = Store(root / "datasets").path(sha256)
    target.parent.mkdir(parents=True, exist_ok=True)
    path.rename(target)
    return {"id": sha256, "name": path.name} if name is None else {"id": sha256, "name": name}


def tables(root: Path) -> list[dict[str, str]]:
    """Three uploaded tables in three formats, whose column x has 2.5, 7 and 1e300, and nulls."""
    pyarrow.parquet.write_table(pyarrow.table({"x": [2.5, None], "k": ["a", "b"]}), root / "1.parquet")
    (root / "2.tsv").write_text("x\tk\n7.0\ta\n")
    (root / "3.csv").write_text("x,k\n1e300,a\n,b\n,b\n")
    return [uploaded(root, root / name) for name in ("1.parquet", "2.tsv", "3.csv")]


def test_uploads_and_files_of_the_server_are_one_array_with_the_bits_of_any_order(data_root: Path) -> None:
    parts = [[1e16, 2.0], [3.0], [-1e16, 0.5, 0.25]]
    for number, part in enumerate(parts):
        np.save(data_root / f"{number}.npy", np.array(part))
    uploads = [uploaded(data_root, data_root / f"{number}.npy") for number in (0, 1)]
    source = opened(data_root, paths=["2.npy"], uploads=uploads)
    values = {
        CpuBackend().reduce(opened(data_root, paths=["2.npy"], uploads=order), "sum").state
        for order in (uploads, uploads[::-1])
    }
    assert (CpuBackend().reduce(source, "sum").value, len(values)) == (5.75, 1)
    assert CpuBackend().reduce(source, "argmax").value == 3, "the uploads come after the paths"
    assert files_read([source]) == [FileCount("2.npy", 3, 0), FileCount("0.npy", 2, 0), FileCount("1.npy", 1, 0)]


def test_each_file_has_its_elements_and_its_nulls(data_root: Path) -> None:
    source = opened(data_root, uploads=tables(data_root), column="x")
    assert CpuBackend().reduce(source, "max").value == 1e300
    counts = [FileCount("1.parquet", 1, 1), FileCount("2.tsv", 1, 0), FileCount("3.csv", 1, 2)]
    assert files_read([source]) == counts
    source = opened(data_root, uploads=tables(data_root), column="x")
    assert CpuBackend().reduce(source, "var", ddof=0).count == 3
    assert files_read([source]) == counts, "read twice, and counted once"


def test_row_groups_of_several_files_are_decoded_side_by_side(data_root: Path) -> None:
    """Threads have the bits, the counts and the faults of a reading of one file after another."""
    numbers = np.random.default_rng(38).standard_normal(3000) * 1e9
    for at in range(3):
        part: list[float | None] = numbers[at * 1000 : at * 1000 + 1000].tolist()
        part[7 * at] = None
        pyarrow.parquet.write_table(pyarrow.table({"x": part}), data_root / f"{at}.parquet", row_group_size=90_000)
    begun: list[int | None] = []
    for sections in (True, False):
        source = opened(data_root, glob="*.parquet", column="x")
        assert isinstance(source, SequentialSource)
        assert source.sections is not None
        begun = begun or [section.start for section in source.sections()]
        source = opened(data_root, glob="*.parquet", column="x")
        assert isinstance(source, SequentialSource)
        made = CpuBackend().reduce(source if sections else replace(source, sections=None), "argmax")
        whole = [None if at % 1000 == at // 1000 * 7 else each for at, each in enumerate(numbers.tolist())]
        values = [each for each in whole if each is not None]
        assert (made.value, made.count) == (values.index(max(values)), 2997)
        assert files_read([source]) == [FileCount(f"{at}.parquet", 999, 1) for at in range(3)]
    assert begun == [0, 999, 1998], "places count through all files"
    kept = opened(data_root, glob="*.parquet", column="x", null_policy="propagate")
    by_file = CpuBackend().reduce_groups(kept, (3000,), Segments(length=1000), "count")
    assert by_file.listed() == (None, None, None), "each file has a null"
    with pytest.raises(InvalidInput, match=r"'1\.parquet' holds a null in 'x', at index 7"):
        CpuBackend().reduce(opened(data_root, paths=["1.parquet"] * 2, column="x", null_policy="raise"), "sum")


def test_groups_are_those_of_one_table(data_root: Path) -> None:
    asked = GroupbySpec.model_validate(
        {
            "kind": "groupby",
            "source": {"type": "files", "uploads": tables(data_root)},
            "by": ["k"],
            "aggregations": [{"op": "sum", "column": "x"}],
        }
    )
    rows = open_rows(asked, folders_of(data_root))
    table = CpuBackend().group_by(rows, plan_of(asked))
    assert table.table().to_pydict() == {"k": ["a", "b"], "x_sum": [1e300, 0.0]}
    assert rows.counts() == [FileCount("1.parquet", 2), FileCount("2.tsv", 1), FileCount("3.csv", 3)]


def test_a_fault_names_the_file_as_its_sender_does(data_root: Path) -> None:
    np.save(data_root / "a.npy", np.ones(3))
    np.save(data_root / "b.npy", np.ones(3, np.float32))
    (data_root / "c.npy").write_bytes((data_root / "a.npy").read_bytes()[:-1])
    pyarrow.parquet.write_table(pyarrow.table({"y": [1.5]}), data_root / "d.parquet")
    whole, narrow, damaged = (uploaded(data_root, data_root / f"{name}.npy", f"runs/{name}.npy") for name in "abc")
    table, gone = uploaded(data_root, data_root / "d.parquet"), {"id": "0" * 64, "name": "gone.npy"}
    for second, message, options in (
        (narrow, "'runs/b.npy' holds float32, and 'runs/a.npy' float64: files", {}),
        (damaged, "'runs/c.npy' is damaged", {}),
        (table, "'d.parquet' holds no column 'x'", {"column": "x"}),
        (gone, "'gone.npy' is not there: it was deleted", {}),
    ):
        with pytest.raises(InvalidInput) as caught:
            opened(data_root, uploads=[table if options else whole, second], **options)
        assert str(caught.value).startswith(message), caught.value
        assert caught.value.field in ("source.uploads", "source.column")


@pytest.mark.parametrize(("number", "times"), [(3, 1), (ChainedSource.MOST_OPEN + 1, 2)])
def test_a_few_files_stay_open_from_the_first_look_on(
    data_root: Path, number: int, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in range(number):
        np.save(data_root / f"{at}.npy", np.full(10, at + 0.5))
    looks: list[str] = []
    look = chaining.Reader.look

    def counted(reader: Any, name: chaining.FileNamed) -> Any:
        looks.append(chaining.label_of(name))
        return look(reader, name)

    monkeypatch.setattr(chaining.Reader, "look", counted)
    assert CpuBackend().reduce(opened(data_root, glob="*.npy"), "sum").value == 10 * sum(
        at + 0.5 for at in range(number)
    )
    assert set(Counter(looks).values()) <= {times, times + 1}
    assert len(looks) >= times * number
