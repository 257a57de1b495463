"""Machine code for the thread that meets the end of a mapped file (SIGBUS): it asks Python for nothing.

It is a module of its own, because it imports Numba, which `mapped.py` must not. Within a function, `mmap` would be a
variable that the machine code closes over: Numba finds such code in its cache by pickling these variables, and a
declaration is pickled otherwise in each process, so that each would compile anew and leave a file behind.
"""

import signal
from mmap import PAGESIZE
from typing import Any

import numba
import numpy as np

_compiler: Any = numba
_carray, _types = _compiler.carray, _compiler.types
_SIGBUS = int(signal.SIGBUS)
_mmap = _types.ExternalFunction(
    "mmap", _types.uint64(_types.uint64, _types.uint64, _types.int32, _types.int32, _types.int32, _types.int64)
)
_reset = _types.ExternalFunction("signal", _types.uint64(_types.int32, _types.uint64))


@_compiler.cfunc(_types.void(_types.int32, _types.CPointer(_types.int64), _types.uint64), cache=True)
def handle(number, info, context):  # type: ignore[no-untyped-def]
    """Put a page of zeros where the file has no page; after any other cause of the signal, let it end the process."""
    numbers = _carray(info, 3)  # number and error; code; address
    if numbers[1] & 0xFFFFFFFF == 2:  # BUS_ADRERR: there is nothing at this address
        # PROT_READ; MAP_PRIVATE, MAP_FIXED and MAP_ANONYMOUS
        _mmap(np.uint64(numbers[2] & -PAGESIZE), np.uint64(PAGESIZE), 1, 0x32, -1, 0)
    else:
        _reset(_SIGBUS, np.uint64(0))  # the signal comes again
