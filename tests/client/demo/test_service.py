"""However the demo ends, its service ends with it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.servers import folder
from tests.support.waiting import until

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_nothing_is_left_behind(number: signal.Signals, code: int) -> None:
    with folder() as short:  # a socket's path has 107 bytes at most
        _end_it_in_the_middle(short, number, code)


def _end_it_in_the_middle(tmp_path: Path, number: signal.Signals, code: int) -> None:
    words = [sys.executable, "-m", "warpfold.client.demo", "--slots", "cpu"]
    ours = {name: value for name, value in os.environ.items() if not name.startswith("WARPFOLD")}
    demo = subprocess.Popen(
        words,
        cwd=ROOT,
        env={**ours, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    started = "warpfold-demo-*/warpfold/database_url"
    until(lambda: list(tmp_path.glob(started)) or demo.poll() is not None, 120, describe=lambda: "not started")
    assert demo.poll() is None, demo.communicate()[0]
    descendants = psutil.Process(demo.pid).children(recursive=True)
    demo.send_signal(number)
    printed = demo.communicate(timeout=120)[0]
    assert (demo.returncode, "Traceback" in printed) == (code, False), printed
    _, alive = psutil.wait_procs(descendants, timeout=60)
    assert alive == []
    assert list(tmp_path.glob("warpfold-demo-*")) == []
