"""The aggregates of DuckDB through its C functions, which the module of DuckDB's Python package exports.

Rows are added by compiled callbacks, which know nothing of Python. Callbacks in Python, called for some thousand groups
at a time, round sums, and read and write the bytes of states.
"""

import ctypes
from collections.abc import Callable
from ctypes import CFUNCTYPE, POINTER, byref, c_bool, c_char_p, c_uint64, c_void_p
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.engines import duckdb_columns
from warpfold.engines.duckdb_columns import NATIVE
from warpfold.engines.duckdb_extension import FlatStates
from warpfold.kernels.cpu.finishing import ValueFinish
from warpfold.kernels.cpu.states import ManySums, encoded
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import OutOfMemory, Unavailable
from warpfold.kernels.exact import ORIGIN, ExactState, StateError
from warpfold.kernels.exact.encoding import CODES, LARGEST
from warpfold.kernels.ops import OPS, Terms

_DOUBLE, _BLOB = duckdb_columns.NATIVE["FLOATS"], 18
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

_CODE_AT = 5
"""The byte of a state that says what it adds up."""

_Finalize = Callable[[int, int, int, int], None]
_Sums = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
"""Limbs, a row for each state; the numbers of terms; and the flags."""


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
            ("duckdb_create_decimal_type", c_void_p, ctypes.c_uint8, ctypes.c_uint8),
            ("duckdb_destroy_logical_type", None, c_void_p),
            ("duckdb_get_type_id", ctypes.c_int, c_void_p),
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
            ("duckdb_aggregate_function_set_extra_info", None, c_void_p, c_void_p, c_void_p),
            ("duckdb_aggregate_function_set_error", None, c_void_p, c_char_p),
            ("duckdb_data_chunk_get_vector", c_void_p, c_void_p, c_uint64),
            ("duckdb_data_chunk_get_size", c_uint64, c_void_p),
            ("duckdb_vector_get_column_type", c_void_p, c_void_p),
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


@dataclass(frozen=True, slots=True)
class _Aggregate:
    """An aggregate of SQL: the terms that its rows add up (Adds of kernels.cpu.windows.callbacks), and how its value is
    finished. `states` says that its rows are states."""

    name: str
    adds: str
    finish: str
    gives: int = _DOUBLE
    states: bool = False


_AGGREGATES = (
    _Aggregate("sum", "VALUES", "sum"),
    _Aggregate("mean", "VALUES", "mean"),
    _Aggregate("norm1", "MAGNITUDES", "sum"),
    _Aggregate("norm2", "SQUARES", "root"),
    _Aggregate("sum_squares", "SQUARES", "sum of products"),
    _Aggregate("dot", "PRODUCTS", "sum of products"),
    _Aggregate("var_pop", "MOMENTS", "var_pop"),
    _Aggregate("var_samp", "MOMENTS", "var_samp"),
    _Aggregate("stddev_pop", "MOMENTS", "stddev_pop"),
    _Aggregate("stddev_samp", "MOMENTS", "stddev_samp"),
    _Aggregate("state", "VALUES", "state", gives=_BLOB),
    _Aggregate("squares", "SQUARES", "state of products", gives=_BLOB),
    _Aggregate("products", "PRODUCTS", "state of products", gives=_BLOB),
    # States of products have room for those of values, too.
    _Aggregate("merge", "SQUARES", "state of any", gives=_BLOB, states=True),
)


@dataclass(frozen=True, slots=True)
class _Overload:
    """An aggregate of columns of these types, which are DUCKDB_TYPEs: its rows are `elements`, and `add` adds them."""

    types: tuple[int, ...]
    elements: str
    add: Any


class _Callbacks:
    """The C functions that DuckDB calls; all of them live as long as this object."""

    def __init__(self) -> None:
        from warpfold.kernels.cpu.windows import callbacks, encoding, scattered, scattered_rows

        self._duckdb = _library()
        self._scattered, self._encoding = scattered, encoding
        row = DTYPES["float64"]
        self._form = row.precision, row.min_exponent, row.max_exponent
        self._native = native = callbacks.compiled(
            {name: ctypes.cast(getattr(self._duckdb, name), c_void_p).value or 0 for name in callbacks.NEEDED}
        )
        self._flat_states = FlatStates(self._duckdb)
        self._extra_info, self._adds, self._elements = callbacks.extra_info, callbacks.Adds, callbacks.Elements
        self._add, self._add_states = _UPDATE(native.add), _UPDATE(self._update(self._merge))
        self._add_others = _UPDATE(self._update(partial(duckdb_columns.add_others, self._duckdb, scattered_rows)))
        finishes: dict[str, _Finalize] = {
            "sum": partial(self._round, Terms.VALUES, mean=False),
            "mean": partial(self._round, Terms.VALUES, mean=True),
            "sum of products": partial(self._round, Terms.PRODUCTS, mean=False),
            "root": self._root,
            "var_pop": partial(self._spread, "var", 0),
            "var_samp": partial(self._spread, "var", 1),
            "stddev_pop": partial(self._spread, "std", 0),
            "stddev_samp": partial(self._spread, "std", 1),
            "state": partial(self._encode, Terms.VALUES),
            "state of products": partial(self._encode, Terms.PRODUCTS),
            "state of any": self._encode_any,
        }
        self._finishes = {name: _FINALIZE(self._finish(finalize)) for name, finalize in finishes.items()}
        self.loaded = _LOADED(self._load)

    def _load(self, info: int, access: Any) -> bool:
        """Add the aggregates to the database that loads the extension."""
        connection = c_void_p()
        try:
            database = _GET_DATABASE(access[1])(info)
            self._done(self._duckdb.duckdb_connect(c_void_p(database[0]), byref(connection)), "connect")
            for aggregate in _AGGREGATES:
                self._register(connection, aggregate)
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

    def _register(self, connection: Any, aggregate: _Aggregate) -> None:
        library, name = self._duckdb, f"warpfold_{aggregate.name}".encode()
        overloads = c_void_p(library.duckdb_create_aggregate_function_set(name))
        for overload in self._overloads(aggregate):
            function = self._function(name, aggregate, overload)
            self._done(library.duckdb_add_aggregate_function_to_set(overloads, function), f"add {name.decode()}")
            library.duckdb_destroy_aggregate_function(byref(function))
        self._done(library.duckdb_register_aggregate_function_set(connection, overloads), f"register {name.decode()}")
        library.duckdb_destroy_aggregate_function_set(byref(overloads))

    def _overloads(self, aggregate: _Aggregate) -> list[_Overload]:
        if aggregate.states:
            return [_Overload((_BLOB,), "FLOATS", self._add_states)]
        columns = 2 if aggregate.adds == "PRODUCTS" else 1
        native = [_Overload((kind,) * columns, elements, self._add) for elements, kind in NATIVE.items()]
        return native + [_Overload(types, "FLOATS", self._add_others) for types in duckdb_columns.others(columns)]

    def _function(self, name: bytes, aggregate: _Aggregate, overload: _Overload) -> c_void_p:
        library, native, adds = self._duckdb, self._native, self._adds[aggregate.adds]
        function = c_void_p(library.duckdb_create_aggregate_function())
        self._flat_states.install(function)
        library.duckdb_aggregate_function_set_name(function, name)
        takes = [(kind, library.duckdb_aggregate_function_add_parameter) for kind in overload.types]
        for kind, use in (*takes, (aggregate.gives, library.duckdb_aggregate_function_set_return_type)):
            logical = c_void_p(
                library.duckdb_create_decimal_type(38, 0)  # which stands for every width and scale
                if kind == duckdb_columns.DECIMAL
                else library.duckdb_create_logical_type(kind)
            )
            use(function, logical)
            library.duckdb_destroy_logical_type(byref(logical))
        extra = self._extra_info(adds, self._elements[overload.elements])
        library.duckdb_aggregate_function_set_extra_info(function, c_void_p(extra), None)
        library.duckdb_aggregate_function_set_functions(
            function,
            _SIZE(native.size),
            _INIT(native.init),
            overload.add,
            _COMBINE(native.combine),
            self._finishes[aggregate.finish],
        )
        destroy = native.destroy_both if adds == self._adds.MOMENTS else native.destroy
        library.duckdb_aggregate_function_set_destructor(function, _DESTROY(destroy))
        library.duckdb_aggregate_function_set_special_handling(function)
        return function

    def _fail(self, info: int, error: Exception) -> None:
        self._duckdb.duckdb_aggregate_function_set_error(info, str(error).encode())

    def _update(self, add: Callable[[int, int], None]) -> Callable[[int, int, int], None]:
        def update(info: int, chunk: int, states: int) -> None:
            try:
                add(chunk, states)
            except Exception as error:
                self._fail(info, error)

        return update

    def _merge(self, chunk: int, states: int) -> None:
        library, count = self._duckdb, self._duckdb.duckdb_data_chunk_get_size(chunk)
        vector = library.duckdb_data_chunk_get_vector(chunk, 0)
        values, validity = library.duckdb_vector_get_data(vector), library.duckdb_vector_get_validity(vector) or 0
        targets = np.empty(count, np.int32)
        lengths, places = np.empty(count, np.int64), np.empty(count, np.int64)
        number = self._scattered.blobs(values, validity, count, targets, lengths, places)
        pairs = zip(places[:number].tolist(), lengths[:number].tolist(), strict=True)
        parts = [ctypes.string_at(place, length) for place, length in pairs]
        codes = np.array([part[_CODE_AT] if len(part) > _CODE_AT else -1 for part in parts], np.int64)
        for part in np.flatnonzero(~np.isin(codes, list(CODES.values()))).tolist():
            ExactState.from_bytes(parts[part])  # it raises an error that names the fault
        for terms, kind in ((Terms.VALUES, self._scattered.OF_VALUES), (Terms.PRODUCTS, self._scattered.OF_PRODUCTS)):
            chosen = np.flatnonzero(codes == CODES[terms])
            if chosen.size:
                self._merge_kind([parts[part] for part in chosen.tolist()], targets[chosen], states, terms, kind)

    def _merge_kind(self, parts: list[bytes], targets: NDArray[np.int32], states: int, terms: Terms, kind: int) -> None:
        offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
        data = np.frombuffer(b"".join(parts), np.uint8)
        doubtful = np.zeros(len(parts), np.bool_)
        plain_digits = (LARGEST[terms].bit_length() - 1) // 32
        if self._encoding.look(data, offsets, CODES[terms], plain_digits, doubtful)[2]:
            for part in np.flatnonzero(doubtful).tolist():
                ExactState.from_bytes(parts[part])  # it raises an error that names the fault, if there is one
        self._scattered.merge(data, offsets, targets, states, self._scattered.PRODUCTS, kind)

    def _finish(self, finish: _Finalize) -> Callable[[int, int, int, int, int], None]:
        def finalize(info: int, states: int, result: int, count: int, offset: int) -> None:
            try:
                finish(states, result, count, offset)
            except Exception as error:
                self._fail(info, error)

        return finalize

    def _round(self, terms: Terms, states: int, result: int, count: int, offset: int, *, mean: bool) -> None:
        values, missing = self._values(result, count, offset), np.zeros(count, np.bool_)
        shape, origin = self._shape(terms), ORIGIN[terms]
        if self._scattered.round_states(states, count, shape, origin, mean, self._form, values, missing) >= 0:
            sums, counts = self._many(terms, states, count)
            missing[:] = counts == 0
            values[:] = np.where(
                missing, 0.0, ValueFinish(OPS["mean" if mean else "sum"], "float64").values([sums], counts)
            )
        self._mark(result, count, offset, missing)

    def _root(self, states: int, result: int, count: int, offset: int) -> None:
        squares, counts = self._many(Terms.PRODUCTS, states, count)
        self._give(ValueFinish(OPS["norm2"], "float64"), [squares], counts, result, offset)

    def _spread(self, op: str, ddof: int, states: int, result: int, count: int, offset: int) -> None:  # noqa: PLR0917
        sums, counts = self._many(Terms.VALUES, states, count)
        squares, _ = self._many(Terms.PRODUCTS, states, count, self._behind)
        self._give(ValueFinish(OPS[op], "float64", ddof), [sums, squares], counts, result, offset)

    def _give(
        self, finish: ValueFinish, sums: list[ManySums], counts: NDArray[np.int64], result: int, offset: int
    ) -> None:
        """Write the values that `finish` makes of `sums`; null where there are not enough terms for one."""
        missing = counts <= finish.ddof
        self._values(result, counts.size, offset)[:] = np.where(missing, 0.0, finish.values(sums, counts))
        self._mark(result, counts.size, offset, missing)

    def _values(self, result: int, count: int, offset: int) -> NDArray[np.float64]:
        data = self._duckdb.duckdb_vector_get_data(result)
        return np.ctypeslib.as_array((ctypes.c_double * count).from_address(data + 8 * offset))

    def _mark(self, result: int, count: int, offset: int, missing: NDArray[np.bool_]) -> None:
        """Make the values that are missing null."""
        if missing.any():
            self._duckdb.duckdb_vector_ensure_validity_writable(result)
            validity = self._duckdb.duckdb_vector_get_validity(result)
            end = offset + count
            bits = np.ctypeslib.as_array((ctypes.c_uint8 * (8 * -(-end // 64))).from_address(validity))
            valid = np.unpackbits(bits, bitorder="little")
            valid[offset:end][missing] = 0
            bits[:] = np.packbits(valid, bitorder="little")

    def _shape(self, terms: Terms) -> tuple[int, int]:
        shape: tuple[int, int] = self._scattered.PRODUCTS if terms is Terms.PRODUCTS else self._scattered.VALUES
        return shape

    @property
    def _behind(self) -> int:
        """How many bytes behind a state of values one of products lies."""
        return 8 * (self._scattered.HEAD_WORDS + self._scattered.VALUES[0])

    def _sums(self, shape: tuple[int, int], states: int, count: int, behind: int = 0) -> _Sums:
        limbs = np.empty((count, shape[1]), np.int64)
        counts, flags = np.empty(count, np.int64), np.empty(count, np.int64)
        self._scattered.sums(states, count, behind, shape, limbs, counts, flags)
        if (flags & self._scattered.NO_MEMORY).any():
            raise OutOfMemory("no memory for the long sums of a group")
        return limbs, counts, flags

    def _many(self, terms: Terms, states: int, count: int, behind: int = 0) -> tuple[ManySums, NDArray[np.int64]]:
        """The sums of the states, and how many terms each of them has."""
        limbs, counts, flags = self._sums(self._shape(terms), states, count, behind)
        return ManySums(terms, ORIGIN[terms], limbs, flags & self._scattered.TERM_FLAGS), counts

    def _encode(self, terms: Terms, states: int, result: int, count: int, offset: int) -> None:
        self._write(terms, self._sums(self._shape(terms), states, count), result, np.arange(count) + offset)

    def _encode_any(self, states: int, result: int, count: int, offset: int) -> None:
        """Do what `_encode` does for merged states of either kind; states without terms are states of values."""
        limbs, counts, flags = self._sums(self._scattered.PRODUCTS, states, count)
        values, products = (flags & kind != 0 for kind in (self._scattered.OF_VALUES, self._scattered.OF_PRODUCTS))
        if (values & products).any():
            raise StateError("terms", "states of values and of products are sums of different things")
        for terms, chosen in ((Terms.PRODUCTS, products), (Terms.VALUES, ~products)):
            rows = np.flatnonzero(chosen)
            self._write(terms, (limbs[rows], counts[rows], flags[rows]), result, rows + offset)

    def _write(self, terms: Terms, sums: _Sums, result: int, rows: NDArray[np.int64]) -> None:
        limbs, counts, flags = sums
        column = encoded(terms, ORIGIN[terms], limbs, flags & self._scattered.TERM_FLAGS, counts)
        starts, lengths = column.offsets[:-1].tolist(), np.diff(column.offsets).tolist()
        data = column.data.ctypes.data
        for at, row in enumerate(rows.tolist()):
            self._duckdb.duckdb_vector_assign_string_element_len(result, row, data + starts[at], lengths[at])
