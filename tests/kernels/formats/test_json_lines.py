"""JSON lines: columns by name, numbers that nothing rounds in silence, and files that are damaged."""

import gzip
import json
import math
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats import text_blocks
from warpfold.kernels.formats.dialect import TextOptions
from warpfold.kernels.formats.frames import Wanted, keyed_frame, open_frame
from warpfold.kernels.formats.row_filter import Compared
from warpfold.kernels.formats.tables import ColumnWanted, open_column
from warpfold.kernels.ops import OPS
from warpfold.kernels.parts.keyed import Aggregation, GroupPlan


def total(path: Path, content: str | bytes, **options: Any) -> str:
    """The sum of the column x, its dtype, and the number of its nulls."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with path.open("rb") as file:
        source = open_column(file, ColumnWanted("x", **{"text": TextOptions(), **options}))
        value = CpuBackend().reduce(source, "sum").value
        return f"{value!r} {source.dtype.name} {source.tally.nulls}"  # type: ignore[union-attr]


def groups(path: Path) -> dict[Any, Any]:
    """The sums of the column x by the keys in the column k."""
    with path.open("rb") as file:
        rows = keyed_frame(
            open_frame(file, None, TextOptions()),
            [Wanted("k", "k", "by")],
            [Wanted("x", "x", "of")],
            refuse_nulls=False,
        )
        table = CpuBackend().group_by(rows, GroupPlan((Aggregation(OPS["sum"], 0, "x"),))).table().to_pydict()
    return dict(zip(table["k"], table["x"], strict=True))


@pytest.mark.parametrize(
    ("lines", "value"),
    [
        ('{"x": 9007199254740993}\n{"x": 1}\n', "9007199254740994 int64 0"),
        ('{"x": 0.1}\n\n{"x": 1e22}\r\n{"x": null}\n{"y": 1}', "1e+22 float64 2"),
        ('\ufeff{"x": true, "y": {"x": [1]}}\n{"x": false}\n', "1 bool 0"),
        ('{"x": 1.5}\n{"x": NaN}\n', "nan float64 0"),
        ('{"y": "}\\n{"}\n{"x": 5, "y": "{\\"x\\": 7"}\n', "5 int64 1"),
    ],
)
def test_values_are_taken_by_name(tmp_path: Path, lines: str, value: str) -> None:
    assert total(tmp_path / "x", lines) == value
    assert total(tmp_path / "x", gzip.compress(lines.encode())) == value


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ('{"x": 9007199254740993}\n{"x": 1.5}\n', "an integer that float64 would round"),
        ('{"x": 9223372036854775808}\n{"x": 1}\n', "holds 9223372036854775808 .* `dtype` may name uint64"),
        ('{"x": 1e400}\n', "too big"),
        ('{"x": "1"}\n', "holds column 'x' as string"),
        ('{"x": [1]}\n', "holds column 'x' as list"),
        ('{"x": 1}\n{"x": "a"}\n', "holds column 'x' as string"),
        ('{"x": 1}\n{"x": 1, "x": 2}\n', "specified twice in row 2"),
        ('{"x": 1}\n[1]\n', "is no object"),
        ('{"x": 1}\n{"x": 2', "cannot be read as JSON lines"),
        ('{"x": 0x10}\n', "is JSON"),
        ('{"y": 1}\n', "holds no column 'x'"),
        ('{"x": 1}\n{"y": ' + "[" * 100_000 + "]" * 100_000 + "}\n", "nested too deeply"),
        ('{\n"x": 1}\n', "is JSON, which is not read: write it as JSON lines"),
    ],
)
def test_what_would_change_a_number_is_refused(tmp_path: Path, lines: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        total(tmp_path / "x", lines)


def test_a_dtype_may_be_named_and_options_of_cells_are_refused(tmp_path: Path) -> None:
    lines = '{"x": 18446744073709551615}\n{"x": 0}\n'
    assert total(tmp_path / "x", lines, dtype="uint64") == "18446744073709551615 uint64 0"
    with pytest.raises(InvalidInput, match="an integer that float32 would round"):
        total(tmp_path / "x", '{"x": 16777217}\n', dtype="float32")
    with pytest.raises(InvalidInput, match="leave `delimiter` out"):
        total(tmp_path / "x", lines, text=TextOptions(delimiter=";"))


def test_keys_are_strings_integers_and_truth_values_as_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for keys in (
        ["00501", "501", "NA"],
        ["2026-01-01", "2026-01-02", "2026-01-01 "],
        [3, 7, 9007199254740993],
        [True, False],
    ):
        path.write_text("".join(f'{{"k": {json.dumps(key)}, "x": {at}}}\n' for at, key in enumerate(keys)))
        assert groups(path) == {key: at for at, key in enumerate(keys)}
    only = Compared("k", "==", "a")
    assert total(path, '{"k": "a", "x": 1}\n{"k": "b", "x": 5}\n', rows=only) == "1 int64 0"


@given(st.lists(st.one_of(st.none(), st.floats(allow_nan=False), st.integers(-(1 << 53), 1 << 53)), min_size=1))
def test_sums_are_those_of_the_values_as_written(
    tmp_path_factory: pytest.TempPathFactory, values: list[float | int | None]
) -> None:
    numbers = [float(value) for value in values if value is not None] + [0.5]
    lines = "".join(f'{{"x": {json.dumps(value)}}}\n' for value in [*values, 0.5])
    expected = math.fsum(numbers) if all(map(math.isfinite, numbers)) else sum(map(float, numbers))
    path = tmp_path_factory.getbasetemp() / "drawn.jsonl"
    with suppress(OverflowError):
        assert total(path, lines).split()[0] == repr(expected)


def test_blocks_are_read_in_parts_and_damage_is_an_error_or_another_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_blocks, "_BLOCK_BYTES", 1 << 10)
    monkeypatch.setattr(text_blocks, "_LEAST_BLOCK_BYTES", 1 << 10)
    path, random = tmp_path / "x", Random(38)
    lines = "".join(f'{{"k": "ä{row % 3}", "x": {row}, "y": [{row}.5]}}\n' for row in range(300))
    assert total(path, lines) == f"{sum(range(300))} int64 0"
    assert groups(path)["ä1"] == sum(range(1, 300, 3))
    for _ in range(60):
        damaged = bytearray(lines.encode())
        damaged[random.randrange(len(damaged))] = random.randrange(256)
        with suppress(InvalidInput):
            total(path, bytes(damaged[: random.randrange(len(damaged))]))
            groups(path)
