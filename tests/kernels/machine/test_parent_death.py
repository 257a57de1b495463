import os
import subprocess
import sys

import psutil
import pytest

from tests.support.waiting import until

SCRIPT = """
import os, subprocess, sys, time
from warpfold.kernels.machine.parent_death import end_with

if len(sys.argv) == 1:
    grandchild = subprocess.Popen([sys.executable, "-c", os.environ["SCRIPT"], str(os.getpid())])
    print(grandchild.pid, flush=True)
else:
    end_with(int(sys.argv[1]))
    print("tied", flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks the Linux kernel")
def test_a_process_ends_with_the_one_that_started_it() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", SCRIPT], env={**os.environ, "SCRIPT": SCRIPT}, stdout=subprocess.PIPE, text=True
    )
    with parent:
        assert parent.stdout is not None
        lines = [parent.stdout.readline().strip(), parent.stdout.readline().strip()]
        assert "tied" in lines
        pid = int(next(line for line in lines if line != "tied"))
        assert psutil.pid_exists(pid)
        parent.kill()
        parent.wait()
        until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE, 30)


@pytest.mark.skipif(sys.platform != "linux", reason="asks the Linux kernel")
def test_a_process_whose_parent_is_gone_already_ends_at_once() -> None:
    script = "from warpfold.kernels.machine.parent_death import end_with; end_with(1 << 22); print('still here')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
