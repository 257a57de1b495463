"""The recorder of `benchmarks.walk`, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.walk import HERE

_JOB = """
import os, threading, time
from pathlib import Path

def work():
    pass

def also():
    pass

phase = Path(os.environ["WALK_FOLDER"]) / "phase"
assert threading.active_count() == 1, "a process of several threads cannot be forked"
for name, does in (("idle", [work]), ("job", [work, also])):
    phase.write_text(name)
    time.sleep(0.1)
    if (pid := os.fork()) == 0:
        for each in does:
            each()
        os._exit(0)
    os.waitpid(pid, 0)
"""


def test_the_calls_of_a_forked_process_are_noted_by_their_phase(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(_JOB)
    recorder = {"PYTHONPATH": str(HERE / "walk_recorder"), "WALK_FOLDER": str(tmp_path), "WALK_ROOT": str(tmp_path)}
    subprocess.run([sys.executable, str(script)], check=True, env={**os.environ, **recorder})
    lines = {line for notes in tmp_path.glob("calls-*") for line in notes.read_text().splitlines()}
    noted = {(phase, name) for phase, file, name in (line.split("\t") for line in lines) if file == "job.py"}
    assert {pair for pair in noted if pair[1] in {"work", "also"}} == {
        ("idle", "work"),
        ("job", "work"),
        ("job", "also"),
    }
