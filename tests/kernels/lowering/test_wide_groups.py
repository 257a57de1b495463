"""Decimals beyond 64 bits by key: each value is that of Python's integers over the rows of its group."""

from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import pytest

from tests.support.table_files import FORMATS
from warpfold.client import group_table
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput, OutOfMemory
from warpfold.kernels.exact import round_ratio
from warpfold.kernels.lowering.decimals import in_full

pa: Any = pytest.importorskip("pyarrow")

Run = Callable[..., Any]

SCALE, COUNT = 4, 300
OPS = ("sum", "median", "mean", "min", "max", "norm1", "norm_inf", "argmin", "argmax", "count_nonzero")
TYPES = {38: pa.decimal128(38, SCALE), 76: pa.decimal256(76, SCALE)}


@pytest.fixture(scope="module")
def run(ran: Run) -> Run:
    def result(source: dict[str, Any], by: Sequence[str], ops: Sequence[str], **spec: Any) -> Any:
        asked = {"kind": "groupby", "source": source, "by": list(by), **spec}
        asked["aggregations"] = [{"op": op, "column": "price"} for op in ops]
        return ran(asked)

    return result


def integers_of(digits: int) -> list[int | None]:
    random = Random(digits)
    made: list[int | None] = [
        random.randint(-(10**length), 10**length) for length in random.choices(range(1, digits), k=COUNT)
    ]
    made[10:20] = [10**digits - 1] * 5 + [1 - 10**digits] * 5
    made[30], made[77] = None, None
    return made


def table(integers: Sequence[int | None], kind: Any) -> Any:
    with localcontext() as context:
        context.prec = 100
        prices = [None if each is None else Decimal(each).scaleb(-SCALE) for each in integers]
    random = Random(3)
    words = [random.choice(["a", "b", "c", None, "null"]) for _ in integers]
    return pa.table(
        {
            "price": pa.array(prices, kind),
            "word": words,
            "coded": pa.array(words).dictionary_encode(),
            "number": pa.array([random.choice([None, -5, 2**62, 7]) for _ in integers], pa.int64()),
            "truth": [random.choice([True, False]) for _ in integers],
            "row": range(len(integers)),
        }
    )


def rows_of(made: Any, by: Sequence[str], *, dropna: bool = True) -> dict[tuple[Any, ...], list[int]]:
    """The rows of each group; with `dropna` those with a null key are in none."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for row, keys in enumerate(zip(*(made[key].to_pylist() for key in by), strict=True)):
        if not dropna or None not in keys:
            groups.setdefault(keys, []).append(row)
    return groups


def check(result: Any, ops: Sequence[str], groups: dict[tuple[Any, ...], list[int]], integers: Sequence[Any]) -> None:
    keys = list(zip(*(key.values for key in result.keys), strict=True))
    assert sorted(keys, key=str) == sorted(groups, key=str)
    for op, column in zip(ops, result.columns, strict=True):
        for at, key in enumerate(keys):
            rows = [row for row in groups[key] if integers[row] is not None]
            each = [integers[row] for row in rows]
            value, word = column.values[at], None if column.words is None else column.words[at]
            assert column.counts[at] == len(each)
            if op in ("argmin", "argmax"):
                assert (value, word) == (rows[each.index((min if op == "argmin" else max)(each))], None)
            elif op == "count_nonzero":
                assert (value, word) == (sum(map(bool, each)), None)
            else:
                true = {
                    "sum": Fraction(sum(each)),
                    "mean": Fraction(sum(each), len(each)),
                    "min": Fraction(min(each)),
                    "max": Fraction(max(each)),
                    "norm1": Fraction(sum(map(abs, each))),
                    "norm_inf": Fraction(max(map(abs, each))),
                    "median": median(map(Fraction, each)),
                }[op]
                scaled = true / 10**SCALE
                assert value == round_ratio(scaled.numerator, scaled.denominator, 0, DTYPES["float64"])
                assert word == (None if op == "mean" or true.denominator > 1 else in_full(int(true), SCALE))


@pytest.mark.parametrize("digits", TYPES)
@pytest.mark.parametrize("name", ["x.parquet", "x.arrow", "x.feather", "x.arrows"])
@pytest.mark.parametrize("dropna", [True, False])
@pytest.mark.parametrize("by", [["word"], ["coded"], ["number"], ["truth", "number"], ["word", "truth", "number"]])
def test_every_op_of_every_group_is_exact(  # noqa: PLR0917
    root: Path, run: Run, digits: int, name: str, by: list[str], dropna: bool
) -> None:
    integers = integers_of(digits)
    made = table(integers, TYPES[digits])
    FORMATS[name](root / name, made, 37)
    result = run({"type": "table", "path": name}, by, OPS, dropna=dropna)
    check(result, OPS, rows_of(made, by, dropna=dropna), integers)


def test_filtered_rows_and_files_as_one_table_are_exact(root: Path, run: Run) -> None:
    integers = integers_of(38)
    made = table(integers, TYPES[38])
    for name in ("part-a.parquet", "part-b.parquet"):
        FORMATS["x.parquet"](root / name, made, 64)
    groups = rows_of(made, ["word"])
    twice = {key: [*rows, *(row + COUNT for row in rows)] for key, rows in groups.items()}
    check(run({"type": "files", "glob": "part-*.parquet"}, ["word"], OPS), OPS, twice, [*integers, *integers])
    rows = {"op": ">=", "column": "row", "value": 15}
    kept = {key: [row - 15 for row in rows if row >= 15] for key, rows in groups.items()}
    check(run({"type": "table", "path": "part-a.parquet", "filter": rows}, ["word"], OPS), OPS, kept, integers[15:])


def test_nulls_and_groups_without_values_stay_as_they_are(root: Path, run: Run) -> None:
    made = pa.table({"price": pa.array([Decimal(10**33), None, None, Decimal(3)], TYPES[38]), "k": list("abba")})
    FORMATS["x.parquet"](root / "n.parquet", made, 2)
    source = {"type": "table", "path": "n.parquet"}
    total, least, mean = run(source, ["k"], ["sum", "min", "mean"]).columns
    assert (total.words, least.words) == ((f"{10**33 + 3}.0000", "0.0000"), ("3.0000", None))
    assert mean.values == (float((10**33 + 3) / 2), None)
    (total,) = run(source | {"null_policy": "propagate"}, ["k"], ["sum"]).columns
    assert total.words == (f"{10**33 + 3}.0000", None)
    with pytest.raises(InvalidInput, match="row 1 of 'price' is null"):
        run(source | {"null_policy": "raise"}, ["k"], ["sum"])


def test_what_does_not_fit_into_memory_is_refused(root: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    FORMATS["x.parquet"](root / "m.parquet", table(integers_of(38), TYPES[38]), 37)

    def full(nbytes: int, what: str) -> None:
        raise OutOfMemory(f"{what} need {nbytes:,} bytes")

    monkeypatch.setattr("warpfold.kernels.lowering.wide_groups.require", full)
    with pytest.raises(OutOfMemory, match="the decimals beyond 64 bits of all groups need"):
        run({"type": "table", "path": "m.parquet"}, ["word"], ["sum"])


def test_sums_that_no_decimal_of_arrow_holds_are_strings_in_a_table(root: Path, run: Run) -> None:
    most = 10**76 - 1
    for integers, kind in (([most, most], "string"), ([most, 5 - most], "decimal128(4, 4)")):
        made = table(integers, TYPES[76]).append_column("one", [[1, 1]])
        FORMATS["x.parquet"](root / "s.parquet", made, 2)
        answer = run({"type": "table", "path": "s.parquet"}, ["one"], ["sum"]).model_dump_json()
        total = group_table.GroupbyResult.model_validate_json(answer).to_arrow().column(1)
        assert (str(total.type), str(total[0])) == (kind, in_full(sum(integers), SCALE))
