"""What the fork server of the tests does before it forks (`tests/support/warm.py`): it imports the service, and loads
the machine code that each child of a CPU slot begins with, so that no fork has to."""

import gc
import os
import threading
from pathlib import Path

import pytest  # noqa: F401 (forks unpickle classes of its)

from tests.support.compiling import compile_by_turns
from warpfold.app import __main__  # noqa: F401
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.worker import boot, dispatcher, execute  # noqa: F401
from warpfold.worker.kinds import runs

runs()
compile_by_turns(Path(os.environ["NUMBA_CACHE_DIR"]) / "turns")
CpuBackend().warm()  # as each child does; where it is loaded already, that takes a sixtieth
assert threading.active_count() == 1, "a process of several threads cannot be forked"
gc.freeze()  # a collection in a fork would copy every page that it looks at
