"""Mapped files that are cut, in processes of their own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.sources.mapped import forget, populate

_SCRIPT = """
import os, sys
import numpy as np
from warpfold.kernels.sources.mapped import survive_cuts, survives_cuts
if sys.argv[2] == "guarded":
    survive_cuts()
assert survives_cuts() == (sys.argv[2] == "guarded")
array = np.memmap(sys.argv[1], np.float64, "r")
os.truncate(sys.argv[1], 8192)
print(array.sum())
"""


def summed(tmp_path: Path, how: str) -> "subprocess.CompletedProcess[str]":
    """A process that adds up a file which is cut meanwhile."""
    np.ones(100_000).tofile(tmp_path / "x")
    return subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(tmp_path / "x"), how],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "compiled")},
        capture_output=True,
        text=True,
        check=False,
    )


def test_without_the_guard_what_a_mapped_file_has_lost_ends_the_process(tmp_path: Path) -> None:
    ended = summed(tmp_path, "plain")
    assert (ended.returncode, ended.stdout) == (-signal.SIGBUS, ""), ended.stderr


def test_with_it_zeros_are_read_and_its_machine_code_is_compiled_by_the_first_process_alone(tmp_path: Path) -> None:
    for ended in (summed(tmp_path, "guarded"), summed(tmp_path, "guarded")):
        assert (ended.returncode, ended.stdout) == (0, "1024.0\n"), ended.stderr
    assert len(list(tmp_path.glob("compiled/**/*.nbc"))) == 1


def test_pages_behind_the_end_of_a_file_cannot_be_brought_in(tmp_path: Path) -> None:
    np.ones(100_000).tofile(tmp_path / "x")
    array = np.memmap(tmp_path / "x", np.float64, "r")
    populate(array[7:90_001])
    populate(array[:0])
    with (tmp_path / "x").open("r+b") as file:
        file.truncate(8192)
    populate(array[:1024])
    with pytest.raises(InvalidInput, match="became shorter"):
        populate(array[1000:5000])


def test_pages_that_were_forgotten_are_there_again_when_they_are_touched(tmp_path: Path) -> None:
    np.arange(100_000.0).tofile(tmp_path / "x")
    array = np.memmap(tmp_path / "x", np.float64, "r")
    want = float(array.sum())
    forget(array[7:90_001])
    forget(array[:0])
    assert float(array.sum()) == want
