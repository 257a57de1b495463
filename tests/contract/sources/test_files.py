"""Many files as one array."""

import itertools
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from pydantic import TypeAdapter, ValidationError

from warpfold.contract.folders import Folders
from warpfold.contract.sources import files
from warpfold.contract.sources.files import FilesSource
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.source import ArraySource
from warpfold.kernels.sources.chained import ChainedSource
from warpfold.kernels.sources.sequential import Elements, SequentialSource

h5py = pytest.importorskip("h5py")
FILES: TypeAdapter[FilesSource] = TypeAdapter(FilesSource)


def opened(root: Path, **options: Any) -> Elements:
    asked = FILES.validate_python({"type": "files", **options})
    return FILES.validate_json(asked.model_dump_json()).open(Folders((root,), root))


def refused(root: Path, **options: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        CpuBackend().reduce(opened(root, **options), "sum")
    assert (caught.value.field or "").startswith("source.")
    return str(caught.value)


def test_a_thousand_files_are_one_array(data_root: Path) -> None:
    (data_root / "run").mkdir()
    whole = np.random.default_rng(2).standard_normal(7000) * 10.0 ** np.arange(7000 // 1000).repeat(1000)
    for number, part in enumerate(np.split(whole, 1000)):
        np.save(data_root / "run" / f"{number:04}.npy", part)
    backend = CpuBackend()
    source = opened(data_root, glob="run/*.npy")
    assert isinstance(source, ChainedSource)
    want = backend.reduce(source, "sum")
    np.save(data_root / "whole.npy", whole)
    assert backend.reduce(opened(data_root, paths=["whole.npy"]), "sum").state == want.state


def test_any_order_of_files_and_formats_gives_the_same_bits(data_root: Path) -> None:
    backend = CpuBackend()
    parts = np.random.default_rng(4).standard_normal((4, 1000))
    np.save(data_root / "0", parts[0])
    np.savez(data_root / "1", a=parts[1])
    np.savez_compressed(data_root / "2", a=parts[2])
    with h5py.File(data_root / "3.h5", "w") as file:
        file.create_dataset("a", data=parts[3], chunks=(64,))
    names = ["0.npy", "1.npz", "2.npz", "3.h5"]
    states = {backend.reduce(opened(data_root, paths=order), "sum").state for order in itertools.permutations(names)}
    assert len(states) == 1
    source = opened(data_root, paths=names)
    assert isinstance(source, SequentialSource)
    assert source.count == 4000
    assert backend.reduce(source, "argmin").value == int(np.argmin(parts))


def test_nulls_of_all_files_are_counted(data_root: Path) -> None:
    for number in range(3):
        with h5py.File(data_root / f"{number}.nc", "w") as file:
            file["t"] = np.array([number, -9, 5, -9], np.int32)
            file["t"].attrs["missing_value"] = np.int32(-9)
    source = opened(data_root, glob="*.nc", array="t")
    assert isinstance(source, SequentialSource)
    assert CpuBackend().reduce(source, "sum").value == 18
    assert source.tally.nulls == 6
    assert "at index 1" in refused(data_root, glob="*.nc", array="t", null_policy="raise")


def test_files_of_other_dtypes_are_refused_by_name(data_root: Path) -> None:
    np.save(data_root / "a.npy", np.ones(3))
    np.save(data_root / "b.npy", np.ones(3, np.float32))
    assert refused(data_root, glob="*.npy").startswith("'b.npy' holds float32, and 'a.npy' float64")


def test_a_file_that_is_no_array_is_named(data_root: Path) -> None:
    np.save(data_root / "a.npy", np.ones(3))
    (data_root / "b.npy").write_text("no array")
    os.mkfifo(data_root / "c.npy")
    assert refused(data_root, glob="[ab].npy").startswith("'b.npy' is not a whole .npy file")
    assert refused(data_root, glob="[ac].npy") == "'c.npy' is not a regular file"
    assert refused(data_root, paths=["a.npy", "none.npy"]).startswith("'none.npy' cannot be read: no such file")


def test_a_file_that_changes_between_looking_and_reading_is_named(data_root: Path) -> None:
    for name in "ab":
        np.save(data_root / f"{name}.npy", np.ones(1000))
    source = opened(data_root, glob="*.npy")
    np.save(data_root / "b.npy", np.zeros(2000))
    with pytest.raises(InvalidInput, match=r"'b.npy' changed while the job ran"):
        CpuBackend().reduce(source, "sum")


def test_a_file_that_is_cut_while_it_is_read_is_an_error_and_not_the_end_of_the_process(data_root: Path) -> None:
    np.save(data_root / "a.npy", np.ones(100_000))
    source = opened(data_root, glob="*.npy")
    assert isinstance(source, ChainedSource)
    source.read(0, 1)
    with (data_root / "a.npy").open("r+b") as file:
        file.truncate(1000)
    with pytest.raises(InvalidInput, match=r"'a.npy': the file became shorter while it was read"):
        CpuBackend().reduce(source, "sum")


def test_a_pattern_leaves_the_roots_neither_by_dots_nor_by_links(data_root: Path) -> None:
    np.save(data_root.parent / "secret.npy", np.ones(3))
    (data_root / "link").symlink_to(data_root.parent)
    for pattern in ("../*.npy", "link/*.npy", "link/secret.npy", str(data_root.parent / "*.npy")):
        assert "secret.npy" not in refused(data_root, glob=pattern).removeprefix(repr(pattern))
    np.save(data_root / "own.npy", np.ones(3))
    (data_root / "inner").symlink_to(data_root)
    assert opened(data_root, glob="inner/*.npy").count == 3
    for pattern in ("nothing/*.npy", "link/none.npy"):
        assert "secret" not in refused(data_root, glob=pattern)
    with pytest.raises(InvalidInput, match="not allowed"):
        FILES.validate_python({"type": "files", "glob": "../*"}).check("source", (data_root,), 0)
    with pytest.raises(InvalidInput, match="outside") as caught:
        FILES.validate_python({"type": "files", "paths": ["a", "/etc/passwd"]}).check("source", (data_root,), 0)
    assert caught.value.field == "source.paths.1"


def test_a_pattern_that_matches_nothing_or_too_much_is_refused(
    data_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "matches no file" in refused(data_root, glob="*.npy")
    monkeypatch.setattr(files, "MOST_MATCHED", 2)
    for name in "abc":
        np.save(data_root / f"{name}.npy", np.ones(1))
    assert "matches more than 2 files" in refused(data_root, glob="**/*.npy")


def test_a_pattern_that_matches_a_million_files_is_refused_before_all_are_looked_at(
    data_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = iter([f"{number}.npy" for number in range(10**6)])
    monkeypatch.setattr(files, "MOST_MATCHED", 1000)
    monkeypatch.setattr("glob.iglob", lambda *arguments, **options: names)
    assert "matches more than 1,000 files" in refused(data_root, glob="*.npy")
    assert next(names) == "1001.npy"


def test_a_device_is_refused_though_a_root_holds_it(tmp_path: Path) -> None:
    device = FILES.validate_python({"type": "files", "paths": ["/dev/zero"]})
    folders = Folders((Path("/dev"),), tmp_path)
    with pytest.raises(InvalidInput, match=r"'/dev/zero' is not a regular file"):
        device.open(folders)


@pytest.mark.parametrize("named", [{}, {"paths": []}, {"paths": ["a"], "glob": "*"}, {"paths": "a"}, {"glob": ""}])
def test_either_paths_or_a_pattern_name_files(named: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        FILES.validate_python({"type": "files", **named})


def test_tables_of_a_folder_are_one_column(data_root: Path) -> None:
    backend = CpuBackend()
    for number in range(3):
        table = pyarrow.table({"x": [2**53 + 1, None, number], "k": [1, 1, number]})
        pyarrow.parquet.write_table(table, data_root / f"{number}.parquet")
    (data_root / "3.csv").write_text("x,k\n5,1\n,2\n")
    only = {"op": "==", "column": "k", "value": 1}
    source = opened(data_root, glob="[0-9].*", column="x", filter=only)
    assert isinstance(source, SequentialSource)
    result = backend.reduce(source, "sum")
    assert (result.value, result.count, source.tally.nulls) == (3 * (2**53 + 1) + 1 + 5, 5, 3)
    pyarrow.parquet.write_table(pyarrow.table({"x": [1.5]}), data_root / "4.parquet")
    assert refused(data_root, glob="[0-9].*", column="x").startswith("'4.parquet' holds float64, and '0.parquet' int64")
    pyarrow.parquet.write_table(pyarrow.table({"y": [1]}), data_root / "4.parquet")
    assert refused(data_root, glob="[0-9].*", column="x").startswith("'4.parquet' holds no column 'x'")


def test_options_of_arrays_and_of_tables_are_not_mixed() -> None:
    with pytest.raises(ValidationError, match="array is for arrays, column is for tables"):
        FILES.validate_python({"type": "files", "glob": "*", "array": "a", "column": "x"})


@pytest.mark.parametrize("op", ["sum", "mean", "norm2", "max", "argmin", "var"])
def test_long_files_have_the_value_of_one_array(data_root: Path, op: str) -> None:
    whole = np.random.default_rng(3).standard_normal(1 << 20) * 10.0 ** (np.arange(1 << 20) % 40)
    for number, part in enumerate(np.split(whole, [1, 1, 5000, 700_001])):
        np.save(data_root / f"{number}.npy", part)
    got = CpuBackend().reduce(opened(data_root, glob="*.npy"), op)
    want = CpuBackend().reduce(ArraySource(whole), op)
    assert (got.value, got.state, got.count) == (want.value, want.state, want.count)
