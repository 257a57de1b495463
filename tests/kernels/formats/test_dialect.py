"""What a dialect says of nulls."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.dialect import NULL_WORDS, Dialect, TextOptions
from warpfold.kernels.formats.frames import open_frame
from warpfold.kernels.formats.tables import ColumnWanted, open_column


def test_an_empty_cell_is_a_null_and_words_are_nulls_of_numbers_unless_they_are_named() -> None:
    assert Dialect().nulls_of_numbers == ("", *NULL_WORDS)
    assert Dialect().nulls_of_words == ("",)
    named = Dialect(null_words=("missing", "-"))
    assert named.nulls_of_numbers == named.nulls_of_words == ("", "missing", "-")
    assert Dialect(null_words=()).nulls_of_numbers == ("",)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("null_words", ("NA",)),
        ("words", ("x",)),
        ("delimiter", ";"),
        ("header", False),
        ("encoding", "latin-1"),
        ("quote", ""),
    ],
)
def test_what_is_for_text_is_refused_of_other_tables(tmp_path: Path, field: str, value: Any) -> None:
    options = TextOptions(**{field: value})
    pyarrow.parquet.write_table(pa.table({"x": [1]}), tmp_path / "x.parquet")
    with (tmp_path / "x.parquet").open("rb") as file:
        for read in (lambda: open_column(file, ColumnWanted(text=options)), lambda: open_frame(file, None, options)):
            with pytest.raises(InvalidInput, match=f"is not text, which `{field}` is for: leave") as refused:
                read()
            assert refused.value.field == field
        open_column(file, ColumnWanted(text=TextOptions(of_name="\t")))


def test_a_null_may_be_written_as_a_number() -> None:
    assert not Dialect().has_numbers_as_nulls
    assert [Dialect(null_words=(word,)).has_numbers_as_nulls for word in ("-999", "0", ".", "none")] == [
        True,
        True,
        True,
        False,
    ]
