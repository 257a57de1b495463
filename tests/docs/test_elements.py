"""The table of special values of the page about picked elements is what Warpfold, NumPy and pandas give."""

import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from warpfold.client import local
from warpfold.kernels.errors import NoElements

PAGE = Path(__file__).parents[2] / "docs" / "elements.md"
ROWS = re.findall(r"^\| `(\w+)` \| (none|[-\w][^|]*) \| (\S+) \| (\S+) \| (\S+) \|$", PAGE.read_text(), re.MULTILINE)


def most_frequent(array: Any) -> float:
    values, counts = np.unique(array, return_counts=True)
    return float(values[counts.argmax()])


NUMPY: Mapping[str, Callable[[Any], float]] = {
    "first": lambda x: x[0],
    "mode": most_frequent,
    "ptp": np.ptp,
    "top_k": lambda x: np.sort(x)[-1],
    "bottom_k": lambda x: np.sort(x)[0],
    "histogram": lambda x: np.histogram(x, [-np.inf, np.inf])[0][0],
}
PANDAS: Mapping[str, Callable[[Any], float]] = {
    "first": lambda x: x.iloc[0],
    "mode": lambda x: x.mode().iloc[0],
    "ptp": lambda x: x.max() - x.min(),
    "top_k": lambda x: x.nlargest(1).iloc[0],
    "bottom_k": lambda x: x.nsmallest(1).iloc[0],
    "histogram": lambda x: pandas.cut(x, [-np.inf, np.inf], include_lowest=True).count(),
}


def written(of: Callable[[Any], Any], array: Any) -> str:
    try:
        return str(float(of(array)))
    except NoElements:
        return "none"
    except (IndexError, ValueError):
        return "error"


@pytest.mark.parametrize(("op", "elements", "ours", "numpys", "pandas_"), ROWS)
def test_a_row_of_the_table_is_true(op: str, elements: str, ours: str, numpys: str, pandas_: str) -> None:
    array = np.array([float(each) for each in elements.split(", ")] if elements != "none" else [])
    wanted = [each if each in ("none", "error") else str(float(each)) for each in (ours, numpys, pandas_)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [
            written(lambda each: local.reduce(each, op).value, array),
            written(NUMPY[op], array),
            written(PANDAS[op], pandas.Series(array)),
        ] == wanted


def test_the_table_has_every_op_and_integers_do_not_wrap() -> None:
    assert {row[0] for row in ROWS} == NUMPY.keys()
    extremes = np.array([-128, 127], np.int8)
    assert [int(np.ptp(extremes)), local.reduce(extremes, "ptp").value] == [-1, 255]
