"""What the nursery of the tests does before it forks (`tests/support/warm.py`)."""

import os
from pathlib import Path


def preload() -> None:
    """Import the service, and load the machine code that each child of a CPU slot begins with, so that no fork has
    to."""
    import pytest  # noqa: F401 (forks unpickle classes of its)

    from tests.support.compiling import compile_by_turns
    from warpfold.kernels.cpu.backend import CpuBackend
    from warpfold.worker.child import prepare_kernels
    from warpfold.worker.start import import_service

    import_service()
    compile_by_turns(Path(os.environ["NUMBA_CACHE_DIR"]) / "turns")
    prepare_kernels("cpu")
    CpuBackend().warm()
