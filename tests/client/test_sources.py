"""Sources of specs: what is uploaded, and what the service reads."""

from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from tests.support.service import Service
from warpfold.client import Client
from warpfold.client.sources import ManyFiles, source
from warpfold.kernels.errors import InvalidInput


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("https://host/x.csv", {"type": "files", "paths": ["https://host/x.csv"]}),
        ("s3://bucket/*.csv", {"type": "files", "glob": "s3://bucket/*.csv"}),
    ],
)
def test_the_dtype_of_text_goes_to_the_service_that_reads_it(url: str, named: dict[str, object]) -> None:
    with pytest.raises(StopIteration) as made:
        next(source(url, "uint64"))
    assert made.value.value == {**named, "dtype": "uint64"}


@pytest.fixture
def parts(tmp_path: Path) -> list[Path]:
    """Three tables in three formats, whose column x has 2.5, 7 and 1e300, and nulls."""
    pyarrow.parquet.write_table(pyarrow.table({"x": [2.5, None], "k": ["a", "b"]}), tmp_path / "1.parquet")
    (tmp_path / "2.tsv").write_text("x\tk\n7.0\ta\n")
    (tmp_path / "3.csv").write_text("x,k\n1e300,a\n,b\n,b\n")
    return [tmp_path / name for name in ("1.parquet", "2.tsv", "3.csv")]


def test_several_files_are_one_array_in_any_order(client: Client, parts: list[Path]) -> None:
    result = client.reduce(parts, as_one=True, column="x")
    assert (result.value, result.count, result.nulls) == (1e300, 3, 3)
    assert result.input is not None
    assert [(file["name"], file["elements"], file["nulls"]) for file in result.input.files] == [
        (str(path), elements, nulls) for path, (elements, nulls) in zip(parts, [(1, 1), (1, 0), (1, 2)], strict=True)
    ]
    assert client.reduce(parts[::-1], as_one=True, column="x").state == result.state
    means = client.groupby(parts, "k").mean("x")
    assert means.to_pydict() == {"k": ["a", "b"], "x": [1e300 / 3, None]}


def test_files_of_the_server_are_named_beside_those_of_this_machine(
    service: Service, client: Client, tmp_path: Path
) -> None:
    [root] = service.settings.data_roots
    np.save(root / "as-one.npy", np.array([1e16, 3.0]))
    np.save(tmp_path / "here.npy", np.array([2.0, -1e16]))
    result = client.reduce([tmp_path / "here.npy", "as-one.npy"], as_one=True)
    assert (result.value, result.count) == (5.0, 4)
    assert result.input is not None
    assert [file["name"] for file in result.input.files] == ["as-one.npy", str(tmp_path / "here.npy")]


def test_files_that_are_not_one_array_are_refused_by_name_before_one_is_sent(tmp_path: Path, parts: list[Path]) -> None:
    nowhere = Client("http://127.0.0.1:9", "wf_x", patience_s=0)
    np.save(tmp_path / "a.npy", np.ones(3))
    np.save(tmp_path / "b.npy", np.ones(3, np.float32))
    (tmp_path / "4.csv").write_text("y,k\n1,a\n")
    two = [tmp_path / "a.npy", tmp_path / "b.npy"]
    with pytest.raises(InvalidInput, match=r"b.npy holds float32, and .*a.npy float64"):
        nowhere.reduce(two, as_one=True)
    with pytest.raises(InvalidInput, match=r"4.csv holds no column 'x'"):
        nowhere.reduce([*parts, tmp_path / "4.csv"], as_one=True, column="x")
    with pytest.raises(InvalidInput, match=r"4.csv holds no column 'x'"):
        nowhere.groupby([*parts, tmp_path / "4.csv"], "k").sum("x")
    with pytest.raises(InvalidInput, match="a pattern of files on the server"):
        nowhere.reduce([two[0], "s3://bucket/*.npy"], as_one=True)
    for wrong in ([1.5], [], np.ones(3), [two[0], np.ones(3)]):
        with pytest.raises(TypeError, match="as_one takes a list of files"):
            nowhere.reduce(wrong, as_one=True)


def test_an_array_in_a_file_of_another_format_has_its_axes(client: Client, tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = np.arange(6.0).reshape(2, 3)
    assert client.reduce(tmp_path / "x.h5", axis=1).tolist() == [3.0, 12.0]
    with pytest.raises(InvalidInput, match="there is no axis 2: the array has 2 axes"):
        client.reduce(tmp_path / "x.h5", axis=2)


def test_what_a_client_can_know_is_refused_by_name_before_anything_is_sent(tmp_path: Path, parts: list[Path]) -> None:
    nowhere = Client("http://127.0.0.1:9", "wf_x", patience_s=0)
    np.save(tmp_path / "matrix.npy", np.ones((3, 4)))
    (tmp_path / "x.csv").write_text("x\n1\n")
    np.savez(tmp_path / "two.npz", a=np.ones(3), b=np.ones(3))
    for data, options, message in (
        (parts[0], {"column": "price"}, r"1.parquet holds no column 'price'"),
        (parts[0], {"column": "k"}, r"1.parquet holds column 'k' as string, which is not reduced"),
        (tmp_path / "two.npz", {"array": "c"}, r"two.npz holds no array 'c'"),
        (tmp_path / "matrix.npy", {"axis": 2}, r"matrix.npy: .*axis 2"),
        (np.ones((200, 100)), {"axis": (0, 2)}, r"the array: .*axis 2"),
        (np.ones((200, 100)), {"axis": "time"}, r"the array: .*no axis 'time'"),
        (tmp_path / "matrix.npy", {"axis": ["time", 0]}, r"matrix.npy: is of a format without names of dimensions"),
        (tmp_path / "matrix.npy", {"op": "sun"}, r"unknown op 'sun'; did you mean 'sum'\?"),
        (np.ones(20_000), {"op": "sun"}, r"unknown op 'sun'; did you mean 'sum'\?"),
        (tmp_path / "matrix.npy", {"op": "quantile", "q": 3}, r"q is 3; a quantile lies between 0 and 1"),
        (tmp_path / "x.csv", {"dtype": "float31"}, r"unknown dtype 'float31'; did you mean 'float32'"),
        (tmp_path / "x.csv", {"column": "x", "decimal": "!"}, r"x.csv: Input should be '.' or ','"),
        (parts[0], {"column": "x", "strategy": "exakt"}, r"unknown strategy 'exakt'; did you mean 'exact'\?"),
        ([*parts], {"column": "x", "as_one": True, "ddof": 1}, r"sum takes no ddof"),
    ):
        with pytest.raises(InvalidInput, match=message):
            nowhere.reduce(data, **options)
    for asked, message in (
        ({"k": "sum"}, r"1.parquet holds column 'k' as string"),
        ({"x": "summ"}, r"unknown op 'summ'; did you mean 'sum'\?"),
    ):
        with pytest.raises(InvalidInput, match=message):
            nowhere.groupby(parts[0], "x").agg(asked)


def test_a_pattern_of_the_server_is_one_array() -> None:
    assert ManyFiles(["runs/*.npy"]).of_uploads(()) == {"type": "files", "glob": "runs/*.npy"}
