"""What both sources of .npy files say: `path` and `dataset`."""

import errno
import os


def reason_of(error: OSError) -> str:
    """Why a file cannot be read, in the system's words."""
    if error.errno == errno.ELOOP:
        return "it changed while it was opened"
    return os.strerror(error.errno).lower() if error.errno else "the system gave no reason"
