"""Columns of tables on a GPU: every format, dtype and null against fractions, as CPU slots are held to them."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warpfold.kernels.cuda.backend import CudaBackend
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.exact import round_ratio
from warpfold.kernels.sources.sequential import SequentialSource

pa: Any = pytest.importorskip("pyarrow")
table_files: Any = pytest.importorskip("tests.support.table_files")

ROWS = 5000


def numbers(dtype: str, nulls: int) -> list[Any]:
    """Numbers over the whole range of a dtype, every `nulls`-th of them None; none of them for 0."""
    random = np.random.default_rng()
    if dtype == "bool":
        made: list[Any] = (random.random(ROWS) < 0.5).tolist()
    elif DTYPES[dtype].is_float:
        spread = np.ldexp(random.standard_normal(ROWS), random.integers(-60, 60, ROWS))
        made = spread.astype(dtype).tolist()
    else:
        least, most = DTYPES[dtype].bounds
        made = random.integers(least, most, ROWS, dtype=dtype, endpoint=True).tolist()
    return [None if nulls and index % nulls == nulls - 1 else number for index, number in enumerate(made)]


@pytest.mark.parametrize("name", sorted(table_files.FORMATS))
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint64", "int8", "bool"])
@pytest.mark.parametrize("nulls", [0, 7])
def test_a_column_has_the_sum_and_the_extremes_of_its_fractions(
    backend: CudaBackend, tmp_path: Path, name: str, dtype: str, nulls: int
) -> None:
    made = numbers(dtype, nulls)
    table = pa.table({"x": pa.array(made, pa.type_for_alias(dtype)), "k": range(ROWS)})
    table_files.FORMATS[name](tmp_path / name, table, 700)
    in_text = name.partition(".")[2].startswith(("csv", "tsv", "jsonl"))
    if in_text and dtype == "float32":
        pytest.skip("text has integers without a point, which float32 would round: they are refused")
    options = {"dtype": dtype} if in_text else {}
    kept = [Fraction(number) for number in made if number is not None]
    total = sum(kept, Fraction())
    row = DTYPES[dtype]
    wanted = {"sum": round_ratio(total.numerator, total.denominator, 0, row) if row.is_float else total}
    wanted |= {"min": min(kept), "max": max(kept)}
    for op, want in wanted.items():
        source = table_files.opened(tmp_path, name, column="x", **options)
        result = backend.reduce(source, op)
        assert result.value == want, op
        assert result.count == len(kept)
        left_out = source.tally.nulls if isinstance(source, SequentialSource) else 0
        assert left_out == ROWS - len(kept)
