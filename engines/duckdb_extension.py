"""An extension of DuckDB that is no more than a jump into this process.

DuckDB hands its database to the init function of an extension, a shared library with a footer, and offers Python no
other way to it. So a library is written whose init function jumps to a function of this process. Its 4 KB need no
compiler; they are of use to this process alone, and are removed once they are loaded.

The library is an ELF file of two segments, for Linux on x86-64 and ARM64. The footer has the fields of DuckDB's
extension format; its ABI is the stable one of C functions.
"""

import platform
import struct
import sys

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
