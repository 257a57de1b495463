"""Tables of groups on the command line, by the service and on this machine."""

import json

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.support.shell import Shell

CSV = "region,price,sold\nsouth,1e16,3\nnorth,2.5,1\nsouth,2.0,5\n,7.0,9\nnorth,-2.5,1\n"


def test_a_line_has_a_group_wherever_it_is_computed(shell: Shell) -> None:
    (shell.folder / "sales.csv").write_text(CSV)
    words = ("reduce", "sales.csv", "--by", "region", "--column", "price,sold", "--op", "sum,max")
    wanted = (
        "region\tprice_sum\tprice_max\tsold_sum\tsold_max\n"
        "north\t0.0\t2.5\t2\t1\n"
        "south\t1.0000000000000002e+16\t1e+16\t8\t5\n"
    )
    alone = Shell(shell.folder)
    for shown in (shell.run(*words), alone.run(*words, "--local")):
        assert shown.out == wanted
        assert shown.err.startswith("2 groups of 4 rows; exact, correctly rounded; ")
        assert shown.err.rstrip().endswith("1 row without a key left out")
    local = json.loads(alone.run(*words, "--local", "--fingerprint", "--json").out)
    read = local.pop("input")
    remote = json.loads(shell.run(*words, "--fingerprint", "--json").out)["result"]["input"]
    assert read["fingerprint"] == remote["fingerprint"] == read["files"][0]["sha256"]
    assert local["columns"]["sold_max"] == [1, 5]
    assert json.loads(shell.run(*words, "--json").out)["result"]["groups"] == 2


def test_the_table_is_written_to_a_file(shell: Shell) -> None:
    table = pa.table({"k": list(range(10_001)), "x": [0.5] * 10_001})
    parquet.write_table(table, shell.folder / "many.parquet")
    words = ("reduce", "many.parquet", "--by", "k", "--column", "x")
    assert shell.run(*words, "-o", "out.parquet").out == ""
    assert parquet.read_table(shell.folder / "out.parquet")["x_sum"].to_pylist() == [0.5] * 10_001
    shown = Shell(shell.folder).run(
        *words, "--local", "--filter", '{"op": "<", "column": "k", "value": 2}', "-o", "out.csv"
    )
    assert shown.code == 0
    assert (shell.folder / "out.csv").read_text() == '"k","x_sum"\n0,0.5\n1,0.5\n'


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "needs --column"),
        (("--column", "prize", "--local"), "holds no column 'prize'; did you mean 'price'"),
        (("--column", "prize"), "holds no column 'prize'; did you mean 'price'"),
        (("--column", "price", "--op", "summ"), "unknown op 'summ'"),
        (("--column", "price", "--axis", "0"), "takes one file that is a table"),
        (("--column", "price", "-o", "x.npy"), "should end in .csv"),
        (("--column", "price", "-o", "no/x.csv"), "there is no folder no"),
        (("--column", "price", "--strategy", "numpy"), "groups have one strategy"),
        (("--column", "price", "--op", "prod", "--backend", "dask"), "prod is not combined from partitions"),
        (("--column", "price", "--backend", "dask", "--partitions", "200000"), "less than or equal to 100000"),
    ],
)
def test_what_is_wrong_is_said(shell: Shell, words: tuple[str, ...], message: str) -> None:
    (shell.folder / "sales.csv").write_text(CSV)
    shown = Shell(shell.folder).run("reduce", "sales.csv", "--by", "region", *words)
    assert shown.code == 2
    assert message in " ".join(shown.err.replace("│", " ").split())
