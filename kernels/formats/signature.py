"""The format of a file, by its first bytes."""

from enum import Enum
from typing import BinaryIO

_HDF5 = b"\x89HDF\r\n\x1a\n"
_MOST_USER_BLOCK = 1 << 20


class Format(Enum):
    """The formats that are known by their first bytes, as errors call them."""

    NPY = ".npy"
    NPZ = ".npz"
    HDF5 = "HDF5"
    NETCDF3 = "NetCDF-3"
    PARQUET = "Parquet"
    ARROW_FILE = "Arrow"
    ARROW_STREAM = "Arrow stream"
    FEATHER1 = "Feather version 1"
    GZIP = "gzip"
    ZSTD = "zstd"

    @property
    def tabular(self) -> bool:
        """Whether a file of this format holds a table. A compressed file holds text."""
        return self not in (Format.NPY, Format.NPZ, Format.HDF5, Format.NETCDF3)


_SIGNATURES = (
    (b"\x93NUMPY", Format.NPY),
    (b"PK\x03\x04", Format.NPZ),
    (b"PK\x05\x06", Format.NPZ),
    (_HDF5, Format.HDF5),
    (b"CDF", Format.NETCDF3),
    (b"PAR1", Format.PARQUET),
    (b"PARE", Format.PARQUET),
    (b"ARROW1", Format.ARROW_FILE),
    (b"\xff\xff\xff\xff", Format.ARROW_STREAM),
    (b"FEA1", Format.FEATHER1),
    (b"\x1f\x8b", Format.GZIP),
    (b"\x28\xb5\x2f\xfd", Format.ZSTD),
)


_PACKED = (".gz", ".zst", ".zstd")


def delimiter_of(name: str) -> str:
    """The delimiter between the columns of a text file that is called `name`: a tab in .tsv and .tab, else a comma."""
    return "\t" if _unpacked(name).endswith((".tsv", ".tab")) else ","


def is_text(name: str) -> bool:
    """Whether a file's name is that of a table of text."""
    return _unpacked(name).endswith((".csv", ".tsv", ".tab"))


def _unpacked(name: str) -> str:
    stem = name.lower()
    for packed in _PACKED:
        stem = stem.removesuffix(packed)
    return stem


def format_of(file: BinaryIO) -> Format | None:
    """The format that the first bytes of `file` name, None if they name no known format. The file is left at its
    beginning."""
    file.seek(0)
    first = file.read(16)
    known = next((kind for signature, kind in _SIGNATURES if first.startswith(signature)), None)
    at = 512
    while known is None and at <= _MOST_USER_BLOCK:  # HDF5 may begin behind a block that belongs to the application
        file.seek(at)
        known = Format.HDF5 if file.read(len(_HDF5)) == _HDF5 else None
        at *= 2
    file.seek(0)
    return known
