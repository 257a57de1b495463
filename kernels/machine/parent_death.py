"""Processes that must not outlive the one that started them."""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def end_with(parent: int, by: signal.Signals = signal.SIGKILL) -> None:
    """Have the kernel end this process, by a signal, as soon as its `parent` (a process id) dies, even while it
    computes.

    More exactly, the kernel does so as soon as the thread that started this process ends; a thread that lasts must
    start it. On other systems than Linux this function does nothing.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, by)
        if os.getppid() != parent:  # it died before we asked
            os._exit(1)
