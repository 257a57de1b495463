"""The table of special values of the page about quantiles is what Warpfold, NumPy and pandas give."""

import re
import warnings
from pathlib import Path

import numpy as np
import pandas
import pytest

from warpfold.client import local
from warpfold.kernels.errors import NoElements

PAGE = Path(__file__).parents[2] / "docs" / "quantiles.md"
ROWS = re.findall(r"^\| (none|[-\di][^|]*) \| ([\d.]+) \| (\S+) \| (\S+) \| (\S+) \|$", PAGE.read_text(), re.MULTILINE)


def written(value: float) -> str:
    return str(float(value))


@pytest.mark.parametrize(("elements", "q", "ours", "numpys", "pandas_"), ROWS)
def test_a_row_of_the_table_is_true(elements: str, q: str, ours: str, numpys: str, pandas_: str) -> None:
    array = np.array([float(each) for each in elements.split(", ")] if elements != "none" else [])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert written(pandas.Series(array).quantile(float(q))) == pandas_
        if numpys != "error":
            assert written(np.quantile(array, float(q))) == written(float(numpys))
    if ours == "none":
        with pytest.raises(NoElements):
            local.reduce(array, "quantile", q=float(q))
    else:
        assert written(local.reduce(array, "quantile", q=float(q)).value) == written(float(ours))


def test_the_table_has_what_others_give_otherwise() -> None:
    assert len(ROWS) == 10
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        assert np.isinf(np.median([1e308, 1.7e308]))
        assert np.isinf(pandas.Series([1e308, 1.7e308]).median())
