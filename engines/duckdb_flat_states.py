"""A vector of one state a row for every update of DuckDB's aggregates.

Where all rows belong to one state, as with ORDER BY within an aggregate and with OVER (), DuckDB's vector of states
holds a single one, and DuckDB's C functions hand it on as if it held one a row (duckdb/duckdb#21537): a callback would
read what lies behind. So each aggregate gets an update of ours, which flattens the vector and jumps to DuckDB's own.
"""

import ctypes
from ctypes import c_uint64, c_void_p
from typing import Any

import llvmlite.binding as llvm

from warpfold.kernels.errors import Unavailable

_UPDATE = "_ZN6duckdb19CAPIAggregateUpdateEPNS_6VectorERNS_18AggregateInputDataEmRS0_m"
"""duckdb::CAPIAggregateUpdate(Vector *columns, AggregateInputData &, idx_t number, Vector &states, idx_t count)."""

_FLATTEN = "_ZN6duckdb6Vector7FlattenEm"
"""duckdb::Vector::Flatten(idx_t count)."""

# The jump leaves no frame of ours on the stack, so that exceptions of DuckDB pass.
_FLAT_UPDATE = """
define void @flat_update(ptr %columns, ptr %bound, i64 %number, ptr %states, i64 %count) {{
  %flatten = inttoptr i64 {flatten} to ptr
  %update = inttoptr i64 {update} to ptr
  call void %flatten(ptr %states, i64 %count)
  musttail call void %update(ptr %columns, ptr %bound, i64 %number, ptr %states, i64 %count)
  ret void
}}
"""

_WORDS = 45
"""So many words has DuckDB's object of an aggregate at least; the address of its update is the 33rd in DuckDB 1.5."""


class FlatStates:
    """The update of ours for the DuckDB of `library`, which lives as long as this object.

    Raises Unavailable where this build of DuckDB does not export the two functions.
    """

    def __init__(self, library: Any) -> None:
        try:
            flatten, self._update = (_address(library, name) for name in (_FLATTEN, _UPDATE))
        except AttributeError as error:
            raise _unknown(f"it does not export {error}") from None
        module = llvm.parse_assembly(_FLAT_UPDATE.format(flatten=flatten, update=self._update))
        self._engine = llvm.create_mcjit_compiler(module, llvm.Target.from_default_triple().create_target_machine())
        self._engine.finalize_object()

    def install(self, aggregate: c_void_p) -> None:
        """Have DuckDB call the update of ours for a new `aggregate`, before it is added to a set. Raises Unavailable
        where the aggregate is another object than is known."""
        words = (c_uint64 * _WORDS).from_address(aggregate.value or 0)
        places = [at for at, word in enumerate(words) if word == self._update]
        if len(places) != 1:
            raise _unknown("its aggregates are other objects")
        words[places[0]] = self._engine.get_function_address("flat_update")


def _address(library: Any, name: str) -> int:
    return ctypes.cast(getattr(library, name), c_void_p).value or 0


def _unknown(why: str) -> Unavailable:
    return Unavailable(f"the aggregates are not made for this build of DuckDB ({why}): use register_macros")
