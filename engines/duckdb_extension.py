"""What DuckDB's Python module does not offer: an extension that is no more than a jump into this process, and an update
of aggregates that gets a state for each row.

DuckDB hands its database to the init function of an extension, a shared library with a footer, and offers Python no
other way to it. So a library is written whose init function jumps to a function of this process. Its 4 KB need no
compiler; they are of use to this process alone, and are removed once they are loaded.

The library is an ELF file of two segments, for Linux on x86-64 and ARM64. The footer has the fields of DuckDB's
extension format; its ABI is the stable one of C functions.

Where all rows belong to one state, as with ORDER BY within an aggregate and with OVER (), DuckDB's vector of states
holds a single one, and DuckDB's C functions hand it on as if it held one a row (duckdb/duckdb#21537): a callback would
read what lies behind. So each aggregate gets an update of ours, which flattens the vector and jumps to DuckDB's own.
"""

import ctypes
import platform
import struct
import sys
from ctypes import c_uint64, c_void_p
from typing import Any

import llvmlite.binding as llvm

from warpfold.kernels.errors import Unavailable

_PAGE = 1 << 16
"""The largest page of the two architectures: the segments lie in pages of their own."""

_JUMPS = {
    # endbr64; movabs rax, ADDRESS; jmp rax
    "x86_64": (62, b"\xf3\x0f\x1e\xfa\x48\xb8%b\xff\xe0"),
    # bti c; ldr x16, .+12; br x16; nop; ADDRESS
    "aarch64": (183, b"\x5f\x24\x03\xd5\x70\x00\x00\x58\x00\x02\x1f\xd6\x1f\x20\x03\xd5%b"),
}
_HEADER, _PROGRAM, _SYMBOL, _DYNAMIC = "<16sHHIQQQIHHHHHH", "<IIQQQQQQ", "<IBBHQQ", "<QQ"
_LOAD, _DYNAMIC_SEGMENT, _STACK = 1, 2, 0x6474E551
_READ, _WRITE, _RUN = 4, 2, 1
_HASH, _STRINGS, _SYMBOLS, _STRINGS_SIZE, _SYMBOL_SIZE = 4, 5, 6, 10, 11
_C_API = "v1.2.0"
_FIELD, _SIGNATURE = 32, 256


def extension(name: str, address: int, platform_name: str) -> bytes:
    """The bytes of the extension `name` for DuckDB's platform `platform_name` (`PRAGMA platform`), whose init function
    is the C function at `address`. Raises Unavailable on another system or processor."""
    machine = platform.machine()
    if not sys.platform.startswith("linux") or machine not in _JUMPS:
        raise Unavailable(f"aggregates of DuckDB are for Linux on x86-64 and ARM64, not {sys.platform} on {machine}")
    number, jump = _JUMPS[machine]
    library = _library(number, f"{name}_init_c_api", jump % struct.pack("<Q", address))
    return library + _footer(platform_name)


def _library(machine: int, symbol: str, code: bytes) -> bytes:
    """A shared library with one function."""
    programs = struct.calcsize(_HEADER)
    symbols = programs + 4 * struct.calcsize(_PROGRAM)
    strings = symbols + 2 * struct.calcsize(_SYMBOL)
    names = b"\0" + symbol.encode() + b"\0"
    hashes = -(-(strings + len(names)) // 8) * 8
    start = hashes + 32
    end, size = start + len(code), struct.calcsize(_SYMBOL)
    entries = [(_HASH, hashes), (_STRINGS, strings), (_SYMBOLS, symbols), (_STRINGS_SIZE, len(names))]
    dynamic = b"".join(struct.pack(_DYNAMIC, *entry) for entry in [*entries, (_SYMBOL_SIZE, size), (0, 0)])
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    head = struct.pack(
        _HEADER, ident, 3, machine, 1, 0, programs, 0, 0, programs, struct.calcsize(_PROGRAM), 4, 0, 0, 0
    )
    head += struct.pack(_PROGRAM, _LOAD, _READ | _RUN, 0, 0, 0, end, end, _PAGE)
    for kind in (_LOAD, _DYNAMIC_SEGMENT):  # the loader writes to it
        head += struct.pack(
            _PROGRAM,
            kind,
            _READ | _WRITE,
            _PAGE,
            _PAGE,
            _PAGE,
            len(dynamic),
            len(dynamic),
            _PAGE if kind == _LOAD else 8,
        )
    head += struct.pack(_PROGRAM, _STACK, _READ | _WRITE, 0, 0, 0, 0, 0, 16)
    head += struct.pack(_SYMBOL, 0, 0, 0, 0, 0, 0) + struct.pack(_SYMBOL, 1, 0x12, 0, 1, start, len(code)) + names
    # One bucket, whose chain is the one symbol.
    head = head.ljust(hashes, b"\0") + struct.pack("<IIIIII", 1, 2, 1, 0, 0, 0).ljust(32, b"\0") + code
    return head.ljust(_PAGE, b"\0") + dynamic


def _footer(platform_name: str) -> bytes:
    """What DuckDB reads at the end of the file: a section of WebAssembly, and the fields from the last to the first."""
    fields = ["", "", "", "C_STRUCT", "1", _C_API, platform_name, "4"]
    section = b"\x00\x93\x04\x10duckdb_signature\x80\x04"
    return section + b"".join(field.encode().ljust(_FIELD, b"\0") for field in fields) + bytes(_SIGNATURE)


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
