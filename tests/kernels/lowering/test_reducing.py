"""Decimals, instants and durations along axes and by segments: each value is that of fractions over its elements."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.support.array_files import opened
from tests.support.table_files import FORMATS
from warpfold.client.job_results import ReduceArrayResult
from warpfold.contract.folders import Folders
from warpfold.contract.keyed import open_rows, plan_of
from warpfold.contract.kinds.groupby import GroupbySpec
from warpfold.contract.sources.table import TableSource
from warpfold.kernels.backend import Progress
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.driver import Backend
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import round_ratio
from warpfold.kernels.lowering.decimals import in_full
from warpfold.kernels.lowering.iso8601 import duration, instant
from warpfold.kernels.lowering.nulls import keeps_nulls
from warpfold.kernels.lowering.reducing import meaning_of
from warpfold.kernels.ops import OPS, NanPolicy, NullPolicy, op_named
from warpfold.kernels.parts.grouping import AlongAxes, Segments
from warpfold.kernels.query import Answer, ByKey, Query, Shaped, Whole
from warpfold.kernels.source import ArraySource

pa: Any = pytest.importorskip("pyarrow")

Run = Callable[..., Any]

FOR_DECIMALS = [name for name in FORMATS if not any(text in name for text in ("csv", "tsv", "jsonl"))]
SCALE = 3
BIGGEST = 2**63 - 1
OFFSETS = [0, 3, 3, 4, 11, 40]

KINDS = {
    "timestamp": pa.timestamp("us", "Europe/Berlin"),
    "date32": pa.date32(),
    "timestamp without zone": pa.timestamp("ms"),
    "duration": pa.duration("ns"),
}


@pytest.fixture(scope="module")
def run(ran: Run) -> Run:
    def result(source: dict[str, Any], **spec: Any) -> Any:
        return ran({"kind": "reduce", "source": source, **spec})

    return result


def integers(count: int, most: int) -> list[int]:
    random = Random(17)
    return [random.randint(-most, most) for _ in range(count - 2)] + [most, -most]


def true_of(op: str, part: list[int]) -> Fraction | None:
    """The exact value, None where there is none."""
    made: dict[str, Callable[[], int | Fraction]] = {
        "sum": lambda: sum(part),
        "norm1": lambda: sum(map(abs, part)),
        "mean": lambda: Fraction(sum(part), len(part)),
        "min": lambda: min(part),
        "max": lambda: max(part),
        "norm_inf": lambda: max(map(abs, part), default=0),
        "argmin": lambda: part.index(min(part)),
        "argmax": lambda: part.index(max(part)),
        "count_nonzero": lambda: sum(map(bool, part)),
    }
    return None if not part and OPS[op].empty is None else Fraction(made[op]())


def check_decimals(result: Any, op: str, parts: list[list[int]]) -> None:
    assert result.correctly_rounded
    assert tuple(result.counts) == tuple(map(len, parts))
    for at, part in enumerate(parts):
        true, value = true_of(op, part), result.values[at]
        if op in ("argmin", "argmax", "count_nonzero"):
            assert (value, result.decimal) == (true, None)
        elif true is None:
            assert value is None
            assert result.decimal is None or result.decimal[at] is None
        else:
            scaled = true / 10**SCALE
            assert value == round_ratio(scaled.numerator, scaled.denominator, 0, DTYPES["float64"])
            assert result.hex[at] == value.hex()
            assert result.decimal is None if op == "mean" else result.decimal[at] == in_full(int(true), SCALE)


def check_times(result: Any, op: str, parts: list[list[int]], words: Callable[[int], str], unit: str) -> None:
    for at, part in enumerate(parts):
        true, value, time = true_of(op, part), result.values[at], (result.time or [None] * len(parts))[at]
        if op.startswith("arg"):
            assert (value, result.time) == (true, None)
        elif true is None:
            assert (value, time) == (None, None)
        else:
            assert (value, time.iso, time.unit) == (round(true), words(round(true)), unit)
            assert time.exact == (None if true.denominator == 1 else str(true))
    assert (result.hex, result.decimal) == (None, None)


def cut(elements: list[int], offsets: list[int]) -> list[list[int]]:
    return [elements[start:stop] for start, stop in pairwise(offsets)]


def ops(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("op", names)


@pytest.mark.parametrize("name", FOR_DECIMALS)
@ops("sum", "mean", "min", "max", "norm1", "norm_inf", "argmin", "argmax", "count_nonzero")
def test_decimals_by_segments_are_exact(root: Path, run: Run, name: str, op: str) -> None:
    each = integers(40, BIGGEST)
    FORMATS[name](root / name, table(each, pa.decimal128(25, SCALE)), 7)
    source = {"type": "table", "path": name, "column": "x"}
    result = run(source, op=op, segments={"offsets": OFFSETS})
    check_decimals(result, op, cut(each, OFFSETS))
    result = run(source, op=op, segments={"length": 9})
    check_decimals(result, op, cut(each, [0, 9, 18, 27, 36, 40]))
    whole = run(source, op=op, axis=0)
    assert whole.shape == ()
    check_decimals(whole, op, [each])


def table(each: list[Any], kind: Any) -> Any:
    if pa.types.is_decimal(kind):
        column = pa.array([None if decimal is None else Decimal(decimal).scaleb(-SCALE) for decimal in each], kind)
    else:
        stored = pa.int32() if pa.types.is_date32(kind) else pa.int64()
        column = pa.array(each, stored).cast(kind)
    return pa.table({"x": column, "k": range(len(each))})


@pytest.mark.parametrize("kind", KINDS)
@ops("mean", "min", "max", "argmin", "argmax", "sum")
def test_times_by_segments_are_integers_of_their_unit_and_words(root: Path, run: Run, kind: str, op: str) -> None:
    each = integers(40, 10**4 if kind.startswith("date") else 10**15)
    FORMATS["x.parquet"](root / "t.parquet", table(each, KINDS[kind]), 7)
    source = {"type": "table", "path": "t.parquet", "column": "x"}
    if op == "sum" and kind != "duration":
        with pytest.raises(InvalidInput, match=r"sum takes no (date|timestamp)") as caught:
            run(source, op=op, segments={"length": 9})
        assert caught.value.field == "op"
        return
    unit = {"timestamp": "us", "date32": "D", "timestamp without zone": "ms", "duration": "ns"}[kind]
    zone = "Europe/Berlin" if kind == "timestamp" else None
    words = (lambda n: duration(n, unit)) if kind == "duration" else (lambda n: instant(n, unit, zone))
    result = run(source, op=op, segments={"offsets": OFFSETS})
    check_times(result, op, cut(each, OFFSETS), words, unit)
    if not op.startswith("arg"):
        assert result.dtype == {"date32": "date32[day]"}.get(kind, str(KINDS[kind]))
        assert {time.timezone for time in result.time if time} == {zone}


@pytest.mark.parametrize("dtype", ["datetime64[us]", "timedelta64[s]", ">M8[ns]", "datetime64[D]"])
@pytest.mark.parametrize("axis", [0, 1, -1, [0, 2], [0, 1, 2]])
@ops("min", "mean", "argmax")
def test_numpys_times_along_axes_are_those_of_their_integers(
    root: Path, run: Run, dtype: str, axis: Any, op: str
) -> None:
    whole = np.array(integers(60, 10**6), "i8").reshape(3, 4, 5)
    np.save(root / "t.npy", whole.astype(np.dtype(dtype)))
    result = run({"type": "array", "path": "t.npy"}, op=op, axis=axis, keepdims=True)
    axes = [each % 3 for each in (axis if isinstance(axis, list) else [axis])]
    kept = [each for each in range(3) if each not in axes]
    rows = whole.transpose(*kept, *axes).reshape(-1, int(np.prod([whole.shape[each] for each in axes])))
    assert result.shape == tuple(1 if each in axes else whole.shape[each] for each in range(3))
    unit = np.datetime_data(np.dtype(dtype))[0]
    words = (lambda n: duration(n, unit)) if np.dtype(dtype).kind == "m" else (lambda n: instant(n, unit))
    check_times(result, op, rows.tolist(), words, unit)


@pytest.mark.parametrize("op", ["min", "mean"])
def test_nulls_make_their_values_null_or_are_refused(root: Path, run: Run, op: str) -> None:
    array = np.array([[4, 2], [7, 1], [9, 5]], "M8[s]")
    array[1, 1] = "NaT"
    np.save(root / "nat.npy", array)
    source = {"type": "array", "path": "nat.npy"}
    result = run({**source, "null_policy": "propagate"}, op=op, axis=0)
    assert (result.values[1], result.time[1], result.nulls, result.counts) == (None, None, 1, (3, 2))
    assert result.values[0] == (4 if op == "min" else 7)
    with pytest.raises(InvalidInput, match="holds a null"):
        run(source, op=op, axis=0)
    FORMATS["x.parquet"](root / "n.parquet", table([5, None, 7, -9], pa.decimal128(9, SCALE)), 3)
    source = {"type": "table", "path": "n.parquet", "column": "x", "null_policy": "propagate"}
    result = run(source, op="sum", segments={"length": 2})
    assert (result.values, result.decimal, result.counts) == ((None, -0.002), (None, "-0.002"), (1, 2))
    with pytest.raises(InvalidInput, match="holds a null in 'x', at index 1"):
        run({**source, "null_policy": "raise"}, op="sum", segments={"length": 2})


def test_filtered_rows_keep_their_meaning(root: Path, run: Run) -> None:
    FORMATS["x.parquet"](root / "f.parquet", table([5, 11, 7, -9, 2], pa.decimal128(9, SCALE)), 2)
    rows = {"op": ">", "column": "k", "value": 0}
    result = run(
        {"type": "table", "path": "f.parquet", "column": "x", "filter": rows}, op="sum", segments={"length": 3}
    )
    assert (result.decimal, result.values) == (("0.009", "0.002"), (0.009, 0.002))


def test_several_files_are_one_array(root: Path, run: Run) -> None:
    for name in ("one", "two"):
        FORMATS["x.parquet"](root / f"{name}.pq.parquet", table([5, 11, 7], pa.duration("s")), 2)
    source = {"type": "files", "paths": ["one.pq.parquet", "two.pq.parquet"], "column": "x"}
    result = run(source, op="sum", segments={"length": 4})
    assert (result.values, [time.iso for time in result.time]) == ((28, 18), ["PT28S", "PT18S"])


def test_what_cannot_be_kept_is_refused_by_its_field(root: Path, run: Run) -> None:
    each = integers(20_001, 99)
    FORMATS["x.parquet"](root / "many.parquet", table(each, pa.decimal128(9, SCALE)), 5000)
    source = {"type": "table", "path": "many.parquet", "column": "x"}
    cases: list[tuple[str, str, dict[str, Any]]] = [
        ("a result of more than 10,000 values takes no decimals", "segments", {"segments": {"length": 2}}),
        ("decimals have no exact states", "states", {"segments": {"length": 9000}, "states": True}),
        ("norm2 takes no decimals so far", "op", {"op": "norm2", "segments": {"length": 9000}}),
        ("takes no decimals so far", "source", {"op": "dot", "other": source, "segments": {"length": 9000}}),
        ("an axis 1|no axis 1", "axis", {"axis": 1}),
    ]
    for message, field, spec in cases:
        with pytest.raises(InvalidInput, match=message) as caught:
            run(source, **({"op": "sum"} | spec))
        assert caught.value.field == field
    np.save(root / "z.npy", np.ones((2, 2), "c8"))
    with pytest.raises(InvalidInput, match="takes no complex64 so far; reduce the real and the imaginary") as caught:
        run({"type": "array", "path": "z.npy"}, op="sum", axis=0)
    assert caught.value.field == "source"


def test_the_clients_array_has_decimals_of_python_and_times_of_numpy(root: Path, run: Run) -> None:
    FORMATS["x.parquet"](root / "c.parquet", table([5, 11, 7], pa.decimal128(9, SCALE)), 2)
    result = run({"type": "table", "path": "c.parquet", "column": "x"}, op="sum", segments={"offsets": [0, 2, 3]})
    array = ReduceArrayResult.model_validate_json(result.model_dump_json()).to_numpy()
    assert array.tolist() == [Decimal("0.016"), Decimal("0.007")]
    stamps = np.array([[4, 2], [7, 1]], "M8[ms]")
    np.save(root / "s.npy", stamps)
    result = run({"type": "array", "path": "s.npy"}, op="max", axis=0)
    array = ReduceArrayResult.model_validate_json(result.model_dump_json()).to_numpy()
    assert array.dtype == stamps.dtype
    assert (array == stamps.max(axis=0)).all()
    np.save(root / "s.npy", stamps - stamps[0, 0])
    result = run({"type": "array", "path": "s.npy"}, op="sum", segments={"offsets": [0, 3, 3]})
    array = ReduceArrayResult.model_validate_json(result.model_dump_json()).to_numpy()
    assert array.tolist() == np.array([1, 0], "m8[ms]").tolist()


class StoredOnly(Backend):
    """A backend that refuses elements that stand for something or are nulls, and notes what it was asked."""

    def __init__(self) -> None:
        self.inner = CpuBackend(8 << 20)
        self.device, self.asked = self.inner.device, list[Any]()

    def aggregate(self, query: Query[Answer], progress: Progress | None = None) -> Answer:
        check_values(query)
        self.asked.append(query)
        return self.inner.aggregate(query, progress)


def check_values(query: Query[Any]) -> None:
    if isinstance(query, ByKey):
        assert not any(query.source.meanings)
        assert query.plan.null_policy is not NullPolicy.PROPAGATE
    else:
        assert isinstance(query, Whole | Shaped)
        assert not any(meaning_of(source) or keeps_nulls(source) for source in query.sources)


def test_a_backend_is_asked_about_integers_with_the_same_options(tmp_path: Path) -> None:
    each = np.array(integers(12, 10**6), "i8").reshape(3, 4)
    np.save(tmp_path / "d.npy", each.astype("m8[s]"))
    backend = StoredOnly()
    made = backend.reduce_groups(
        opened(tmp_path, "d.npy"), (3, 4), AlongAxes((0,)), "norm1", strategy="exact", nan_policy=NanPolicy.OMIT
    )
    (query,) = backend.asked
    assert (query.op.name, query.strategy, query.nan_policy) == ("norm1", "exact", NanPolicy.OMIT)
    sums = [int(abs(column).sum()) for column in each.T]
    assert made.times is not None
    assert [time.iso for time in made.times if time is not None] == [duration(value, "s") for value in sums]


def test_a_backend_is_asked_about_plain_elements_as_they_are() -> None:
    backend, source = StoredOnly(), ArraySource(np.arange(6.0).reshape(2, 3))
    made = backend.reduce_groups(source, (2, 3), AlongAxes((1,)), "sum")
    (query,) = backend.asked
    assert query == Shaped(source=source, op=op_named("sum"), shape=(2, 3), grouping=AlongAxes((1,)))
    assert made.listed() == (3.0, 12.0)
    with pytest.raises(InvalidInput, match="modus"):
        backend.reduce_groups(source, (2, 3), AlongAxes((1,)), "modus")


@pytest.mark.parametrize("kind", [pa.int32(), pa.decimal128(9, SCALE), pa.timestamp("s")], ids=str)
def test_nulls_that_propagate_are_put_back_on_every_layout(tmp_path: Path, kind: Any) -> None:
    numbers = [4, None, 7, 1, 2, 9]
    column = pa.array(numbers, pa.int64()).cast(kind) if not pa.types.is_decimal(kind) else decimals(numbers, kind)
    FORMATS["x.parquet"](tmp_path / "n.parquet", pa.table({"k": [0, 0, 1, 1, 2, 2], "x": column}), 2)
    backend, folders = StoredOnly(), Folders((tmp_path,), tmp_path)
    named = {"type": "table", "path": "n.parquet", "null_policy": "propagate"}
    spec = {"kind": "groupby", "source": named, "by": ["k"], "aggregations": [{"op": "max", "column": "x"}]}
    asked = GroupbySpec.model_validate(spec)
    (by_key,) = backend.group_by(open_rows(asked, folders), plan_of(asked)).columns
    named_column = TableSource.model_validate({**named, "column": "x"})
    groups = backend.reduce_groups(named_column.open(folders), (6,), Segments(length=2), "max")
    whole = backend.reduce(named_column.open(folders), "max")
    assert [value is None for value in by_key.listed()] == [True, False, False]
    assert [value is None for value in groups.listed()] == [True, False, False]
    assert (groups.counted(), whole.null, whole.count) == ((1, 2, 2), True, 5)
    assert len(backend.asked) == 4, "the places of nulls are counted for many values alone"


def decimals(numbers: Sequence[int | None], kind: Any) -> Any:
    return pa.array([None if number is None else Decimal(number).scaleb(-SCALE) for number in numbers], kind)
