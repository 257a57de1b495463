"""Uploaded arrays as the worker reads them, and what it says where they are not as they were."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from warpfold.app.datasets.store import Store
from warpfold.contract.folders import Folders
from warpfold.contract.sources import summary_of_source
from warpfold.contract.sources.dataset import DatasetSource
from warpfold.kernels.dtypes import dtype_named
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.npy import head_of
from warpfold.kernels.sources.sequential import gathered, in_order

ID = "ab" * 32


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders((), tmp_path / "datasets")


@pytest.fixture
def file(folders: Folders) -> Path:
    path = Store(folders.datasets).path(ID)
    path.parent.mkdir(parents=True)
    np.save(path, np.arange(6, dtype=np.float32))
    return path


def refused(folders: Folders) -> str:
    with pytest.raises(InvalidInput) as caught:
        DatasetSource(type="dataset", id=ID).open(folders)
    assert caught.value.field == "source.id"
    return str(caught.value)


def test_an_array_is_mapped_not_read(folders: Folders, file: Path) -> None:
    source = gathered(DatasetSource(type="dataset", id=ID).open(folders))
    assert source.read(2, 6).tolist() == [2, 3, 4, 5]
    file.unlink()
    assert source.read(0, 2).tolist() == [0, 1], "what is open is read to the end"


def test_bfloat16_keeps_its_name(folders: Folders, file: Path) -> None:
    ones = np.ones(3, dtype=ml_dtypes.bfloat16)
    file.write_bytes(head_of(dtype_named("bfloat16").numpy, 3) + ones.tobytes())
    source = gathered(DatasetSource(type="dataset", id=ID).open(folders))
    assert (source.dtype.name, source.count) == ("bfloat16", 3)
    assert source.read(0, 3).tolist() == [1, 1, 1]


def test_a_file_with_a_name_is_called_by_it(folders: Folders) -> None:
    source = DatasetSource(type="dataset", id=ID, name="runs/a.npy", array="x")
    with pytest.raises(InvalidInput, match=r"^'runs/a.npy' is not there"):
        source.open(folders)
    assert summary_of_source(source.model_dump()) == "runs/a.npy x"
    assert ID in source.identity()


def test_a_deleted_array_is_said(folders: Folders) -> None:
    assert refused(folders) == f"dataset {ID[:12]} is not there: it was deleted after the job was accepted"


def test_a_line_about_a_job_shows_the_beginning_of_the_id() -> None:
    assert summary_of_source({"type": "dataset", "id": ID, "column": "price"}) == f"dataset {ID[:12]} price"


@pytest.mark.parametrize("change", [-1, 1])
def test_a_file_of_another_length_is_refused(folders: Folders, file: Path, change: int) -> None:
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] if change < 0 else whole + b"x")
    assert "is damaged" in refused(folders)


def test_what_is_no_array_is_refused(folders: Folders, file: Path) -> None:
    file.write_bytes(b"something else")
    assert "cannot be read as a table of text" in refused(folders)


def test_what_cannot_be_read_is_said(folders: Folders, file: Path) -> None:
    file.unlink()
    file.mkdir()
    assert "cannot be read: is a directory" in refused(folders)


def test_an_uploaded_table_or_archive_is_read_with_the_options_of_its_format(folders: Folders, file: Path) -> None:
    table = pyarrow.table({"x": [2**53 + 1, None, 3], "k": [1, 1, 2]})
    pyarrow.parquet.write_table(table, file)
    only = {"op": "==", "column": "k", "value": 1}
    column = DatasetSource.model_validate({"type": "dataset", "id": ID, "column": "x", "filter": only}).open(folders)
    assert [part.tolist() for part in in_order(column, 10)] == [[2**53 + 1]]
    file.write_text("x\n1\n2\n")
    for options in ({}, {"text": "csv"}):
        text = DatasetSource.model_validate({"type": "dataset", "id": ID, **options}).open(folders)
        assert [part.tolist() for part in in_order(text, 10)] == [[1, 2]]
    with file.open("wb") as archive:
        np.savez(archive, a=np.arange(6).reshape(2, 3), b=np.ones(1))
    chosen = {"type": "dataset", "id": ID, "array": "a", "select": [1]}
    assert DatasetSource.model_validate(chosen).open(folders).count == 3
    with pytest.raises(InvalidInput, match=f"dataset {ID[:12]} holds no array 'c'") as caught:
        DatasetSource(type="dataset", id=ID, array="c").open(folders)
    assert caught.value.field == "source.array"
