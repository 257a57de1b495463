import json
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.support.shell import Shell


def test_an_axis_prints_a_line_for_each_value_or_each_row(shell: Shell) -> None:
    np.save(shell.folder / "cube.npy", np.arange(24.0).reshape(2, 3, 4))
    alone = Shell(shell.folder)
    for words in (("--axis", "0,2"), ("--axis", "0,2", "--local")):
        asked = shell if "--local" not in words else alone
        assert asked.run("reduce", "cube.npy", *words).out == "60.0\n92.0\n124.0\n"
    done = alone.run("reduce", "cube.npy", "--axis", "-1", "--op", "max", "--local")
    assert done.out == "3.0\t7.0\t11.0\n15.0\t19.0\t23.0\n"
    assert done.err.startswith("max of 24 elements as float64, shape 2 × 3; exact by rows, correctly rounded; ")


def test_segments_have_a_length_or_offsets(shell: Shell) -> None:
    alone = Shell(shell.folder)
    assert alone.run("reduce", "samples.npy", "--segments", "2", "--local").out == "1e+16\n-1e+16\n"
    done = alone.run("reduce", "samples.npy", "--segments", "0,0,3", "--op", "max", "--local", "--json")
    assert json.loads(done.out)["values"] == [None, 1e16]


def test_windows_have_rows_or_expand_and_running_values_have_names(shell: Shell) -> None:
    np.save(shell.folder / "steps.npy", np.array([[1.0, 2.0, 4.0], [8.0, 16.0, 32.0]]))
    alone = Shell(shell.folder)
    cases = (
        (("--op", "cumsum"), "1.0\n3.0\n7.0\n15.0\n31.0\n63.0\n"),
        (("--op", "cumcount", "--segments", "4"), "1\n2\n3\n4\n1\n2\n"),
        (("--rolling", "2", "--axis", "1", "--op", "mean"), "null\t1.5\t3.0\nnull\t12.0\t24.0\n"),
        (
            ("--rolling", "3", "--centre", "--min-count", "1", "--axis", "1", "--op", "max"),
            "2.0\t4.0\t4.0\n16.0\t32.0\t32.0\n",
        ),
        (("--expanding", "--min-count", "2", "--segments", "3", "--op", "min"), "null\n1.0\n1.0\nnull\n8.0\n8.0\n"),
    )
    for words, printed in cases:
        assert alone.run("reduce", "steps.npy", *words, "--local").out == printed
    assert shell.run("reduce", "steps.npy", *cases[2][0]).out == cases[2][1]
    for asked, more in ((shell, []), (alone, ["--local"])):
        assert asked.run("reduce", "steps.npy", "--rolling", "6", "-o", "few.npy", *more).code == 0
        assert np.array_equal(np.load(shell.folder / "few.npy"), [np.nan] * 5 + [63.0], equal_nan=True)


def test_windows_have_times_and_keys_of_the_same_table(shell: Shell) -> None:
    times = pa.array([0, 1000, 1500, 1500, 9000], pa.timestamp("ms"))
    rows = pa.table({"x": [1.0, 2.0, 4.0, 8.0, 16.0], "t": times, "k": [1, 2, 1, 2, 1]})
    parquet.write_table(rows, shell.folder / "trips.parquet")
    asked = ("reduce", "trips.parquet", "--column", "x")
    for here, more in ((shell, []), (Shell(shell.folder), ["--local"])):
        timed = here.run(*asked, "--width", "1s", "--over", "t", "--closed", "both", *more)
        assert timed.out == "1.0\n3.0\n14.0\n14.0\n16.0\n", timed.err
        assert here.run(*asked, "--op", "cumsum", "--by", "k", *more).out == "1.0\n2.0\n5.0\n10.0\n21.0\n"


def test_a_job_with_an_axis_is_shown_with_its_shape(shell: Shell) -> None:
    job = json.loads(shell.run("reduce", "samples.npy", "--segments", "1", "--json").out)
    assert job["result"]["values"] == [1e16, 1.0, -1e16]
    listed = shell.run("jobs", "--limit", "1").out
    assert "array of 3" in listed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--axis", "x", "--local"), "no names of dimensions"),
        (("--axis", "0", "--segments", "2"), "cannot be combined with --axis"),
        (("--keepdims",), "needs --axis"),
        (("--rolling", "0"), "is less than 1"),
        (("--rolling", "2", "--expanding"), "is one of --rolling, --width, --expanding"),
        (("--rolling", "2", "--op", "cumsum"), "is one of --rolling, --width, --expanding"),
        (("--centre",), "needs a window, such as --rolling"),
        (("--width", "2"), "go together"),
        (("--rolling", "2", "--over", "t"), "go together"),
        (("--rolling", "2", "--axis", "0", "--keepdims"), "a window keeps all axes"),
        (("--rolling", "2", "--min-count", "3", "--local"), "never has more elements"),
        (("--rolling", "2", "--op", "median", "--local"), "windows have sum, mean"),
        (("--axis", "0", "-o", "no/x.npy"), "there is no folder no"),
        (("--axis", "1", "--local"), "there is no axis 1: the array has 1 axis"),
    ],
)
def test_what_is_wrong_is_said(shell: Shell, words: tuple[str, ...], message: str) -> None:
    done = Shell(shell.folder).run("reduce", "samples.npy", *words)
    assert done.code == 2
    assert message in " ".join(done.err.replace("│", " ").split())


def test_very_many_values_are_printed_or_downloaded(shell: Shell) -> None:
    np.save(shell.folder / "wide.npy", np.arange(24_000.0).reshape(2, 12_000))
    done = shell.run("reduce", "wide.npy", "--axis", "0", "-o", "out.npy")
    assert (done.out, done.code) == ("", 0)
    assert "sum of 24,000 elements as float64, shape 12000" in done.err
    values = np.load(shell.folder / "out.npy")
    assert values.tolist() == [2.0 * n + 12_000 for n in range(12_000)]
    assert shell.run("reduce", "wide.npy", "--axis", "0").out.splitlines() == list(map(repr, values.tolist()))
    assert "samples.npy: there is no axis 1" in shell.run("reduce", "samples.npy", "--axis", "1").err
    job_id = json.loads(shell.run("jobs", "--limit", "1", "--json").out)["id"]
    assert "array of 12000" in shell.run("jobs", "--limit", "1").out
    assert "out.csv: " in shell.run("artefact", job_id, "-o", "out.csv").err
    assert (shell.folder / "out.csv").read_text().startswith("axis_0,value,hex,count\n0,12000.0,")
    assert shell.run("artefact", job_id, "--format", "parquet").code == 0
    assert (shell.folder / f"{job_id}.parquet").exists()
    assert shell.run("artefact", job_id, "-o", "out.txt").code == 2
    assert shell.run("artefact", job_id, "--delete").code == 0
    assert "refused: The stored result was deleted" in shell.run("artefact", job_id).err


def test_few_values_go_to_a_file_as_npy_or_csv(shell: Shell) -> None:
    alone = Shell(shell.folder)
    for asked, more in ((shell, []), (alone, ["--local"])):
        assert asked.run("reduce", "samples.npy", "--segments", "1", "-o", "few.npy", *more).code == 0
        assert np.load(shell.folder / "few.npy").tolist() == [1e16, 1.0, -1e16]
        assert (
            asked.run("reduce", "samples.npy", "--segments", "0,2,2,3", "--op", "max", "-o", "few.csv", *more).code == 0
        )
        assert (shell.folder / "few.csv").read_text().splitlines() == [
            "axis_0,value,hex,count",
            "0,1e+16,0x1.1c37937e08000p+53,2",
            "1,,,0",
            "2,-1e+16,-0x1.1c37937e08000p+53,1",
        ]
    for words, message in (
        (("samples.npy", "--segments", "1", "-o", "few.arrow", "--local"), "written as .npy and .csv only"),
        (("samples.npy", "--segments", "1", "-o", "few.txt"), "should end in .npy"),
        (("samples.npy", "-o", "few.npy"), "needs --axis, --segments, a window or several values"),
        (("samples.npy", "--segments", "0,0", "--op", "max", "-o", "few.npy", "--local"), "no missing values"),
    ):
        done = alone.run("reduce", *words)
        assert done.code == 2
        assert message in " ".join(done.err.replace("│", "").split())


def test_decimals_are_printed_in_full_and_times_in_iso_8601(shell: Shell) -> None:
    alone = Shell(shell.folder)
    prices = pa.array([Decimal("0.10"), Decimal("0.20"), Decimal("-7.00")], pa.decimal128(9, 2))
    parquet.write_table(pa.table({"price": prices}), shell.folder / "prices.parquet")
    np.save(shell.folder / "stamps.npy", np.array([[4, 2], [7, 1]], "M8[s]"))
    for asked, more in ((shell, []), (alone, ["--local"])):
        words = asked.run("reduce", "prices.parquet", "--column", "price", "--segments", "2", *more)
        assert words.out == "0.30\n-7.00\n"
        words = asked.run("reduce", "stamps.npy", "--axis", "0", "--op", "max", *more)
        assert words.out == "1970-01-01T00:00:07\n1970-01-01T00:00:02\n"
        asked.run("reduce", "stamps.npy", "--axis", "0", "--op", "max", "-o", "latest.npy", *more)
        assert np.load(shell.folder / "latest.npy").tolist() == np.array([7, 2], "M8[s]").tolist()
        done = asked.run("reduce", "prices.parquet", "--column", "price", "--segments", "2", "-o", "sums.npy", *more)
        assert (done.code, "no decimals" in done.err) == (2, True)
    document = json.loads(alone.run("reduce", "stamps.npy", "--axis", "0", "--op", "mean", "--local", "--json").out)
    assert (document["values"], document["time"][0]["exact"]) == ([6, 2], "11/2")
    document = json.loads(alone.run("reduce", "prices.parquet", "--segments", "2", "--local", "--json").out)
    assert document["decimal"] == ["0.30", "-7.00"]
