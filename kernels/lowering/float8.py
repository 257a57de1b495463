"""Floats of 8 bits, e4m3fn and e5m2 (OCP 8-bit Floating Point Specification): float32 holds all their values, so each
is widened to it exactly, and float32 is what is reduced.

Files have them as bytes. NumPy writes e5m2 as '<f1', and e4m3fn as raw bytes whose name is lost.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.source import checksums_of
from warpfold.kernels.sources.checksums import verified
from warpfold.kernels.sources.sections import in_turn
from warpfold.kernels.sources.sequential import Elements, Section, SequentialSource, Tally, shape_of

FLOAT8: Mapping[str, "np.dtype[Any]"] = MappingProxyType(
    {"e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn), "e5m2": np.dtype(ml_dtypes.float8_e5m2)}
)
"""The formats, and what ml_dtypes calls them."""

NAMELESS = np.dtype("V1")
"""The dtype of e4m3fn in a file that NumPy wrote."""

_PART = 1 << 19


def format_of_dtype(dtype: "np.dtype[Any]") -> str | None:
    """The format of floats of 8 bits; None of other dtypes."""
    return next((name for name, known in FLOAT8.items() if known == dtype), None)


def bytes_of(dtype: "np.dtype[Any]") -> "np.dtype[Any] | None":
    """The dtype of the bytes that floats of 8 bits are stored as, also where their name was lost; None of others."""
    return np.dtype(np.uint8) if dtype == NAMELESS or format_of_dtype(dtype) is not None else None


def check_format(dtype: "np.dtype[Any]", wanted: str | None) -> str | None:
    """The format by which an array of `dtype` is read; None where it holds other elements. Raises InvalidInput naming
    "float8" where only the request can say the format, or says another one."""
    own = format_of_dtype(dtype)
    if own is None and dtype == NAMELESS and wanted is None:
        raise InvalidInput(
            "holds raw bytes, as NumPy saves float8_e4m3fn: float8 says which floats they are, e4m3fn or e5m2", "float8"
        )
    if wanted is None or own == wanted:
        return own
    if own is not None or dtype not in (NAMELESS, np.dtype(np.uint8)):
        raise InvalidInput(f"holds {str(dtype)[:64]}, and no bytes that are floats of the format {wanted}", "float8")
    return wanted


def widened(stored: Elements, name: str) -> SequentialSource:
    """The floats whose bytes `stored` has, as float32; nulls and shape stay as they are."""
    table = np.arange(256, dtype=np.uint8).view(FLOAT8[name]).astype(np.float32)

    def wide(make: Callable[[], Iterator[NDArray[Any]]]) -> Iterator[NDArray[Any]]:
        return (table[piece] for piece in make())

    if isinstance(stored, SequentialSource):
        inner = stored.sections

        def widened_sections() -> Iterator[Section]:
            assert inner is not None
            for section in inner():
                yield replace(section, make=partial(wide, section.make), nbytes=4 * section.nbytes)

        return replace(
            stored,
            dtype=DTYPES["float32"],
            make=partial(wide, stored.make),
            sections=None if inner is None else widened_sections,
        )
    tally, source = Tally(), stored

    def read(start: int, stop: int) -> Iterator[NDArray[Any]]:
        yield table[source.read(start, stop)]

    def sections() -> Iterator[Section]:
        with verified(checksums_of(source)):  # nobody else knows the stored bytes
            for start in range(0, source.count, _PART):
                stop = min(start + _PART, source.count)
                yield Section(partial(read, start, stop), 4 * (stop - start), start, stop - start)

    return SequentialSource(
        DTYPES["float32"],
        lambda: in_turn(sections(), tally),
        source.count,
        source.count,
        tally,
        shape_of(source),
        sections,
    )
