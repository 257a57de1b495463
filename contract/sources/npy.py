"""Opening .npy files, which both the `path` and the `dataset` source do."""

import errno
import os
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.npy import Head


def mapped(file: BinaryIO, head: Head) -> NDArray[Any]:
    """The array behind `head`, mapped into memory for reading."""
    if head.data_bytes == 0:
        return np.empty(0, head.dtype)
    order: Literal["F", "C"] = "F" if head.fortran_order else "C"
    return np.asarray(np.memmap(file, head.dtype, mode="r", offset=head.offset, shape=head.shape, order=order))


def reason_of(error: OSError) -> str:
    """Why a file cannot be read, in the system's words."""
    if error.errno == errno.ELOOP:
        return "it changed while it was opened"
    return os.strerror(error.errno).lower() if error.errno else "the system gave no reason"
