"""What the fork server of the tests does before it forks (`tests/support/warm.py`): it imports the service, and loads
what a CPU slot compiles, so that no fork has to."""

import fcntl
import gc
import tempfile
import threading
from pathlib import Path

import pytest  # noqa: F401 (forks unpickle classes of its)

from warpfold.app import __main__  # noqa: F401
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.worker import boot, dispatcher, execute  # noqa: F401
from warpfold.worker.kinds import runs

runs()
with (Path(tempfile.gettempdir()) / "warpfold-tests.lock").open("w") as turn:
    fcntl.flock(turn, fcntl.LOCK_EX)  # the first process of pytest compiles, and the others load
    CpuBackend().close()
assert threading.active_count() == 1, "a process of several threads cannot be forked"
gc.freeze()  # a collection in a fork would copy every page that it looks at
