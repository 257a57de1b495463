"""The format of a file, by its first bytes, and which of these formats are read."""

import json
import re
from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import BinaryIO

from warpfold.kernels.errors import InvalidInput

_HDF5 = b"\x89HDF\r\n\x1a\n"
_MOST_USER_BLOCK = 1 << 20


class Format(Enum):
    """The formats that are known by their first bytes, as errors call them."""

    NPY = ".npy"
    NPZ = ".npz"
    HDF5 = "HDF5"
    NETCDF3 = "NetCDF-3"
    JSON = "JSON"
    JSON_LINES = "JSON lines"
    PARQUET = "Parquet"
    ARROW_FILE = "Arrow"
    ARROW_STREAM = "Arrow stream"
    FEATHER1 = "Feather version 1"
    GZIP = "gzip"
    ZSTD = "zstd"
    XLSX = ".xlsx"
    XLS = ".xls"
    ODS = ".ods"

    @property
    def tabular(self) -> bool:
        """Whether a file of this format holds a table. A compressed file holds text."""
        return self not in (Format.NPY, Format.NPZ, Format.HDF5, Format.NETCDF3)


_SIGNATURES = (
    (b"\x93NUMPY", Format.NPY),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", Format.XLS),
    (b"PK\x03\x04", Format.NPZ),
    (b"PK\x05\x06", Format.NPZ),
    (_HDF5, Format.HDF5),
    (b"CDF\x01", Format.NETCDF3),
    (b"CDF\x02", Format.NETCDF3),
    (b"CDF\x05", Format.NETCDF3),
    (b"PAR1", Format.PARQUET),
    (b"PARE", Format.PARQUET),
    (b"ARROW1", Format.ARROW_FILE),
    (b"\xff\xff\xff\xff", Format.ARROW_STREAM),
    (b"FEA1", Format.FEATHER1),
    (b"\x1f\x8b", Format.GZIP),
    (b"\x28\xb5\x2f\xfd", Format.ZSTD),
)

_NOT_READ: Mapping[Format, str] = MappingProxyType(
    {
        Format.NETCDF3: "is a NetCDF-3 file, which is not read: `nccopy -k nc4` makes a NetCDF-4 file of it",
        Format.FEATHER1: "is a Feather file of version 1, which is not read: write it as version 2",
        Format.XLS: "is an .xls workbook, or one with a password, which is not read: save it as .xlsx without "
        "a password",
        Format.ODS: "is an OpenDocument file, which is not read: save the sheet as .xlsx or .csv",
        Format.JSON: "is JSON, which is not read: write it as JSON lines, an object a line, or the values as "
        "Parquet, as CSV or as .npy",
    }
)
"""Why files of some formats are refused, and how to go on."""

_OF_WORKBOOKS = (b"[Content_Types].xml", b"_rels/", b"docProps/", b"xl/", b"customXml/")
"""What the name of the first part of a workbook begins with, which is a zip archive as .npz is."""

_JSON = re.compile(
    rb"""(?:\xef\xbb\xbf)?\s*  # a mark of UTF-8 and empty lines may stand before the value
    (?:\{\s*(?:"(?:[^"\\]|\\.)*(?:"\s*:|\Z)|\}|\Z)  # an object: its first name and a colon
    |\[\s*(?:[\[{\]"]|-?[0-9][0-9.eE+-]*\s*[,\]]|(?:true|false|null)\s*[,\]]|\Z))  # an array: its first element""",
    re.VERBOSE,
)
_MOST_JSON = 1 << 12
"""How many bytes may stand before the first value of JSON, and how long its first name may be."""

_PACKED = (".gz", ".zst", ".zstd")


def delimiter_of(name: str) -> str | None:
    """The delimiter between the columns of a text file that is called `name`: a tab in .tsv and .tab. Other names do
    not tell."""
    return "\t" if _unpacked(name).endswith((".tsv", ".tab")) else None


def is_text(name: str) -> bool:
    """Whether a file's name is that of a table of text."""
    return _unpacked(name).endswith((".csv", ".tsv", ".tab", ".jsonl", ".ndjson"))


def _unpacked(name: str) -> str:
    stem = name.lower()
    for packed in _PACKED:
        stem = stem.removesuffix(packed)
    return stem


def json_format(first: bytes) -> Format | None:
    """The format of a file that begins with these bytes: JSON lines, whose first line is an object, JSON, or None for
    another one. The name of a column in brackets is no JSON. The end of a long line need not be there."""
    if _JSON.match(first[:_MOST_JSON]) is None:
        return None
    line, end, _ = first.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")
    if not line.startswith(b"{"):
        return Format.JSON
    try:
        json.loads(line)
    except RecursionError:
        return Format.JSON
    except ValueError:
        return Format.JSON if end else Format.JSON_LINES
    return Format.JSON_LINES


def format_of(file: BinaryIO) -> Format | None:
    """The format that the first bytes of `file` name, None if they name no known format. The file is left at its
    beginning."""
    file.seek(0)
    first = file.read(_MOST_JSON)
    known = next((kind for signature, kind in _SIGNATURES if first.startswith(signature)), None)
    at = 512
    while known is None and at <= _MOST_USER_BLOCK:  # HDF5 may begin behind a block that belongs to the application
        file.seek(at)
        known = Format.HDF5 if file.read(len(_HDF5)) == _HDF5 else None
        at *= 2
    file.seek(0)
    if known is Format.NPZ:
        return _of_zip(first)
    return json_format(first) if known is None else known


def _of_zip(first: bytes) -> Format:
    """The format of a zip archive, by its first part."""
    name = first[30:]
    if name.startswith(b"mimetype") and b"opendocument" in name[:128]:
        return Format.ODS
    return Format.XLSX if name.startswith(_OF_WORKBOOKS) else Format.NPZ


def is_read(kind: Format) -> bool:
    """Whether files of a format are read."""
    return kind not in _NOT_READ


def readable_format(file: BinaryIO) -> Format | None:
    """The same format. Raises InvalidInput, whose sentence says how to go on, where files of the format are not
    read."""
    kind = format_of(file)
    if kind is not None and not is_read(kind):
        raise InvalidInput(_NOT_READ[kind])
    return kind


def compressed_format(stream: BinaryIO) -> Format | None:
    """The format of text that was compressed: JSON lines, or None. Raises InvalidInput for another format."""
    first = stream.read(_MOST_JSON)
    kind = next((kind for signature, kind in _SIGNATURES if first.startswith(signature)), None)
    kind = json_format(first) if kind is None else kind
    if kind is not None and not is_read(kind):
        raise InvalidInput(_NOT_READ[kind])
    if kind not in (None, Format.JSON_LINES):
        raise InvalidInput(f"is {kind.value} that was compressed, which is not read: decompress it first")
    return kind
