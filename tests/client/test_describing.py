"""A description of a table is a frame of its library, whose values are those of pandas, rounded once."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from warpfold.client import Client

FRAME = pd.DataFrame({"x": [1, 2, 4, 0, 9], "y": [0.5, np.nan, 2.5, -1.0, 3.0], "word": list("abcde")})


def test_a_frame_and_a_file_are_described_as_pandas_does(client: Client, tmp_path: Path) -> None:
    made = client.describe(FRAME)
    assert list(made["column"]) == ["x", "y"]
    wanted = FRAME.describe()
    for number, name in enumerate(("x", "y")):
        for ours, theirs in (("count", "count"), ("mean", "mean"), ("min", "min"), ("quantile_0.25", "25%")):
            assert made[ours][number] == wanted[name][theirs]
        assert made["std"][number] == pytest.approx(wanted[name]["std"], rel=1e-15)
        assert made["skew"][number] == pytest.approx(FRAME[name].skew(), rel=1e-14)
        assert made["kurtosis"][number] == pytest.approx(FRAME[name].kurt(), rel=1e-14)
    assert made[["nulls", "nans", "zeros"]].to_numpy().tolist() == [[0, 0, 1], [0, 1, 0]]
    path = tmp_path / "f.csv"
    pl.DataFrame({"x": [1.5, float("nan"), None], "when": ["a", "b", "c"]}).write_csv(path)
    (row,) = client.describe(path, q=[0.5]).to_pylist()
    assert [row[name] for name in ("column", "count", "nulls", "nans", "max")] == ["x", 1, 1, 1, 1.5]


def test_what_is_no_table_of_numbers_is_refused(client: Client) -> None:
    with pytest.raises(TypeError, match="describe a file or a frame"):
        client.describe("https://example.org/a.parquet")
    with pytest.raises(KeyError, match="there is no column 'z'"):
        client.describe(FRAME, ["z"])
