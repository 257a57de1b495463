"""What a dialect says of nulls."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.dialect import NULL_WORDS, Dialect
from warpfold.kernels.formats.frames import open_frame
from warpfold.kernels.formats.tables import ColumnWanted, open_column


def test_an_empty_cell_is_a_null_and_words_are_nulls_of_numbers_unless_they_are_named() -> None:
    assert Dialect().nulls_of_numbers == ("", *NULL_WORDS)
    assert Dialect().nulls_of_words == ("",)
    named = Dialect(null_words=("missing", "-"))
    assert named.nulls_of_numbers == named.nulls_of_words == ("", "missing", "-")
    assert Dialect(null_words=()).nulls_of_numbers == ("",)


@pytest.mark.parametrize("dialect", [Dialect(null_words=()), Dialect(null_words=("NA",)), Dialect(words=("x",))])
def test_what_is_for_text_is_refused_of_other_tables(tmp_path: Path, dialect: Dialect) -> None:
    pyarrow.parquet.write_table(pa.table({"x": [1]}), tmp_path / "x.parquet")
    with (tmp_path / "x.parquet").open("rb") as file:
        for read in (lambda: open_column(file, ColumnWanted(dialect=dialect)), lambda: open_frame(file, None, dialect)):
            with pytest.raises(InvalidInput, match=r"is not text, which `(null_)?words` is for: leave") as refused:
                read()
            assert refused.value.field in ("null_words", "words")
        open_column(file, ColumnWanted(dialect=Dialect()))


def test_a_null_may_be_written_as_a_number() -> None:
    assert not Dialect().has_numbers_as_nulls
    assert [Dialect(null_words=(word,)).has_numbers_as_nulls for word in ("-999", "0", ".", "none")] == [
        True,
        True,
        True,
        False,
    ]
