"""Functions that compiled code of several folders calls: words of memory, the clock, reading of files.

A word is an int64, and is named by its address. A change in this file makes all machine code stale
(`kernels/machine/jit.py`).
"""

from typing import Any

import numba
from llvmlite import ir
from numba.core import imputils as untyped_imputils

from warpfold.kernels.machine.jit import intrinsic, jit

WORD, LINE = 8, 64
"""The bytes of a word, and of a line of the cache: threads that write different lines do not wait for each other."""

_types: Any = numba.types
imputils: Any = untyped_imputils
_I32, _I64, _WORD = ir.IntType(32), ir.IntType(64), _types.int64
_errno = _types.ExternalFunction("__errno_location", _WORD())
_pread = _types.ExternalFunction("pread", _WORD(_types.int32, _WORD, _WORD, _WORD))
_clock = _types.ExternalFunction("clock_gettime", _types.int32(_types.int32, _WORD))

_MONOTONIC = 1
_EINTR = 4

ENDED = -1
"""The answer of `read_whole` where a file ends too early."""


@intrinsic
def read_only(context: Any, array: Any) -> Any:
    """The same array as one that is not written, so that what reads it is compiled for one type."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return imputils.impl_ret_borrowed(context, builder, signature.return_type, arguments[0])

    return array.copy(readonly=True)(array), generate


@intrinsic
def load(context: Any, address: Any) -> Any:
    """The word at `address`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(builder.inttoptr(arguments[0], _I64.as_pointer()), "acquire", WORD)

    return _WORD(_WORD), generate


@intrinsic
def store(context: Any, address: Any, value: Any) -> Any:
    """Make `value` the word at `address`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store_atomic(arguments[1], builder.inttoptr(arguments[0], _I64.as_pointer()), "release", WORD)
        return context.get_dummy_value()

    return _types.void(_WORD, _WORD), generate


@intrinsic
def add(context: Any, address: Any, value: Any) -> Any:
    """Add `value` to the word at `address`, and return what it was before."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], _I64.as_pointer())
        return builder.atomic_rmw("add", pointer, arguments[1], "seq_cst")

    return _WORD(_WORD, _WORD), generate


@intrinsic
def _load_int(context: Any, address: Any) -> Any:
    """The C int at `address`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(builder.inttoptr(arguments[0], _I32.as_pointer()))

    return _types.int32(_WORD), generate


@jit
def errno() -> Any:
    """The number of the error that the last call of the system by this thread met."""
    return _load_int(_errno())


@jit
def now_ns(scratch: Any) -> Any:
    """Nanoseconds of the clock that never goes back; `scratch` is the address of two words."""
    _clock(_MONOTONIC, scratch)
    return load(scratch) * 1_000_000_000 + load(scratch + WORD)


@jit
def read_whole(descriptor: Any, offset: Any, place: Any, nbytes: Any) -> Any:
    """Read `nbytes` of an open file from `offset` on into memory at `place`. Returns 0, the number of the system's
    error, or ENDED."""
    while nbytes > 0:
        got = _pread(descriptor, place, nbytes, offset)
        if got < 0:
            error = errno()
            if error != _EINTR:
                return error
        elif got == 0:
            return ENDED
        else:
            place, offset, nbytes = place + got, offset + got, nbytes - got
    return 0
