"""What is in a file, of this machine and of the server's."""

import json
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from tests.support.service import Service
from tests.support.shell import Shell
from warpfold.client.api import Client


def _write(folder: Path) -> None:
    table = pyarrow.table({"price": [1.5, None, 3], "region": ["EU", "EU", "US"]})
    pyarrow.parquet.write_table(table, folder / "sales.parquet", row_group_size=2)
    np.savez(folder / "two.npz", a=np.ones((2, 3)), b=np.ones(4, np.int8))


@pytest.fixture(scope="module")
def root(service: Service) -> Path:
    """The data root of the service, with two files in a folder."""
    [root] = service.settings.data_roots
    (root / "looks").mkdir(exist_ok=True)  # a process may come back to this module
    _write(root / "looks")
    return root


def test_what_is_in_a_file_of_this_machine_is_shown(shell: Shell) -> None:
    _write(shell.folder)
    price, region = json.loads(shell.run("inspect", "sales.parquet", "--json").out)
    assert 0 < price.pop("bytes") < 1000
    assert price == {
        "name": "price",
        "dtype": "double",
        "reduced_as": "float64",
        "shape": [3],
        "nulls": 1,
        "chunks": [2],
    }
    assert (region["name"], region["dtype"], region["reduced_as"], region["nulls"]) == ("region", "string", None, 0)
    lines = shell.run("inspect", "two.npz").out.splitlines()
    assert [line.split()[:3] for line in lines[-2:]] == [["a", "float64", "2×3"], ["b", "int8", "4"]]
    (shell.folder / "x.csv").write_text("a,b\n1,x\n")
    assert [row["dtype"] for row in json.loads(shell.run("inspect", "x.csv", "--json").out)] == ["int64", "string"]
    of_many = shell.run("inspect", "*.npz")
    assert (of_many.code, of_many.err, "2×3" in of_many.out) == (0, "", True)
    np.savez(shell.folder / "other.npz", c=np.ones(7))
    of_many = shell.run("inspect", "*.npz")
    assert (of_many.code, of_many.err, " 7 " in of_many.out) == (0, "other.npz, the first of 2 files\n", True)
    assert shell.run("inspect", "*.zip").code == 2
    (shell.folder / "broken.parquet").write_bytes(b"PAR1 and no more")
    assert shell.run("inspect", "broken.parquet").code == 2


def test_what_is_in_a_file_of_the_server_is_shown(shell: Shell, root: Path) -> None:
    shown = shell.run("inspect", "--server", "looks/two.npz")
    assert shown.code == 0, shown.err
    assert [line.split()[:3] for line in shown.out.splitlines()[-2:]] == [["a", "float64", "2×3"], ["b", "int8", "4"]]
    several = shell.run("inspect", "--server", "looks/*")
    assert "looks/sales.parquet, the first of 2 files" in several.err
    document = json.loads(shell.run("inspect", "--server", "looks/sales.parquet", "--json").out)
    assert (document["rows"], document["format"]) == (3, "Parquet")
    missing = shell.run("inspect", "--server", "looks/no.npy")
    assert (missing.code, "source.path: 'looks/no.npy' cannot be read: no such file" in missing.err) == (4, True)


def test_a_client_looks_into_a_path_an_upload_or_any_source(client: Client, root: Path) -> None:
    assert client.inspect("looks/sales.parquet").contents[0].nulls == 1
    kept = client.upload(root / "looks" / "sales.parquet")
    assert client.inspect({"type": "dataset", "id": kept.id}).rows == 3
