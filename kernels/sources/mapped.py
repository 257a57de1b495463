"""Files in memory: their pages are brought in before they are read, and a file that is cut meanwhile ends nothing.

A process that touches a mapped page behind the end of its file gets SIGBUS, which ends it. `populate` has the kernel
bring pages in, which fails with an error instead; it is also the part of reading that takes time. A cut
after that is met by `survive_cuts`: its handler puts zeros in the place of the missing pages. The reader of the
file asks afterwards whether it is still what it was (`kernels.source.unchanged`).
"""

import ctypes
import errno
import signal
import sys
from functools import cache
from mmap import PAGESIZE
from typing import Any

from numpy.typing import NDArray

from warpfold.kernels.errors import InvalidInput

_MADV_DONTNEED = 4
_MADV_POPULATE_READ = 22
_SA_SIGINFO = 4


def populate(array: NDArray[Any]) -> None:
    """Bring the pages of a mapped, contiguous array into memory. Raises InvalidInput where its file ends before. Does
    nothing where the system cannot."""
    if _advise(array, _MADV_POPULATE_READ) and ctypes.get_errno() == errno.EFAULT:
        raise InvalidInput("the file became shorter while it was read")


def forget(array: NDArray[Any]) -> None:
    """Take the pages of a mapped, contiguous array from this process, so that a large file does not count as its
    memory. The next touch brings them back."""
    _advise(array, _MADV_DONTNEED)


def _advise(array: NDArray[Any], advice: int) -> int:
    """The answer of madvise for all pages that hold a part of `array`; 0 where the system has no madvise."""
    madvise = _madvise()
    if madvise is None or not array.nbytes:
        return 0
    address: int = array.ctypes.data
    begin = address & -PAGESIZE
    answer: int = madvise(begin, address + array.nbytes - begin, advice)
    return answer


@cache
def _madvise() -> Any:
    if sys.platform != "linux":
        return None
    madvise = ctypes.CDLL(None, use_errno=True).madvise
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return madvise


class _Sigaction(ctypes.Structure):
    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_ulong * 16),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


@cache
def survive_cuts() -> None:
    """Have this process read zeros where a mapped file has ended. Only a process of our own may call this, because it
    replaces the handler of SIGBUS. Other causes of that signal end the process as before. The first call on a machine
    compiles, which takes tenths of a second."""
    if sys.platform != "linux":
        return
    from warpfold.kernels.sources.bus_errors import handle  # it imports Numba

    action = _Sigaction(handler=handle.address, flags=_SA_SIGINFO)
    ctypes.CDLL(None, use_errno=True).sigaction(int(signal.SIGBUS), ctypes.byref(action), None)


def survives_cuts() -> bool:
    """Whether this process has called `survive_cuts`, or a process that it was forked from."""
    return survive_cuts.cache_info().currsize > 0
