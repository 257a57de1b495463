"""How many threads are worth starting."""

import os
import subprocess
import sys

import pytest

from warpfold.kernels.machine.cores import usable_cores


def test_there_is_a_core_and_no_more_than_the_machine_has() -> None:
    assert 1 <= usable_cores() <= (os.cpu_count() or 1)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system pins no processes")
def test_a_pinned_process_counts_only_its_own_cores() -> None:
    code = (
        "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]);"
        "from warpfold.kernels.machine.cores import usable_cores; print(usable_cores())"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "1"
