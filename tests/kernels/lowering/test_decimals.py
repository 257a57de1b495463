"""Columns of decimals: their sums, means and extremes are those of fractions, and nothing takes their integers for
values."""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest

from warpfold.contract.folders import Folders
from warpfold.contract.sources.files import FilesSource
from warpfold.kernels.backend import Reduction
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.contents import contents_of
from warpfold.kernels.formats.dialect import TextOptions
from warpfold.kernels.formats.tables import ColumnWanted, open_column
from warpfold.kernels.lowering.decimals import Decimals, in_full, with_digits
from warpfold.kernels.source import ArraySource
from warpfold.kernels.sources.sections import sections_between
from warpfold.kernels.sources.sequential import Elements

pa: Any = pytest.importorskip("pyarrow")
parquet: Any = pytest.importorskip("pyarrow.parquet")

PRICES = [Decimal("0.10"), Decimal("0.20"), None, Decimal("-12345678901234.56"), Decimal("99.99"), Decimal("0.00")]
TRUE = [Fraction(price) for price in PRICES if price is not None]


def table(kind: Any, values: list[Any] = PRICES) -> Any:
    return pa.table({"price": pa.array(values, kind), "k": range(len(values))})


@contextmanager
def written(path: Path, made: Any, how: str) -> Iterator[Elements]:
    if how == "parquet":
        parquet.write_table(made, path, row_group_size=2)
    else:
        options = pa.ipc.IpcWriteOptions(compression="zstd" if how == "compressed" else None)
        opened = pa.ipc.new_stream if how == "stream" else pa.ipc.new_file
        with pa.OSFile(str(path), "wb") as sink, opened(sink, made.schema, options=options) as writer:
            writer.write_table(made.slice(1), max_chunksize=2) if how == "sliced" else writer.write_table(made)
    with path.open("rb") as file:
        yield open_column(file, ColumnWanted("price"))


NARROW = pa.decimal128(20, 2)
KINDS = {"128": NARROW, "256": pa.decimal256(50, 2), "dictionary": pa.dictionary(pa.int8(), NARROW)}
if hasattr(pa, "decimal64"):
    KINDS["64"] = pa.decimal64(18, 2)


@pytest.mark.parametrize("how", ["parquet", "file", "compressed", "stream"])
@pytest.mark.parametrize("kind", KINDS)
def test_decimals_are_added_and_compared_exactly(tmp_path: Path, how: str, kind: str) -> None:
    made = table(NARROW)
    prices = made["price"].dictionary_encode() if kind == "dictionary" else made["price"].cast(KINDS[kind])
    made = made.set_column(0, "price", prices)
    wanted: dict[str, Fraction] = {
        "sum": sum(TRUE, Fraction()),
        "mean": sum(TRUE, Fraction()) / len(TRUE),
        "min": min(TRUE),
        "max": max(TRUE),
        "norm1": sum(map(abs, TRUE), Fraction()),
        "norm_inf": max(map(abs, TRUE)),
        "median": median(TRUE),
    }
    for op, true in wanted.items():
        with written(tmp_path / "x", made, how) as source:
            result = CpuBackend().reduce(source, op)
        assert (result.value, result.dtype, result.count, result.state) == (float(true), "float64", 5, None), op
        assert result.correctly_rounded
        written_out = None if op == "mean" else f"{Decimal(int(true * 100)).scaleb(-2):.2f}"
        assert result.decimal == written_out
    with written(tmp_path / "x", made, how) as source:
        assert CpuBackend().reduce(source, "count_nonzero").value == 4


def test_every_scale_is_written_in_full() -> None:
    assert [in_full(-5, 2), in_full(12345, 2), in_full(0, 3), in_full(7, 0), in_full(7, -3)] == [
        "-0.05",
        "123.45",
        "0.000",
        "7",
        "7000",
    ]


@pytest.mark.parametrize("op", ["var", "norm2", "prod", "sum_squares"])
def test_an_op_that_would_need_another_scale_is_refused(tmp_path: Path, op: str) -> None:
    with (
        written(tmp_path / "x", table(NARROW), "parquet") as source,
        pytest.raises(InvalidInput, match=f"{op} takes no decimals so far") as caught,
    ):
        CpuBackend().reduce(source, op)
    assert caught.value.field == "op"


def test_a_scale_that_nobody_writes_is_refused(tmp_path: Path) -> None:
    made = table(pa.decimal128(38, 2**31 - 1), [])
    with pytest.raises(
        InvalidInput, match=r"decimal128\(38, 2147483647\), which is not reduced here.*scales up to 1,000"
    ):
        written(tmp_path / "x", made, "file").__enter__()


def test_nothing_else_takes_the_integers_for_the_values(tmp_path: Path) -> None:
    with (
        written(tmp_path / "x", table(NARROW), "parquet") as source,
        pytest.raises(InvalidInput, match="takes no decimals"),
    ):
        CpuBackend().reduce(source, "dot", other=source)


def test_parts_of_a_table_keep_the_scale(tmp_path: Path) -> None:
    with written(tmp_path / "x", table(NARROW), "parquet") as source:
        part: Any = sections_between(source, 0, 1)  # type: ignore[arg-type]
        assert part.meaning == Decimals(2)


def reduced(folder: Path) -> Reduction:
    files = FilesSource(type="files", glob="*.parquet", column="price")
    return CpuBackend().reduce(files.open(Folders((folder,), folder)), "sum")


def test_files_of_one_scale_are_one_array_and_of_two_are_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        parquet.write_table(table(NARROW), tmp_path / f"{name}.parquet")
    assert reduced(tmp_path).decimal == f"{2 * sum(map(Decimal, filter(None, PRICES))):.2f}"
    parquet.write_table(table(pa.decimal128(20, 3)), tmp_path / "b.parquet")
    with pytest.raises(InvalidInput, match="decimals of different scales"):
        reduced(tmp_path)


def test_a_look_offers_decimals(tmp_path: Path) -> None:
    parquet.write_table(table(NARROW), tmp_path / "x.parquet")
    with (tmp_path / "x.parquet").open("rb") as file:
        price, _ = contents_of(file, TextOptions())
    assert (price.dtype, price.reduced_as) == ("decimal128(20, 2)", "decimal")


@pytest.mark.parametrize("digits", [1, 5, 30, 200])
@pytest.mark.parametrize(
    ("made", "true"),
    [
        (table(NARROW), sum(TRUE) / len(TRUE)),
        (pa.table({"price": pa.array([2**64 - 1, 2**64 - 1, 5], pa.uint64())}), Fraction(2**65 + 3, 3)),
        (pa.table({"price": pa.array([25, None, 0, -1], pa.int8())}), Fraction(8)),
        (pa.table({"price": pa.array([Decimal("-0.0000001"), Decimal("0.0000003")])}), Fraction(1, 10**7)),
    ],
)
def test_a_mean_has_as_many_digits_as_are_wanted(tmp_path: Path, made: Any, true: Fraction, digits: int) -> None:
    """The digits are those of the fraction, to nearest, ties to even."""
    with localcontext(prec=digits, rounding=ROUND_HALF_EVEN):
        want = format(Decimal(true.numerator) / Decimal(true.denominator), "f")
    with written(tmp_path / "x", made, "file") as source:
        wanted = with_digits(source, digits)
        result = CpuBackend().reduce(wanted, "mean")
        assert (result.decimal, result.value, result.fraction) == (want, float(true), true)


def test_floats_and_times_have_no_digits() -> None:
    with pytest.raises(InvalidInput, match="decimals and integers alone are rounded"):
        with_digits(ArraySource(np.ones(3)), 30)
    truths = with_digits(ArraySource(np.array([True, True, False])), 3)
    assert CpuBackend().reduce(truths, "mean").decimal == "0.667"
