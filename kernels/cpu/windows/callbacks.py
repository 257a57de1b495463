"""Exact sums as C functions that DuckDB calls for an aggregate, compiled. They need neither the interpreter nor its
lock. A callback calls functions of DuckDB by their names, which `compiled` makes known to the linker.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import llvmlite.binding as linker
from numba import types

from warpfold.kernels.cpu.windows import scattered
from warpfold.kernels.cpu.windows.scattered import clear, combine, give_back
from warpfold.kernels.cpu.windows.scattered_rows import (
    WITHOUT_SIGN,
    add_float_products,
    add_floats,
    add_integer_products,
    add_integers,
)
from warpfold.kernels.machine.jit import callback, jit

_WORD = types.int64
_NOTHING = types.void
_get_vector: Any = types.ExternalFunction("duckdb_data_chunk_get_vector", _WORD(_WORD, _WORD))
_get_size: Any = types.ExternalFunction("duckdb_data_chunk_get_size", _WORD(_WORD))
_get_data: Any = types.ExternalFunction("duckdb_vector_get_data", _WORD(_WORD))
_get_validity: Any = types.ExternalFunction("duckdb_vector_get_validity", _WORD(_WORD))
_get_extra_info: Any = types.ExternalFunction("duckdb_aggregate_function_get_extra_info", _WORD(_WORD))

_CALLED = (_get_vector, _get_size, _get_data, _get_validity, _get_extra_info)
NEEDED = tuple(function.symbol for function in _CALLED)
"""The functions of DuckDB that are called."""

_VALUES_BYTES = 8 * (scattered.HEAD_WORDS + scattered.VALUES[0])
_PRODUCTS_BYTES = 8 * (scattered.HEAD_WORDS + scattered.PRODUCTS[0])
_VALUES, _PRODUCTS = scattered.VALUES, scattered.PRODUCTS


class Elements(IntEnum):
    """The type of the elements in the rows: float64, int64 or uint64."""

    FLOATS = 0
    SIGNED = 1
    UNSIGNED = 2


class Adds(IntEnum):
    """The terms that an aggregate adds up. A state is of values or of products. For MOMENTS it is both, one behind the
    other."""

    VALUES = 0
    MAGNITUDES = 1
    SQUARES = 2
    PRODUCTS = 3
    MOMENTS = 4


def extra_info(adds: Adds, elements: Elements) -> int:
    """The extra information of an aggregate, which DuckDB keeps for the callbacks."""
    return int(adds) << 2 | int(elements)


@dataclass(frozen=True, slots=True)
class NativeCallbacks:
    """The addresses of the functions, which `kept` holds in memory. `destroy_both` is for states of MOMENTS."""

    kept: tuple[Any, ...]
    size: int
    init: int
    add: int
    combine: int
    destroy: int
    destroy_both: int


def compiled(addresses: Mapping[str, int]) -> NativeCallbacks:
    """The callbacks, for the DuckDB whose functions of the names NEEDED are at `addresses`."""
    for name, address in addresses.items():
        linker.add_symbol(name, address)
    functions = (
        callback(_size, _WORD(_WORD)),
        callback(_init, _NOTHING(_WORD, _WORD)),
        callback(_add, _NOTHING(_WORD, _WORD, _WORD)),
        callback(_combine, _NOTHING(_WORD, _WORD, _WORD, _WORD)),
        callback(_destroy, _NOTHING(_WORD, _WORD)),
        callback(_destroy_both, _NOTHING(_WORD, _WORD)),
    )
    return NativeCallbacks(functions, *(function.address for function in functions))


def _size(info: Any) -> Any:
    return _bytes_of(_get_extra_info(info) >> 2)


@jit
def _bytes_of(adds: Any) -> Any:
    if adds == _MOMENTS:
        return _VALUES_BYTES + _PRODUCTS_BYTES
    return _PRODUCTS_BYTES if adds >= _SQUARES else _VALUES_BYTES


def _init(info: Any, state: Any) -> None:
    clear(state, _bytes_of(_get_extra_info(info) >> 2) // 8)


def _add(info: Any, chunk: Any, states: Any) -> None:
    extra = _get_extra_info(info)
    adds, elements, count = extra >> 2, extra & 3, _get_size(chunk)
    vector = _get_vector(chunk, 0)
    other = _get_vector(chunk, 1) if adds == _ONE_BY_OTHER else vector
    left, right = _get_data(vector), _get_data(other)
    present, other_present = _get_validity(vector), _get_validity(other)
    if adds in (_OF_VALUES, _MAGNITUDES, _MOMENTS):
        if elements == _FLOATS:
            add_floats(left, present, states, count, WITHOUT_SIGN if adds == _MAGNITUDES else -1)
        else:
            add_integers(left, present, states, count, elements == _UNSIGNED, adds == _MAGNITUDES)
    if adds >= _SQUARES:
        offset = _VALUES_BYTES if adds == _MOMENTS else 0
        if elements == _FLOATS:
            add_float_products(left, present, right, other_present, states, count, offset)
        else:
            add_integer_products(left, present, right, other_present, states, count, offset, elements == _UNSIGNED)


def _combine(info: Any, sources: Any, targets: Any, count: Any) -> None:
    adds = _get_extra_info(info) >> 2
    if adds < _SQUARES or adds == _MOMENTS:
        combine(sources, targets, count, 0, _VALUES)
    if adds >= _SQUARES:
        combine(sources, targets, count, _VALUES_BYTES if adds == _MOMENTS else 0, _PRODUCTS)


def _destroy(states: Any, count: Any) -> None:
    give_back(states, count, 0)


def _destroy_both(states: Any, count: Any) -> None:
    give_back(states, count, 0)
    give_back(states, count, _VALUES_BYTES)


_FLOATS, _UNSIGNED = int(Elements.FLOATS), int(Elements.UNSIGNED)
_OF_VALUES, _MAGNITUDES, _SQUARES = int(Adds.VALUES), int(Adds.MAGNITUDES), int(Adds.SQUARES)
_ONE_BY_OTHER, _MOMENTS = int(Adds.PRODUCTS), int(Adds.MOMENTS)
