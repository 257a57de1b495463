"""Columns of DuckDB that no compiled callback adds: two of different types, which are multiplied, and those of types
that DuckDB would round to DOUBLE."""

import ctypes
from ctypes import c_uint8, c_void_p
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.engines.multiplied import exact_floats, unsigned_together
from warpfold.kernels.errors import InvalidInput

NATIVE = {"FLOATS": 11, "SIGNED": 5, "UNSIGNED": 9}
"""DUCKDB_TYPE (duckdb.h) of the columns that are added as they are: DOUBLE, BIGINT and UBIGINT. DuckDB converts
narrower columns to these without loss."""

DECIMAL = 19
_ROUNDED = {"HUGEINT": 16, "UHUGEINT": 32, "BIGNUM": 35, "DECIMAL": DECIMAL}
"""The types that DuckDB converts to DOUBLE for a function that does not take them."""

REMEDIES = {
    "DECIMAL": "DuckDB's own sum is exact, and a cast to DOUBLE rounds each element",
    "HUGEINT": "a cast to BIGINT or UBIGINT refuses what 64 bits do not hold, and one to DOUBLE rounds",
}

_DTYPES = {11: np.dtype(np.float64), 5: np.dtype(np.int64), 9: np.dtype(np.uint64)}


def others(columns: int) -> list[tuple[int, ...]]:
    """The types of all arguments of so many columns that `add_others` takes."""
    every = product((*NATIVE.values(), *_ROUNDED.values()), repeat=columns)
    return [types for types in every if set(types) & set(_ROUNDED.values()) or len(set(types)) > 1]


def add_others(library: Any, rows: Any, chunk: int, states: int) -> None:
    """Add the products of the two columns of `chunk` to the `states` of its rows, by the loops `rows`
    (kernels.cpu.windows.scattered_rows).

    Raises InvalidInput for a column of a type that DuckDB would round, and for integers that the type of the other
    column does not hold.
    """
    count = library.duckdb_data_chunk_get_size(chunk)
    left, right = (_Column.of(library, chunk, number, count) for number in range(2))
    pair = [left.elements, right.elements]
    if any(each.dtype.kind == "f" for each in pair):
        pair = [each if each.dtype.kind == "f" else exact_floats(each) for each in pair]
    words = [np.ascontiguousarray(each).view(np.int64) for each in pair]
    at = words[0].ctypes.data, left.validity, words[1].ctypes.data, right.validity, states, count, 0
    if pair[0].dtype.kind == "f":
        rows.add_float_products(*at)
    else:
        rows.add_integer_products(*at, unsigned_together(words, [each.dtype.kind == "u" for each in pair]))


@dataclass(frozen=True, slots=True)
class _Column:
    """The elements of a column, 0 where they are null, and the address of DuckDB's bits that say which are not."""

    elements: NDArray[Any]
    validity: int

    @classmethod
    def of(cls, library: Any, chunk: int, number: int, count: int) -> "_Column":
        vector = library.duckdb_data_chunk_get_vector(chunk, number)
        logical = c_void_p(library.duckdb_vector_get_column_type(vector))
        kind = library.duckdb_get_type_id(logical)
        library.duckdb_destroy_logical_type(ctypes.byref(logical))
        name = next((name for name, each in _ROUNDED.items() if each == kind), None)
        if name is not None:
            remedy = REMEDIES.get(name, REMEDIES["HUGEINT"])
            raise InvalidInput(f"a column of {name} is not added, because DuckDB would round its elements: {remedy}")
        data = library.duckdb_vector_get_data(vector)
        elements = np.ctypeslib.as_array((c_uint8 * (8 * count)).from_address(data)).view(_DTYPES[kind]).copy()
        validity = library.duckdb_vector_get_validity(vector) or 0
        if validity:
            bits = np.ctypeslib.as_array((c_uint8 * (8 * -(-count // 64))).from_address(validity))
            elements[np.unpackbits(bits, bitorder="little")[:count] == 0] = 0
        return cls(elements, validity)
