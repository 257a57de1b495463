"""Columns of decimals whose integers do not fit 64 bits: every value is that of Python's integers and fractions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import pytest

from tests.support.table_files import FORMATS
from warpfold.client.local import reduce
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import round_ratio
from warpfold.kernels.formats.tables import ColumnWanted, open_column
from warpfold.kernels.lowering.decimals import in_full
from warpfold.kernels.ops import op_named
from warpfold.kernels.sources.sequential import Elements, gathered

pa: Any = pytest.importorskip("pyarrow")
parquet: Any = pytest.importorskip("pyarrow.parquet")

SCALE = 4
MOST64, MOST38, MOST76 = 2**63 - 1, 10**38 - 1, 10**76 - 1

EDGES = {
    "the bounds of int64": [MOST64, -MOST64 - 1, MOST64 + 1, -MOST64 - 2, 0],
    "the bounds of 38 digits": [MOST38, -MOST38, MOST38, 1, -1],
    "all above int64": [MOST64 + 7, MOST38, MOST64 + 5, MOST64 + 5],
    "all below int64": [-MOST64 - 7, -MOST38, -MOST64 - 3, -MOST38],
    "above, and the bound itself": [MOST64 + 5, MOST64, MOST64 + 2],
    "below, and the bound itself": [-MOST64 - 5, -MOST64 - 1, -MOST64 - 2],
    "words that differ in the low one": [2**64 * 5 + 9, 2**64 * 5 + 2**63 + 1, 2**64 * 5 + 3],
    "negative words that differ in the low one": [-(2**64) * 5 + 9, -(2**64) * 5 + 2**63 + 1, -(2**64) * 5 + 3],
    "sums beyond 38 digits": [MOST38] * 9 + [-1],
    "none beyond int64": [5, -7, MOST64],
    "a single one": [-MOST38],
}
OPS = (
    "median",
    "first",
    "last",
    "top_k",
    "mode",
    "sum",
    "mean",
    "min",
    "max",
    "norm1",
    "norm_inf",
    "argmin",
    "argmax",
    "count_nonzero",
    "any",
    "all",
    "nunique",
    "count",
    "argtop_k",
)


@contextmanager
def written(path: Path, table: Any, how: str = "x.parquet") -> Iterator[Elements]:
    FORMATS[how](path / how, table, 2)
    with (path / how).open("rb") as file:
        yield open_column(file, ColumnWanted("price"))


def column(integers: Sequence[int | None], kind: Any = None) -> Any:
    with localcontext() as context:
        context.prec = 100
        numbers = [None if each is None else Decimal(each).scaleb(-SCALE) for each in integers]
    return pa.table({"price": pa.array(numbers, kind or pa.decimal128(38, SCALE))})


def true_of(op: str, integers: Sequence[int]) -> Any:
    """The integer of a value, a fraction of a mean; an index or a truth value as it is."""
    made: dict[str, Callable[[], Any]] = {
        "sum": lambda: sum(integers),
        "mean": lambda: Fraction(sum(integers), len(integers)),
        "median": lambda: median(map(Fraction, integers)),
        "first": lambda: integers[0],
        "last": lambda: integers[-1],
        "top_k": lambda: max(integers),
        "mode": lambda: min(integers, key=lambda each: (-integers.count(each), each)),
        "count": lambda: len(integers),
        "argtop_k": lambda: integers.index(max(integers)),
        "min": lambda: min(integers),
        "max": lambda: max(integers),
        "norm1": lambda: sum(map(abs, integers)),
        "norm_inf": lambda: max(map(abs, integers), default=0),
        "argmin": lambda: integers.index(min(integers)),
        "argmax": lambda: integers.index(max(integers)),
        "count_nonzero": lambda: sum(map(bool, integers)),
        "any": lambda: any(integers),
        "nunique": lambda: len(set(integers)),
        "all": lambda: all(integers),
    }
    return made[op]()


def words_of(op: str, true: Any) -> str | None:
    """The decimal in full; that of a mean or a median between two units is not written."""
    return None if op == "mean" or Fraction(true).denominator > 1 else in_full(int(true), SCALE)


def check(result: Any, op: str, integers: Sequence[int]) -> None:
    true = true_of(op, integers)
    if op in OPS[OPS.index("argmin") :]:
        assert (result.value, result.decimal) == (true, None), op
        return
    scaled = Fraction(true) / 10**SCALE
    assert result.value == round_ratio(scaled.numerator, scaled.denominator, 0, DTYPES["float64"]), op
    assert result.decimal == words_of(op, true), op
    assert (result.count, result.dtype, result.correctly_rounded) == (len(integers), "float64", True)


@pytest.mark.parametrize("how", ["x.parquet", "x.feather"])
@pytest.mark.parametrize("case", EDGES)
def test_every_op_of_integers_at_the_bounds_is_exact(tmp_path: Path, case: str, how: str) -> None:
    for op in OPS:
        with written(tmp_path, column(EDGES[case]), how) as source:
            check(CpuBackend().reduce(source, op), op, EDGES[case])


@pytest.mark.parametrize(("how", "seed"), [("plain.parquet", 0), ("x.arrow", 1), ("x.arrows", 2), ("sliced", 3)])
@pytest.mark.parametrize("digits", [38, 76])
def test_random_decimals_of_every_length_are_exact(tmp_path: Path, how: str, digits: int, seed: int) -> None:
    random = Random(seed)
    kind = pa.decimal128(38, SCALE) if digits == 38 else pa.decimal256(76, SCALE)
    integers = [random.randint(-(10 ** random.randint(1, digits)), 10 ** random.randint(1, digits)) for _ in range(200)]
    integers = [max(-(10**digits) + 1, min(10**digits - 1, each)) for each in integers]
    made = column(integers, kind)
    if how == "sliced":
        made, integers, how = made.slice(1), integers[1:], "x.arrow"
    for op in OPS:
        with written(tmp_path, made, how) as source:
            check(CpuBackend().reduce(source, op), op, integers)


def test_the_bounds_of_76_digits_are_exact_and_their_sum_is_longer(tmp_path: Path) -> None:
    integers = [MOST76, -MOST76, MOST76, MOST76]
    for op in OPS:
        with written(tmp_path, column(integers, pa.decimal256(76, SCALE)), "x.arrow") as source:
            check(CpuBackend().reduce(source, op), op, integers)


def test_a_value_beyond_float64_is_in_full_beside_infinity(tmp_path: Path) -> None:
    made = pa.table({"price": pa.array([Decimal(7)], pa.decimal128(38, 0)).view(pa.decimal128(38, -400))})
    with written(tmp_path, made, "x.arrow") as source:
        result = CpuBackend().reduce(source, "sum")
    assert (result.value, result.decimal) == (float("inf"), "7" + 400 * "0")


@pytest.fixture(scope="module")
def run(ran: Callable[..., Any]) -> Callable[..., Any]:
    def result(source: dict[str, Any], op: str, **spec: Any) -> Any:
        return ran({"kind": "reduce", "op": op, "source": {"column": "price", **source}, **spec})

    return result


NULLED = [None, MOST38, 5, None, -MOST38 + 1, MOST64 + 1]


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("policy", ["omit", "propagate"])
def test_nulls_are_counted_once_and_are_no_zeros(root: Path, run: Callable[..., Any], op: str, policy: str) -> None:
    parquet.write_table(column(NULLED), root / "nulls.parquet", row_group_size=2)
    source = {"type": "table", "path": "nulls.parquet", "null_policy": policy}
    if policy == "propagate":
        result = run(source, op)
        assert (result.value, result.decimal, result.nulls, result.count) == (None, None, 2, 4)
    elif op.startswith("arg"):
        with pytest.raises(InvalidInput, match="holds a null in 'price', at index 0"):
            run(source, op)
    else:
        result = run(source, op)
        check(result, op, [each for each in NULLED if each is not None])
        assert result.nulls == 2


def test_a_null_is_refused_by_its_index(root: Path, run: Callable[..., Any]) -> None:
    parquet.write_table(column(NULLED[1:]), root / "nulls.parquet", row_group_size=2)
    with pytest.raises(InvalidInput, match="holds a null in 'price', at index 2"):
        run({"type": "table", "path": "nulls.parquet", "null_policy": "raise"}, "sum")


def test_no_rows_have_the_sum_zero_and_no_mean(root: Path, run: Callable[..., Any]) -> None:
    parquet.write_table(column([]), root / "none.parquet")
    assert run({"type": "table", "path": "none.parquet"}, "sum").decimal == "0.0000"
    with pytest.raises(InvalidInput, match="mean of no elements"):
        run({"type": "table", "path": "none.parquet"}, "mean")


@pytest.mark.parametrize("op", OPS)
def test_filtered_rows_and_files_as_one_array_are_exact(root: Path, run: Callable[..., Any], op: str) -> None:
    integers = [3, MOST38, -MOST38, MOST64 + 9, MOST64 + 9, -12]
    for name in ("a", "b"):
        made = column(integers if name == "a" else integers[::-1]).append_column("k", pa.array([1, 0, 1, 1, 1, 1]))
        parquet.write_table(made, root / f"file-{name}.parquet", row_group_size=2)
    rows = {"op": "==", "column": "k", "value": 1}
    kept = [integers[0], *integers[2:]]
    turned = integers[::-1]
    check(run({"type": "table", "path": "file-a.parquet", "filter": rows}, op), op, kept)
    check(run({"type": "files", "glob": "file-*.parquet"}, op), op, [*integers, *turned])
    both = [*kept, turned[0], *turned[2:]]
    check(run({"type": "files", "glob": "file-*.parquet", "filter": rows}, op), op, both)


@pytest.mark.skipif(not hasattr(pa, "decimal32"), reason="pyarrow has no short decimals")
@pytest.mark.parametrize("op", OPS[:10])
def test_files_of_decimals_of_other_widths_are_one_array(root: Path, run: Callable[..., Any], op: str) -> None:
    short, long, longest = [-7, 10**8], [MOST38, -MOST64 - 5], [-MOST76, 2**200 + 1]
    kinds = (pa.decimal32(9, SCALE), pa.decimal128(38, SCALE), pa.decimal256(76, SCALE))
    for number, (integers, kind) in enumerate(zip((short, long, longest), kinds, strict=True)):
        FORMATS["x.arrow"](root / f"width-{number}.arrow", column(integers, kind), 1)
    whole = [*short, *long, *longest]
    check(run({"type": "files", "glob": "width-*.arrow"}, op), op, whole)
    result = run({"type": "files", "glob": "width-*.arrow"}, op, segments={"length": 3})
    check_runs(result, op, [whole[:3], whole[3:]])


def test_a_long_column_is_read_by_several_threads_to_the_same_value(root: Path, run: Callable[..., Any]) -> None:
    random = Random(9)
    once = [random.randint(-MOST38, MOST38) for _ in range(500)] + [random.randint(-99, 99) for _ in range(500)]
    parquet.write_table(pa.concat_tables([column(once)] * 400), root / "long.parquet", row_group_size=70_000)
    for op in ("sum", "mean", "min", "norm1", "argmax"):
        result = run({"type": "table", "path": "long.parquet"}, op)
        if op in ("sum", "norm1"):
            assert result.decimal == in_full(400 * true_of(op, once), SCALE)
        elif op != "mean":
            true = true_of(op, once)
            assert result.decimal == in_full(true, SCALE) if op == "min" else result.value == true


OFFSETS = [0, 0, 3, 4, 4, 60, 150, 197, 197]


@pytest.fixture(scope="module")
def cut(root: Path) -> Mapping[int, Sequence[int]]:
    """By how many digits they have at most: the integers of the files of that folder of `root`."""
    columns = {}
    for digits, kind in ((38, pa.decimal128(38, SCALE)), (76, pa.decimal256(76, SCALE))):
        random = Random(digits)
        integers = [random.randint(-(10**length), 10**length) for length in random.choices(range(1, digits), k=200)]
        integers[5:9] = [10**digits - 1, 1 - 10**digits, 10**digits - 1, 10**digits - 1]
        made = column(integers, kind).append_column("k", pa.array(range(200)))
        (root / str(digits)).mkdir()
        for name in ("x.parquet", "x.arrow", "x.arrows"):
            FORMATS[name](root / str(digits) / name, made, 13)
        columns[digits] = integers
    return columns


# Every op of one format, and of every format an op that adds, one that sorts, one that takes an element and one that
# takes its place: ops know nothing of formats.
SEGMENTED = [
    *(("x.parquet", op) for op in OPS[:10]),
    *((how, op) for how in ("x.arrow", "x.arrows", "filtered", "files") for op in ("sum", "median", "max", "argmin")),
]


@pytest.mark.parametrize("digits", [38, 76])
@pytest.mark.parametrize(("how", "op"), SEGMENTED)
def test_segments_of_every_length_are_exact(
    cut: Mapping[int, Sequence[int]], run: Callable[..., Any], op: str, how: str, digits: int
) -> None:
    integers = [*cut[digits]]
    source: dict[str, Any] = {"type": "table", "path": f"{digits}/{how}", "column": "price"}
    if how == "filtered":
        source |= {"path": f"{digits}/x.parquet", "filter": {"op": ">", "column": "k", "value": 1}}
    elif how == "files":
        source = {"type": "files", "paths": [f"{digits}/x.parquet", f"{digits}/x.arrow"], "column": "price"}
    kept = {"filtered": integers[2:], "files": integers * 2}.get(how, integers)
    for spec, bounds in (
        ({"segments": {"offsets": OFFSETS}}, OFFSETS),
        ({"segments": {"length": 17}}, [*range(0, len(kept), 17), len(kept)]),
        ({"axis": 0}, [0, len(kept)]),
        ({"segments": {"offsets": [9, 9]}}, [9, 9]),
        ({"segments": {"offsets": [7, 8, 30]}}, [7, 8, 30]),
    ):
        check_runs(run(source, op, **spec), op, [kept[start:stop] for start, stop in pairwise(bounds)])


def check_runs(result: Any, op: str, runs: Sequence[Sequence[int]]) -> None:
    assert tuple(result.counts) == tuple(map(len, runs))
    for at, integers in enumerate(runs):
        value, decimal = result.values[at], None if result.decimal is None else result.decimal[at]
        if not integers and op_named(op).empty is None:
            assert (value, decimal) == (None, None)
            continue
        true = true_of(op, integers)
        if op in OPS[OPS.index("argmin") :]:
            assert (value, decimal) == (true, None)
            continue
        scaled = Fraction(true) / 10**SCALE
        assert value == round_ratio(scaled.numerator, scaled.denominator, 0, DTYPES["float64"])
        assert decimal == words_of(op, true)


def test_a_null_makes_its_segment_null(root: Path, run: Callable[..., Any]) -> None:
    parquet.write_table(column(NULLED), root / "nulls.parquet", row_group_size=2)
    source = {"type": "table", "path": "nulls.parquet", "null_policy": "propagate"}
    result = run(source, "sum", segments={"offsets": [0, 3, 6]})
    assert (result.values, result.decimal, result.nulls) == ((None, None), (None, None), 2)
    result = run(source, "max", segments={"offsets": [0, 1, 3, 4, 6]})
    assert result.decimal == (None, in_full(MOST38, SCALE), None, in_full(MOST64 + 1, SCALE))
    assert (result.counts, result.nulls) == ((0, 2, 0, 2), 2)


def test_the_client_reduces_a_column_of_pyarrow_alike() -> None:
    integers = [MOST38, None, -5, MOST38]
    result = reduce(column(integers)["price"], "sum")
    assert result.decimal == in_full(2 * MOST38 - 5, SCALE)


def test_a_reader_that_keeps_nothing_beside_gets_no_clamped_elements(tmp_path: Path) -> None:
    with (
        written(tmp_path, column([1, MOST38])) as source,
        pytest.raises(InvalidInput, match="'price' whose digits make an integer beyond int64") as caught,
    ):
        gathered(source)
    assert caught.value.field == "column"
