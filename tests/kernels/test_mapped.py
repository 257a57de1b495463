"""Mapped files that are cut, in processes of their own."""

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.mapped import forget, populate

_SCRIPT = """
import os, sys
import numpy as np
from warpfold.kernels.mapped import survive_cuts
if sys.argv[2] == "guarded":
    survive_cuts()
array = np.memmap(sys.argv[1], np.float64, "r")
os.truncate(sys.argv[1], 8192)
print(array.sum())
"""


@pytest.mark.parametrize(("how", "code", "printed"), [("guarded", 0, "1024.0"), ("plain", -signal.SIGBUS, "")])
def test_what_a_mapped_file_has_lost_reads_as_zeros(tmp_path: Path, how: str, code: int, printed: str) -> None:
    np.ones(100_000).tofile(tmp_path / "x")
    ended = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(tmp_path / "x"), how], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout.strip()) == (code, printed), ended.stderr


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
