"""Timestamps, dates and durations: their extremes, means and sums are those of Python's integers and fractions, from
every format, and words stand beside them that say which instant it is."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest

from tests.support.table_files import FORMATS, opened
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.errors import InvalidInput, NoElements
from warpfold.kernels.formats.contents import contents_of
from warpfold.kernels.formats.dialect import TextOptions

pa: Any = pytest.importorskip("pyarrow")

NOON = 1_767_268_800_000_000  # 2026-01-01T12:00:00 in microseconds
UNITS = [NOON, None, NOON + 3_500_001, NOON - 86_400_000_000, NOON + 1]
TRUE = [units for units in UNITS if units is not None]
KNOWN = ["x.parquet", "plain.parquet", "x.arrow", "x.feather", "x.arrows"]


@pytest.fixture(scope="module")
def cpu() -> CpuBackend:
    return CpuBackend()


def write(root: Path, name: str, kind: Any, values: list[Any] = UNITS) -> None:
    FORMATS[name](root / name, pa.table({"t": pa.array(values, pa.int64()).cast(kind)}), 2)


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_instants_have_extremes_and_a_mean_to_the_unit(
    data_root: Path, cpu: CpuBackend, name: str, zone: str | None
) -> None:
    write(data_root, name, pa.timestamp("us", zone))
    mean = Fraction(sum(TRUE), len(TRUE))
    for op, true in {
        "min": Fraction(min(TRUE)),
        "max": Fraction(max(TRUE)),
        "mean": mean,
        "median": median(map(Fraction, TRUE)),
    }.items():
        result = cpu.reduce(opened(data_root, name), op)
        assert result.value == round(true)
        assert (result.dtype, result.count) == (f"timestamp[us{'' if zone is None else f', tz={zone}'}]", 4)
        assert (result.state, result.correctly_rounded) == (None, True)
        assert result.time is not None
        assert result.time.exact == (None if true.denominator == 1 else str(true))
        read = datetime.fromisoformat(result.time.iso)
        assert (read.tzinfo is None) == (zone is None)
        assert read.replace(tzinfo=read.tzinfo or UTC) == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(
            microseconds=round(true)
        )
    kept = {"op": "not", "of": {"op": "is_null", "column": "t"}}
    assert cpu.reduce(opened(data_root, name, filter=kept), "argmin").value == 2


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_durations_are_added_too(data_root: Path, cpu: CpuBackend, unit: str) -> None:
    lengths = [5, -7, 2**62, 2**62, 2**62, None]
    write(data_root, "x.parquet", pa.duration(unit), lengths)
    true = [length for length in lengths if length is not None]
    wanted: dict[str, Any] = {
        "sum": sum(true),
        "mean": round(Fraction(sum(true), 5)),
        "min": -7,
        "max": 2**62,
        "norm1": sum(map(abs, true)),
        "norm_inf": 2**62,
        "median": 2**62,
    }
    for op, value in wanted.items():
        result = cpu.reduce(opened(data_root, "x.parquet"), op)
        assert (result.value, result.dtype) == (value, f"duration[{unit}]"), op
        assert result.time is not None
        assert result.time.iso.startswith("-PT" if op == "min" else "P")
    assert cpu.reduce(opened(data_root, "x.parquet"), "count_nonzero").value == 5
    assert cpu.reduce(opened(data_root, "x.parquet"), "nunique").value == 3


def test_text_and_dates_are_instants_as_well(data_root: Path, cpu: CpuBackend) -> None:
    (data_root / "x.csv").write_text("t,d\n2026-01-02 03:04:05,2025-12-31\n,2026-01-01\n2026-01-01 00:00:01,\n")
    latest = cpu.reduce(opened(data_root, "x.csv", column="t"), "max")
    assert (latest.time and latest.time.iso, latest.dtype) == ("2026-01-02T03:04:05", "timestamp[s]")
    mean = cpu.reduce(opened(data_root, "x.csv", column="d"), "mean")
    assert mean.time is not None
    assert (mean.dtype, mean.value, mean.time.iso, mean.time.exact) == ("date32[day]", 20454, "2026-01-01", "40907/2")


@pytest.mark.parametrize(("twice", "rounded"), [(1, 0), (3, 2), (5, 2), (-1, 0), (-3, -2)])
def test_a_mean_or_a_median_between_two_units_is_the_even_one(
    data_root: Path, cpu: CpuBackend, twice: int, rounded: int
) -> None:
    write(data_root, "x.arrow", pa.timestamp("ns"), [twice, 0])
    for op in ("mean", "median"):
        result = cpu.reduce(opened(data_root, "x.arrow"), op)
        assert (result.value, result.time and result.time.exact) == (rounded, f"{twice}/2")


@pytest.mark.parametrize("kind", ["timestamp", "duration"])
@pytest.mark.parametrize("op", ["sum", "norm2", "var", "prod", "any", "count_nonzero"])
def test_an_op_without_a_meaning_is_refused_by_name(data_root: Path, cpu: CpuBackend, kind: str, op: str) -> None:
    if kind == "duration" and op in ("sum", "any", "count_nonzero"):
        return
    write(data_root, "x.parquet", pa.timestamp("ms") if kind == "timestamp" else pa.duration("ms"))
    with pytest.raises(InvalidInput, match=rf"{op} takes no {kind}\[ms\] so far") as caught:
        cpu.reduce(opened(data_root, "x.parquet"), op)
    assert caught.value.field == "op"


def test_no_rows_have_no_mean(data_root: Path, cpu: CpuBackend) -> None:
    write(data_root, "x.parquet", pa.timestamp("ms"))
    with pytest.raises(NoElements):
        cpu.reduce(opened(data_root, "x.parquet", filter={"op": "<", "column": "t", "value": "1700-01-01"}), "mean")


NUMPY_TIMES = ["datetime64[us]", "datetime64[D]", ">M8[ns]", "timedelta64[s]", "timedelta64[h]"]


@pytest.mark.parametrize("dtype", NUMPY_TIMES)
def test_numpys_times_are_read_from_npy_files_and_nat_is_a_null(
    root: Path, ran: Callable[[dict[str, Any]], Any], dtype: str
) -> None:
    array = np.array([[7, 3], [-9, 4]], "i8").astype(np.dtype(dtype))
    array[0, 0] = np.datetime64("NaT") if array.dtype.kind == "M" else np.timedelta64("NaT")
    np.save(root / "t.npy", array)

    def run(**spec: Any) -> Any:
        source = {"type": "array", "path": "t.npy", "null_policy": spec.pop("nulls", "omit")}
        return ran({"kind": "reduce", "source": source, **spec})

    result = run(op="min")
    assert (result.value, result.count, result.nulls) == (-9, 3, 1)
    unit = np.datetime_data(array.dtype)[0]
    assert (result.time.unit, result.hex) == (unit, None)
    if array.dtype.kind == "M":
        assert np.datetime64(result.time.iso) == np.nanmin(array)
    assert (run(op="max", nulls="propagate").value, run(op="max", nulls="propagate").time) == (None, None)
    with pytest.raises(InvalidInput, match="a null"):
        run(op="argmax")
    with (root / "t.npy").open("rb") as file:
        assert contents_of(file, TextOptions())[0].reduced_as in ("timestamp", "date", "duration")


def test_a_unit_that_differs_in_length_is_refused(root: Path, ran: Callable[[dict[str, Any]], Any]) -> None:
    np.save(root / "m.npy", np.array([1, 2], "M8[M]"))
    spec = {"kind": "reduce", "op": "max", "source": {"type": "array", "path": "m.npy"}}
    with pytest.raises(InvalidInput, match=r"datetime64\[M\] cannot be reduced"):
        ran(spec)


def test_a_look_tells_times(data_root: Path) -> None:
    made = pa.table({"t": pa.array([1], pa.timestamp("us")), "d": pa.array([1], pa.date32())})
    FORMATS["x.parquet"](data_root / "x.parquet", made.append_column("l", pa.array([1], pa.duration("s"))), 2)
    with (data_root / "x.parquet").open("rb") as file:
        assert [column.reduced_as for column in contents_of(file, TextOptions())] == ["timestamp", "date", "duration"]
