"""Exact sums as C functions that DuckDB calls for an aggregate, compiled: they need no interpreter and no lock of it.

A callback finds the functions of DuckDB that it calls by their names, which `compiled` makes known to the linker.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as linker
from numba import types

from warpfold.kernels.cpu.windows import scattered
from warpfold.kernels.cpu.windows.scattered import add_floats, add_integers, clear, combine, give_back
from warpfold.kernels.jit import callback

_WORD = types.int64
_NOTHING = types.void
_get_vector: Any = types.ExternalFunction("duckdb_data_chunk_get_vector", _WORD(_WORD, _WORD))
_get_size: Any = types.ExternalFunction("duckdb_data_chunk_get_size", _WORD(_WORD))
_get_data: Any = types.ExternalFunction("duckdb_vector_get_data", _WORD(_WORD))
_get_validity: Any = types.ExternalFunction("duckdb_vector_get_validity", _WORD(_WORD))

NEEDED = tuple(function.symbol for function in (_get_vector, _get_size, _get_data, _get_validity))
"""The functions of DuckDB that are called."""

_STATE_BYTES = 8 * scattered.WORDS


@dataclass(frozen=True, slots=True)
class NativeCallbacks:
    """The addresses of the functions, which `kept` holds in memory."""

    kept: tuple[Any, ...]
    size: int
    init: int
    add_floats: int
    add_integers: int
    add_unsigned: int
    combine: int
    destroy: int


def compiled(addresses: Mapping[str, int]) -> NativeCallbacks:
    """The callbacks, for the DuckDB whose functions of the names NEEDED are at `addresses`."""
    for name, address in addresses.items():
        linker.add_symbol(name, address)
    update = _NOTHING(_WORD, _WORD, _WORD)
    functions = (
        callback(_size, _WORD(_WORD)),
        callback(_init, _NOTHING(_WORD, _WORD)),
        callback(_add_floats, update),
        callback(_add_integers, update),
        callback(_add_unsigned, update),
        callback(_combine, _NOTHING(_WORD, _WORD, _WORD, _WORD)),
        callback(_destroy, _NOTHING(_WORD, _WORD)),
    )
    return NativeCallbacks(functions, *(function.address for function in functions))


def _size(info: Any) -> Any:
    return _STATE_BYTES


def _init(info: Any, state: Any) -> None:
    clear(state)


def _add_floats(info: Any, chunk: Any, states: Any) -> None:
    vector = _get_vector(chunk, 0)
    add_floats(_get_data(vector), _get_validity(vector), states, _get_size(chunk))


def _add_integers(info: Any, chunk: Any, states: Any) -> None:
    vector = _get_vector(chunk, 0)
    add_integers(_get_data(vector), _get_validity(vector), states, _get_size(chunk), False)


def _add_unsigned(info: Any, chunk: Any, states: Any) -> None:
    vector = _get_vector(chunk, 0)
    add_integers(_get_data(vector), _get_validity(vector), states, _get_size(chunk), True)


def _combine(info: Any, sources: Any, targets: Any, count: Any) -> None:
    combine(sources, targets, count)


def _destroy(states: Any, count: Any) -> None:
    give_back(states, count)
