"""`warpfold describe` prints a line for each column of a table, here and by the service alike."""

import json

from tests.support.shell import Shell

TABLE = "x,y,word\n1,2.5,a\n2,nan,b\n,inf,c\n0,1,d\n"


def test_a_table_is_described_here_and_by_the_service_alike(shell: Shell) -> None:
    (shell.folder / "t.csv").write_text(TABLE)
    here = shell.run("describe", "t.csv", "--local", "--q", "0.5")
    assert here.out.splitlines()[0].split("\t") == [
        "column", "count", "nulls", "nans", "zeros", "mean", "std", "skew", "kurtosis", "min", "quantile_0.5", "max",
    ]  # fmt: skip
    x, y = (line.split("\t") for line in here.out.splitlines()[1:])
    assert (x[:6], x[-3:]) == (["x", "3", "1", "0", "1", "1.0"], ["0", "1.0", "2"])
    assert (y[:6], y[-3:]) == (["y", "3", "0", "1", "0", "inf"], ["1.0", "2.5", "inf"])
    assert here.err.startswith("2 columns of 4 rows; exact, correctly rounded; this machine")
    assert shell.run("describe", "t.csv", "--q", "0.5").out == here.out
    asked = json.loads(shell.run("describe", "t.csv", "--local", "--json", "--column", "x").out)
    assert asked["rows"] == 4
    assert [row["nulls"] for row in asked["columns"]] == [1]


def test_a_column_that_is_not_there_or_holds_words_is_refused(shell: Shell) -> None:
    (shell.folder / "t.csv").write_text(TABLE)
    for column, says in (("z", "there is no column 'z'"), ("word", "word")):
        refused = shell.run("describe", "t.csv", "--column", column, "--local")
        assert refused.code == 2
        assert says in refused.err
