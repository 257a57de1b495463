import ctypes
import sys
from types import SimpleNamespace

import numpy as np

from warpfold.kernels.cuda.gpu.recorded import _pack


def test_arguments_lie_in_memory_as_the_driver_reads_them() -> None:
    array = SimpleNamespace(data=SimpleNamespace(ptr=0x7F0000001000))
    packed = _pack([array, np.uint64(12), np.uint32(7), np.float64(0.5)])
    table = (ctypes.c_void_p * 4).from_address(packed.address)

    def at(index: int, size: int) -> bytes:
        return ctypes.string_at(table[index] or 0, size)

    assert int.from_bytes(at(0, 8), sys.byteorder) == 0x7F0000001000
    assert int.from_bytes(at(1, 8), sys.byteorder) == 12
    assert int.from_bytes(at(2, 4), sys.byteorder) == 7
    assert np.frombuffer(at(3, 8))[0] == 0.5
