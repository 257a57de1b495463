"""The aggregates of DuckDB through its C functions, which the module of DuckDB's Python package exports.

Rows are added by compiled callbacks, which know nothing of Python. Callbacks in Python, called for some thousand groups
at a time, round sums, and read and write the bytes of states.
"""

import ctypes
from collections.abc import Callable
from ctypes import CFUNCTYPE, POINTER, byref, c_bool, c_char_p, c_uint64, c_void_p
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cpu.states import encoded
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput, OutOfMemory, Unavailable
from warpfold.kernels.exact import ExactState, Flags, StateError
from warpfold.kernels.exact.encoding import CODES, LARGEST
from warpfold.kernels.ops import Terms

_BIGINT, _UBIGINT, _DOUBLE, _BLOB = 5, 9, 11, 18
"""DUCKDB_TYPE of duckdb.h."""

_FAILED = 1
_SIZE = CFUNCTYPE(c_uint64, c_void_p)
_INIT = CFUNCTYPE(None, c_void_p, c_void_p)
_UPDATE = CFUNCTYPE(None, c_void_p, c_void_p, c_void_p)
_COMBINE = CFUNCTYPE(None, c_void_p, c_void_p, c_void_p, c_uint64)
_FINALIZE = CFUNCTYPE(None, c_void_p, c_void_p, c_void_p, c_uint64, c_uint64)
_DESTROY = CFUNCTYPE(None, c_void_p, c_uint64)
_LOADED = CFUNCTYPE(c_bool, c_void_p, POINTER(c_void_p))
_SET_ERROR = CFUNCTYPE(None, c_void_p, c_char_p)
_GET_DATABASE = CFUNCTYPE(POINTER(c_void_p), c_void_p)

_PLAIN_DIGITS = (LARGEST[Terms.VALUES].bit_length() - 1) // 32


@cache
def loader() -> int:
    """The address of the init function of the extension: it adds the aggregates to the database that loads it. Raises
    Unavailable where DuckDB's module does not export its C functions."""
    return ctypes.cast(_callbacks().loaded, c_void_p).value or 0


@cache
def _callbacks() -> "_Callbacks":
    """One set of callbacks for the process, which is never freed: databases keep their addresses."""
    return _Callbacks()


@cache
def _library() -> Any:
    import _duckdb

    library = ctypes.CDLL(_duckdb.__file__)
    try:
        for name, gives, *takes in (
            ("duckdb_connect", ctypes.c_int, c_void_p, c_void_p),
            ("duckdb_disconnect", None, c_void_p),
            ("duckdb_create_logical_type", c_void_p, ctypes.c_int),
            ("duckdb_destroy_logical_type", None, c_void_p),
            ("duckdb_create_aggregate_function", c_void_p),
            ("duckdb_destroy_aggregate_function", None, c_void_p),
            ("duckdb_create_aggregate_function_set", c_void_p, c_char_p),
            ("duckdb_destroy_aggregate_function_set", None, c_void_p),
            ("duckdb_add_aggregate_function_to_set", ctypes.c_int, c_void_p, c_void_p),
            ("duckdb_register_aggregate_function_set", ctypes.c_int, c_void_p, c_void_p),
            ("duckdb_aggregate_function_set_name", None, c_void_p, c_char_p),
            ("duckdb_aggregate_function_add_parameter", None, c_void_p, c_void_p),
            ("duckdb_aggregate_function_set_return_type", None, c_void_p, c_void_p),
            ("duckdb_aggregate_function_set_functions", None, c_void_p, _SIZE, _INIT, _UPDATE, _COMBINE, _FINALIZE),
            ("duckdb_aggregate_function_set_destructor", None, c_void_p, _DESTROY),
            ("duckdb_aggregate_function_set_special_handling", None, c_void_p),
            ("duckdb_aggregate_function_set_error", None, c_void_p, c_char_p),
            ("duckdb_data_chunk_get_vector", c_void_p, c_void_p, c_uint64),
            ("duckdb_data_chunk_get_size", c_uint64, c_void_p),
            ("duckdb_vector_get_data", c_void_p, c_void_p),
            ("duckdb_vector_get_validity", c_void_p, c_void_p),
            ("duckdb_vector_ensure_validity_writable", None, c_void_p),
            ("duckdb_vector_assign_string_element_len", None, c_void_p, c_uint64, c_void_p, c_uint64),
        ):
            function = getattr(library, str(name))
            function.restype, function.argtypes = gives, takes
    except AttributeError as error:
        raise Unavailable(f"this build of DuckDB does not export its C functions: {error}") from None
    return library


class _Callbacks:
    """The C functions that DuckDB calls; all of them live as long as this object."""

    def __init__(self) -> None:
        from warpfold.kernels.cpu.windows import callbacks, encoding, scattered

        self._duckdb = _library()
        self._scattered, self._encoding = scattered, encoding
        row = DTYPES["float64"]
        self._form = row.precision, row.min_exponent, row.max_exponent
        self._native = callbacks.compiled(
            {name: ctypes.cast(getattr(self._duckdb, name), c_void_p).value or 0 for name in callbacks.NEEDED}
        )
        self._updates = {
            _DOUBLE: _UPDATE(self._native.add_floats),
            _BIGINT: _UPDATE(self._native.add_integers),
            _UBIGINT: _UPDATE(self._native.add_unsigned),
            _BLOB: _UPDATE(self._merged),
        }
        self._finishes = {
            "sum": _FINALIZE(self._finish(lambda *part: self._round(*part, mean=False))),
            "mean": _FINALIZE(self._finish(lambda *part: self._round(*part, mean=True))),
            "state": _FINALIZE(self._finish(self._encode)),
        }
        self.loaded = _LOADED(self._load)

    def _load(self, info: int, access: Any) -> bool:
        """Add the aggregates to the database that loads the extension."""
        connection = c_void_p()
        try:
            database = _GET_DATABASE(access[1])(info)
            self._done(self._duckdb.duckdb_connect(c_void_p(database[0]), byref(connection)), "connect")
            numbers = (_DOUBLE, _BIGINT, _UBIGINT)
            for name, takes, gives in (
                ("sum", numbers, _DOUBLE),
                ("mean", numbers, _DOUBLE),
                ("state", numbers, _BLOB),
                ("merge", (_BLOB,), _BLOB),
            ):
                self._register(connection, f"warpfold_{name}".encode(), takes, gives, name)
        except Exception as error:
            _SET_ERROR(access[0])(info, str(error).encode())
            return False
        finally:
            self._duckdb.duckdb_disconnect(byref(connection))
        return True

    @staticmethod
    def _done(code: int, what: str) -> None:
        if code == _FAILED:
            raise Unavailable(f"DuckDB refused to {what}")

    def _register(self, connection: Any, name: bytes, takes: tuple[int, ...], gives: int, finish: str) -> None:
        library = self._duckdb
        overloads = c_void_p(library.duckdb_create_aggregate_function_set(name))
        for element in takes:
            function = c_void_p(library.duckdb_create_aggregate_function())
            library.duckdb_aggregate_function_set_name(function, name)
            for kind, use in (
                (element, library.duckdb_aggregate_function_add_parameter),
                (gives, library.duckdb_aggregate_function_set_return_type),
            ):
                logical = c_void_p(library.duckdb_create_logical_type(kind))
                use(function, logical)
                library.duckdb_destroy_logical_type(byref(logical))
            library.duckdb_aggregate_function_set_functions(
                function,
                _SIZE(self._native.size),
                _INIT(self._native.init),
                self._updates[element],
                _COMBINE(self._native.combine),
                self._finishes["state" if finish == "merge" else finish],
            )
            library.duckdb_aggregate_function_set_destructor(function, _DESTROY(self._native.destroy))
            library.duckdb_aggregate_function_set_special_handling(function)
            self._done(library.duckdb_add_aggregate_function_to_set(overloads, function), f"add {name.decode()}")
            library.duckdb_destroy_aggregate_function(byref(function))
        self._done(library.duckdb_register_aggregate_function_set(connection, overloads), f"register {name.decode()}")
        library.duckdb_destroy_aggregate_function_set(byref(overloads))

    def _fail(self, info: int, error: Exception) -> None:
        self._duckdb.duckdb_aggregate_function_set_error(info, str(error).encode())

    def _merged(self, info: int, chunk: int, states: int) -> None:
        try:
            self._merge(chunk, states)
        except Exception as error:
            self._fail(info, error)

    def _merge(self, chunk: int, states: int) -> None:
        library, count = self._duckdb, self._duckdb.duckdb_data_chunk_get_size(chunk)
        vector = library.duckdb_data_chunk_get_vector(chunk, 0)
        values, validity = library.duckdb_vector_get_data(vector), library.duckdb_vector_get_validity(vector) or 0
        targets = np.empty(count, np.int32)
        lengths, places = np.empty(count, np.int64), np.empty(count, np.int64)
        number = self._scattered.blobs(values, validity, count, targets, lengths, places)
        if not number:
            return
        pairs = zip(places[:number].tolist(), lengths[:number].tolist(), strict=True)
        parts = [ctypes.string_at(place, length) for place, length in pairs]
        offsets = np.concatenate([[0], np.cumsum(lengths[:number])]).astype(np.int64)
        data = np.frombuffer(b"".join(parts), np.uint8)
        doubtful = np.zeros(number, np.bool_)
        if self._encoding.look(data, offsets, CODES[Terms.VALUES], _PLAIN_DIGITS, doubtful)[2]:
            for part in np.flatnonzero(doubtful).tolist():
                _check(parts[part])
        self._scattered.merge(data, offsets, targets[:number], states)

    def _finish(self, finish: Callable[[int, int, int, int], None]) -> Callable[[int, int, int, int, int], None]:
        def finalize(info: int, states: int, result: int, count: int, offset: int) -> None:
            try:
                finish(states, result, count, offset)
            except Exception as error:
                self._fail(info, error)

        return finalize

    def _round(self, states: int, result: int, count: int, offset: int, *, mean: bool) -> None:
        data = self._duckdb.duckdb_vector_get_data(result)
        values = np.ctypeslib.as_array((ctypes.c_double * count).from_address(data + 8 * offset))
        missing = np.zeros(count, np.bool_)
        if self._scattered.round_states(states, count, mean, self._form, values, missing) >= 0:
            missing[:] = self._means_of_many(states, values)
        if missing.any():
            self._duckdb.duckdb_vector_ensure_validity_writable(result)
            validity = self._duckdb.duckdb_vector_get_validity(result)
            end = offset + count
            bits = np.ctypeslib.as_array((ctypes.c_uint8 * (8 * -(-end // 64))).from_address(validity))
            valid = np.unpackbits(bits, bitorder="little")
            valid[offset:end][missing] = 0
            bits[:] = np.packbits(valid, bitorder="little")

    def _means_of_many(self, states: int, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """As `round_states`, where a number of elements is more than compiled code divides by."""
        limbs, counts, flags = self._sums(states, values.size)
        for at in np.flatnonzero(counts).tolist():
            count = int(counts[at])
            state = ExactState.from_limbs(
                Terms.VALUES, limbs[at].tolist(), self._scattered.ORIGIN, count, Flags(int(flags[at]))
            )
            values[at] = state.round_to(DTYPES["float64"], count)
        return np.asarray(counts == 0)

    def _sums(self, states: int, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        limbs = np.empty((count, self._scattered.LONG), np.int64)
        counts, flags = np.empty(count, np.int64), np.empty(count, np.int64)
        self._scattered.sums(states, count, limbs, counts, flags)
        if (flags & self._scattered.NO_MEMORY).any():
            raise OutOfMemory("no memory for the long sums of a group")
        return limbs, counts, flags

    def _encode(self, states: int, result: int, count: int, offset: int) -> None:
        limbs, counts, flags = self._sums(states, count)
        column = encoded(Terms.VALUES, self._scattered.ORIGIN, limbs, flags, counts)
        starts, lengths = column.offsets[:-1].tolist(), np.diff(column.offsets).tolist()
        data = column.data.ctypes.data
        for at in range(count):
            self._duckdb.duckdb_vector_assign_string_element_len(result, offset + at, data + starts[at], lengths[at])


def _check(data: bytes) -> None:
    """Raise InvalidInput unless these bytes are a state of values."""
    try:
        state = ExactState.from_bytes(data)
    except StateError as error:
        raise InvalidInput(f"warpfold_merge takes bytes of exact states, not these: {error}") from None
    if state.terms is not Terms.VALUES:
        raise InvalidInput(f"warpfold_merge adds states of values, not of {state.terms}")
