"""Formats by their first bytes, and those that are not read."""

import io

import pytest

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.signature import (
    Format,
    compressed_format,
    format_of,
    is_read,
    json_format,
    readable_format,
)

JSON_LINES = [
    b'{"x": 1}\n{"x": 2}\n',
    b'{"x":1}',
    b"{}",
    b'\xef\xbb\xbf\r\n {"x y": null}',
    b'{"a \\" quote": 1}',
    b'{"type": "FeatureCollection", "features": [',
    b'{"x": "' + b"a" * 5000,
]
JSON = [
    b'[{"x": 1}, {"x": 2}]',
    b'{\n  "rows": [\n    1\n  ]\n}\n',
    b"[1, 2, 3]\n",
    b"[[1, 2], [3, 4]]",
    b"[-1.5e3]",
    b'["a", "b"]',
    b"[]",
    b"[true, false]",
    b'{"type": "FeatureCollection", "features": [\n',
]
TEXT = [
    b"x,y\n1,2\n",
    b"[x],[y]\n1,2\n",
    b'"{x}",y\n1,2\n',
    b"{x},y\n1,2\n",
    b"CDF,x\n1,2\n",
    b"CDFx\n1\n",
    b"",
    b"nullable,x\n",
    b"1,2\n3,4\n",
]


@pytest.mark.parametrize("first", JSON)
def test_json_is_refused_by_name(first: bytes) -> None:
    assert format_of(io.BytesIO(first)) is Format.JSON
    with pytest.raises(InvalidInput, match=r"is JSON, which is not read: write it as JSON lines"):
        readable_format(io.BytesIO(first))


@pytest.mark.parametrize("first", JSON_LINES)
def test_json_lines_begin_with_a_line_that_is_an_object(first: bytes) -> None:
    assert readable_format(io.BytesIO(first)) is Format.JSON_LINES
    assert compressed_format(io.BytesIO(first)) is Format.JSON_LINES


@pytest.mark.parametrize("first", TEXT)
def test_tables_of_text_are_no_json_and_no_netcdf(first: bytes) -> None:
    assert readable_format(io.BytesIO(first)) is None
    assert json_format(first) is None


@pytest.mark.parametrize(
    ("first", "sentence"),
    [
        (b"CDF\x01" + bytes(28), "is a NetCDF-3 file, which is not read: `nccopy -k nc4`"),
        (b"CDF\x02" + bytes(28), "is a NetCDF-3 file"),
        (b"CDF\x05" + bytes(28), "is a NetCDF-3 file"),
        (b"FEA1" + bytes(28), "is a Feather file of version 1, which is not read: write it as version 2"),
    ],
)
def test_other_formats_that_are_not_read_say_how_to_go_on(first: bytes, sentence: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        readable_format(io.BytesIO(first))
    assert sentence in str(refused.value)
    with pytest.raises(InvalidInput) as refused:
        compressed_format(io.BytesIO(first))
    assert sentence in str(refused.value)


def test_what_is_compressed_must_be_text() -> None:
    assert compressed_format(io.BytesIO(b"x,y\n1,2\n")) is None
    with pytest.raises(InvalidInput, match="is Parquet that was compressed, which is not read: decompress it first"):
        compressed_format(io.BytesIO(b"PAR1" + bytes(28)))


def test_formats_that_are_read_are_not_refused() -> None:
    assert [kind for kind in Format if not is_read(kind)] == [
        Format.NETCDF3,
        Format.JSON,
        Format.FEATHER1,
        Format.XLS,
        Format.ODS,
    ]
