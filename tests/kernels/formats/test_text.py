"""Text in blocks that threads read and parse apart."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numba.core.event import install_recorder

from warpfold.kernels.cpu import backend as of_cpu
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats import text, text_blocks, text_file
from warpfold.kernels.formats.dialect import TextOptions
from warpfold.kernels.formats.frames import open_frame
from warpfold.kernels.formats.row_filter import Compared
from warpfold.kernels.formats.tables import ColumnWanted, open_column
from warpfold.kernels.ops import NanPolicy, NullPolicy
from warpfold.kernels.source import ArraySource
from warpfold.kernels.sources.sequential import SequentialSource

BLOCK = 64


@pytest.fixture(autouse=True)
def short_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_blocks, "_BLOCK_BYTES", BLOCK)


@pytest.fixture(autouse=True)
def is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short texts are read as on a machine that has compiled what reads text."""
    monkeypatch.setattr(text_blocks, "_has_compiled", lambda: True)


@contextmanager
def column(path: Path, content: str, *, refuse_nulls: bool = False) -> Iterator[SequentialSource]:
    path.write_text(content)
    with path.open("rb") as file:
        source = open_column(
            file, ColumnWanted("x", text=TextOptions(), nulls=NullPolicy.RAISE if refuse_nulls else NullPolicy.OMIT)
        )
        assert isinstance(source, SequentialSource)
        yield source


@pytest.mark.parametrize(("further_down", "dtype"), [("2.5", "float64"), ("7", "int64")])
def test_a_number_further_down_in_the_first_block_makes_no_integer_of_a_float_and_floats_of_integers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, further_down: str, dtype: str
) -> None:
    monkeypatch.setattr(text_blocks, "_SAMPLE_BYTES", 32)
    with column(tmp_path / "x.csv", "\n".join(["x", *["12"] * 30, further_down])) as source:
        assert source.dtype.name == dtype
    with column(tmp_path / "y.csv", "\n".join(["x", *["1.5"] * 30, further_down])) as source:
        assert source.dtype.name == "float64"
        assert CpuBackend().reduce(source, "sum").value == 45 + float(further_down)


def test_a_word_behind_numbers_is_named_with_its_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_blocks, "_SAMPLE_BYTES", 32)
    with (
        column(tmp_path / "x.csv", "\n".join(["x", *["1.5"] * 30, "north", "2.5"])) as source,
        pytest.raises(InvalidInput, match=r"Row #32: .*'north'"),
    ):
        CpuBackend().reduce(source, "sum")


@pytest.mark.parametrize("word", ["1e400", "-1e309", "1" * 310, "1.8e308"])
def test_a_number_beyond_the_range_of_its_float_is_refused_and_never_infinite(tmp_path: Path, word: str) -> None:
    lines = ["1.5"] * 40 + [word]
    with (
        column(tmp_path / "x.csv", "y,x\n" + "".join(f"7,{line}\n" for line in lines)) as source,
        pytest.raises(InvalidInput, match=f"holds {word[:60]} in column 'x', which is beyond the range of float64"),
    ):
        CpuBackend().reduce(source, "sum")


@pytest.mark.parametrize(("dtype", "word"), [("float32", "3.5e38"), ("float32", "1" * 40), ("float64", "1e400")])
def test_a_named_dtype_has_its_own_range(tmp_path: Path, dtype: str, word: str) -> None:
    (tmp_path / "x.csv").write_text(f"x\n{word}\n")
    with (tmp_path / "x.csv").open("rb") as file:
        source = open_column(file, ColumnWanted("x", text=TextOptions(), dtype=dtype))
        with pytest.raises(InvalidInput, match=f"beyond the range of {dtype}") as refused:
            CpuBackend().reduce(source, "sum")
    assert refused.value.field == "dtype"


def test_the_words_for_infinity_are_infinite_and_small_numbers_are_rounded(tmp_path: Path) -> None:
    words = ["inf", "Inf", "INF", "1e-400", "1.5"]
    with column(tmp_path / "x.csv", "x\n" + "".join(f"{word}\n" for word in words)) as source:
        assert np.concatenate(list(source.make())).tolist() == [np.inf, np.inf, np.inf, 0.0, 1.5]


@pytest.mark.parametrize("op", ["sum", "var", "max", "argmin", "count_nonzero"])
def test_blocks_in_any_order_give_the_value_of_the_column(tmp_path: Path, op: str) -> None:
    numbers = np.random.default_rng(3).standard_normal(2000)
    numbers[[700, 1300]] = -9.5
    with column(tmp_path / "x.csv", "x\n" + "".join(f"{number!r}\n" for number in numbers.tolist())) as source:
        result = CpuBackend().reduce(source, op)
    assert result.count == 2000
    assert result.value == CpuBackend().reduce(ArraySource(numbers), op).value


def test_what_is_refused_is_named_by_its_index_in_the_column(tmp_path: Path) -> None:
    lines = ["1.5"] * 300
    with (
        column(tmp_path / "nan.csv", "\n".join(["x", *lines, "nan", *lines, "nan"])) as source,
        pytest.raises(InvalidInput, match="element 300 is NaN"),
    ):
        CpuBackend().reduce(source, "sum", nan_policy=NanPolicy.RAISE)
    with (
        column(tmp_path / "null.csv", "\n".join(["x", *lines, "NA", *lines, "NA"]), refuse_nulls=True) as source,
        pytest.raises(InvalidInput, match="at index 300"),
    ):
        CpuBackend().reduce(source, "sum")


def test_of_several_wrong_rows_the_first_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_blocks, "_FIRST_BYTES", 128)
    monkeypatch.setattr(text_blocks, "_HEAD_BYTES", 128)
    lines = [f"{number},1" for number in range(200)]
    with (
        column(tmp_path / "x.csv", "\n".join(["x,y", *lines, "1,2,3", *lines, "4", ""])) as source,
        pytest.raises(InvalidInput, match="Row #202: Expected 2 columns, got 3"),
    ):
        CpuBackend().reduce(source, "sum")


def test_a_file_that_is_cut_after_it_was_opened_is_an_error(tmp_path: Path) -> None:
    with column(tmp_path / "x.csv", "x\n" + "1\n" * 1000) as source:
        (tmp_path / "x.csv").write_text("x\n1\n")
        with pytest.raises(InvalidInput, match="the file became shorter while it was read"):
            CpuBackend().reduce(source, "sum")


@pytest.mark.parametrize("near", [1, 5, 1 << 12])
def test_lines_longer_than_a_block_stay_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, near: int) -> None:
    monkeypatch.setattr(text_blocks, "_NEAR_BYTES", near)
    lengths = [1, 3 * BLOCK, 2, BLOCK, BLOCK - 1, 10 * BLOCK, 1]
    lines = [f"{'z' * length},{number}" for number, length in enumerate(lengths)]
    for end in ("\n", "\r\n", "\r"):
        with column(tmp_path / "x.csv", end.join(["y,x", *lines])) as source:
            assert np.concatenate(list(source.make())).tolist() == list(range(len(lengths)))


def test_parts_of_the_first_block_tell_one_dtype_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_file, "_INFERRED_BYTES", 16)
    with column(tmp_path / "x.csv", "x,y\n" + ",a\n" * 20 + "1,a\n" * 20 + "0.5,a\n") as source:
        assert source.dtype.name == "float64"
        assert sum(array.sum() for array in source.make()) == 20.5
    with (tmp_path / "x.csv").open("rb") as file:
        assert text.first_block(file, None, TextOptions()) == pa.schema([("x", pa.float64()), ("y", pa.string())])


def test_several_columns_come_in_order_and_name_the_first_wrong_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_blocks, "_FIRST_BYTES", 128)
    monkeypatch.setattr(text_blocks, "_HEAD_BYTES", 128)
    lines = [f"{number},{number / 2},a" for number in range(500)]
    (tmp_path / "x.csv").write_text("\n".join(["x,y,z", *lines, ""]))
    with (tmp_path / "x.csv").open("rb") as file:
        batches = list(open_frame(file, None, TextOptions()).make(["y", "x"]))
    assert len(batches) > 10
    assert [row for batch in batches for row in batch.column("x").to_pylist()] == list(range(500))
    (tmp_path / "x.csv").write_text("\n".join(["x,y,z", *lines, "1,2", *lines, "1", ""]))
    wrong = pytest.raises(InvalidInput, match="Row #502: Expected 3 columns, got 2")
    with (tmp_path / "x.csv").open("rb") as file, wrong:
        list(open_frame(file, None, TextOptions()).make(["y", "x"]))


CELLS = {
    "a line feed": ("Main Street 5\n7,Springfield", "\n"),
    "a line feed among rows that end by both": ("Main Street 5\n7,Springfield", "\r\n"),
    "both line ends": ("5\r\n7,8\r\n", "\r\n"),
    "both among rows that end by a line feed": ("5\r\n7,8\r\n", "\n"),
    "a carriage return": ("5\r7,8", "\n"),
    "line feeds among rows that end by a carriage return": ("5\n7,8", "\r"),
    "quotes at both ends": ('"\n7,8\n"', "\n"),
    "nothing but line feeds": ("\n\n\n", "\n"),
    "rows of numbers": ("\n".join(f"{number},{number}" for number in range(30)), "\n"),
    "a quote before a line end": ('5"\n7,8', "\n"),
}


COUNT = 20
"""Rows: the shortest are still longer than two blocks together, and where each byte begins a block, more take long."""


@pytest.mark.parametrize("packed", ["", "gzip", "zstd"])
@pytest.mark.parametrize(("cell", "end"), CELLS.values(), ids=CELLS)
def test_a_line_end_within_quotes_ends_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cell: str, end: str, packed: str
) -> None:
    quoted = '"' + cell.replace('"', '""') + '"'
    rows = [["x", "y", "z"], *([str(number), quoted, '5" pipe' if number % 3 else "pipe"] for number in range(COUNT))]
    for ended, mark in ((True, b""), (False, b"\xef\xbb\xbf")):
        content = mark + end.join(map(",".join, rows)).encode() + end.encode() * ended
        path = tmp_path / "x.csv"
        with pa.CompressedOutputStream(str(path), packed) if packed else path.open("wb") as file:
            file.write(content)
        sizes = ((7, 1 << 12), (BLOCK, 5), (1 << 20, 1 << 12))  # blocks are cut where text is unpacked already
        for size, near in sizes if packed or mark else ((1, 1), *sizes):
            monkeypatch.setattr(text_blocks, "_BLOCK_BYTES", size)
            monkeypatch.setattr(text_blocks, "_LEAST_BLOCK_BYTES", 1)
            monkeypatch.setattr(text_blocks, "_NEAR_BYTES", near)
            with path.open("rb") as file:
                source = open_column(file, ColumnWanted("x", text=TextOptions()))
                assert isinstance(source, SequentialSource)
                assert CpuBackend().reduce(source, "sum").value == sum(range(COUNT))
                only = ColumnWanted("x", Compared("y", "==", cell), text=TextOptions())
                assert CpuBackend().reduce(open_column(file, only), "sum").value == sum(range(COUNT))
                table = pa.Table.from_batches(open_frame(file, None, TextOptions()).make(["x", "y"]))
        assert table.to_pydict() == {"x": list(range(COUNT)), "y": [cell] * COUNT}


@pytest.mark.parametrize("packed", ["", "gzip"])
def test_a_quote_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: str) -> None:
    monkeypatch.setattr(text_blocks, "_FIRST_BYTES", 1 << 10)
    path = tmp_path / "x.csv"
    for behind, why in (
        (20, "it ends within a cell that begins with a quote"),
        (1 << 11, "a quote that begins a cell"),
    ):
        content = "x,y\n" + "1,a\n" * 100 + '2,"b\n' + "3,c\n" * behind
        with pa.CompressedOutputStream(str(path), packed) if packed else path.open("wb") as file:
            file.write(content.encode())
        with path.open("rb") as file, pytest.raises(InvalidInput, match=why):
            CpuBackend().reduce(open_column(file, ColumnWanted("x", text=TextOptions())), "sum")


def test_rows_behind_line_ends_in_quotes_have_their_number_in_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_blocks, "_FIRST_BYTES", 128)
    with (
        column(tmp_path / "x.csv", "x,y\n" + '1,"a\nb"\n' * 50 + "1,2,3\n") as source,
        pytest.raises(InvalidInput, match="Row #52: Expected 2 columns, got 3"),
    ):
        CpuBackend().reduce(source, "sum")


SHORT = [
    "x,t\n0.5,a\n0.25,b\n",
    "x,t\r\n1,a\r\n-2,b\r\n",
    "x,t\r1,a\r-2,b",
    'x,t\n1e3,"a\nb"\n"0.1",""""\n',
    'x,t\n1,"a\n' + "b\n" * 60 + 'c"\n2,d\n',
    "x,t\n1,a\nNA,b\n,c\nnan,d\n",
    'x,t\n1,a\n"",b\n3,c\n',
    "x\n1\n\n3\n",
    "x,t\n" + "1,a\n" * 40 + "9007199254740993,b\n",
    "x,t\n" + "1.5,a\n" * 40 + "9007199254740993,b\n",
    "x,t\n" + "1.5,a\n" * 40 + "1e400,b\n",
    "x,t\n" + "1,a\n" * 40 + "9223372036854775808,b\n",
    "x,t\n" + "1,a\n" * 40 + "0x10,b\n",
    "x,t\n" + "1,a\n" * 40 + "north,b\n",
    "x,t\n" + "1,a\n" * 40 + "1,b,c\n",
    'x,t\n1,a\n2,"b\n',
    "x,t\n",
    "\ufeffx,t\n5,a\n",
]


@pytest.mark.parametrize("content", SHORT)
def test_a_short_text_is_the_same_before_anything_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    def value() -> tuple[Any, ...]:
        with column(tmp_path / "x.csv", content) as source:
            reduction = CpuBackend().reduce(source, "sum", nan_policy=NanPolicy.OMIT)
            return reduction.value, reduction.dtype, reduction.count, reduction.state, source.tally.nulls

    def rows() -> Any:
        with (tmp_path / "x.csv").open("rb") as file:
            frame = open_frame(file, None, TextOptions())
            table = pa.Table.from_batches(frame.make(frame.schema.names), frame.schema)
            return str(table.schema), str(table.to_pydict())  # a NaN is not equal to itself

    def inferred(read: Callable[[], Any]) -> Any:
        try:
            return read()
        except InvalidInput as error:
            return str(error), error.field

    compiled = inferred(value), inferred(rows)
    monkeypatch.setattr(text_blocks, "_has_compiled", lambda: False)
    assert (inferred(value), inferred(rows)) == compiled


def test_a_short_text_waits_for_no_compiler_and_a_longer_one_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_blocks, "_has_compiled", lambda: False)
    monkeypatch.setattr(of_cpu, "is_marked", lambda what: False)
    content = 'x,t\n0.5,"a\nb"\n0.25,c\n'

    def asked() -> tuple[Any, int]:
        with install_recorder("numba:compiler_lock") as recorded, column(tmp_path / "x.csv", content) as source:
            value = CpuBackend(at_once=True).reduce(source, "sum").value
        return value, len(recorded.buffer)

    monkeypatch.setattr(text_file, "plain_columns", lambda *_, **__: pytest.fail("that would be compiled"))
    assert asked() == (0.75, 0)
    monkeypatch.undo()
    read = list[bool]()
    monkeypatch.setattr(text_blocks, "_has_compiled", lambda: False)
    monkeypatch.setattr(text_blocks, "_AT_ONCE_BYTES", len(content) - 1)
    monkeypatch.setattr(text_file, "plain_columns", lambda *_, **__: read.append(True))
    assert asked()[0] == 0.75
    assert read
