"""Tables of groups on the command line, by the service and on this machine."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

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
    remote = json.loads(shell.run(*words, "--fingerprint", "--json").out)["result"]
    assert read["fingerprint"] == remote["input"]["fingerprint"] == read["files"][0]["sha256"]
    assert [{**column, "words": None, "fractions": None, "nans": None} for column in local.pop("columns")] == remote[
        "columns"
    ]
    assert local == {name: remote[name] for name in local}


@pytest.mark.parametrize(
    ("array", "op", "shown"),
    [
        (pa.array([Decimal("0.1"), Decimal("0.2")]), "sum", {"words": ["0.3"]}),
        (pa.array([Decimal("0.1"), Decimal("0.2")]), "mean", {"values": [0.15]}),
        (pa.array([Decimal("9" * 70)], pa.decimal256(70)), "max", {"words": ["9" * 70]}),
        (
            pa.array([1, 86_400_000_000], pa.timestamp("us", "UTC")),
            "min",
            {"words": ["1970-01-01T00:00:00.000001+00:00"]},
        ),
        (pa.array([1], pa.timestamp("ns")), "max", {"words": ["1970-01-01T00:00:00.000000001"]}),
        (pa.array([3], pa.date32()), "max", {"words": ["1970-01-04"]}),
        (pa.array([3, 4], pa.duration("s")), "sum", {"values": [7]}),
        (pa.array([2**63 - 1] * 2), "sum", {"values": [2**64 - 2]}),
        (pa.array([2**63 - 1] * 2), "sum_squares", {"values": [2 * (2**63 - 1) ** 2]}),
        (pa.array([2**64 - 1, 1], pa.uint64()), "sum", {"values": [2**64]}),
        (pa.array([float("nan")]), "sum", {"values": ["nan"], "hex": ["nan"]}),
        (pa.array([float("-inf"), 1.0]), "min", {"values": ["-inf"]}),
        (pa.array([None, None], pa.float64()), "mean", {"values": [None], "counts": [0]}),
        (pa.array([None, None], pa.decimal128(5, 2)), "mean", {"values": [None], "hex": [None]}),
    ],
)
def test_json_has_values_of_any_kind_as_the_service_says_them(
    tmp_path: Path, array: pa.Array, op: str, shown: dict[str, Any]
) -> None:
    parquet.write_table(pa.table({"k": ["a"] * len(array), "x": array}), tmp_path / "x.parquet")
    ran = Shell(tmp_path).run("reduce", "x.parquet", "--by", "k", "--column", "x", "--op", op, "--local", "--json")
    assert ran.code == 0, ran.err
    printed = json.loads(ran.out, parse_constant=pytest.fail)
    (column,) = printed["columns"]
    assert {name: column[name] for name in shown} == shown
    assert printed["keys"] == [{"name": "k", "dtype": "string", "values": ["a"]}]


def test_json_has_more_groups_than_a_result_of_the_service(tmp_path: Path) -> None:
    table = pa.table({"k": list(range(10_001)), "x": [0.5] * 10_001})
    parquet.write_table(table, tmp_path / "many.parquet")
    ran = Shell(tmp_path).run("reduce", "many.parquet", "--by", "k", "--column", "x", "--local", "--json")
    assert json.loads(ran.out)["columns"][0]["values"] == [0.5] * 10_001


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
        (("--column", "price", "--axis", "0"), "takes one table, and no other shape"),
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
