"""What is printed where there is little room, and none at all."""

import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

import pytest

from warpfold.client.cli import output

FULL = Path("/dev/full")


def test_no_id_is_cut_on_a_narrow_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    rows = [["5f0cbe4b", "running, 3 %", "sum of 68,719,476,736 normal", 49858.21883419558]]
    output.table(("id", "status", "of", "value"), rows, right=("value",), fold="of")
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("5f0cbe4b  running, 3 %  sum")
    assert "4.986e+04" in lines[1]
    assert "…" not in "".join(lines)


def test_times_are_those_of_the_reader(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        output.facts([("submitted", datetime(2026, 11, 21, 20, 30, tzinfo=UTC)), ("finished", None)])
    finally:
        monkeypatch.undo()
        time.tzset()
    assert capsys.readouterr().out == "submitted  2026-11-22 05:30:00\n"


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.skipif(not FULL.exists(), reason="only Linux has a device that is always full")
def test_a_full_disk_is_said_in_a_sentence(unbuffered: str) -> None:
    with FULL.open("w") as full:
        done = _dry_run(full, unbuffered)
    assert (done.returncode, done.stderr) == (2, "warpfold: No space left on device\n")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_who_has_read_enough_hears_no_complaint(unbuffered: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as closed:
        done = _dry_run(closed, unbuffered)
    assert (done.returncode, done.stderr) == (1, "")


def _dry_run(stdout: TextIO, unbuffered: str) -> "subprocess.CompletedProcess[str]":
    words = [sys.executable, "-m", "warpfold.client", "submit", "--values", "1", "--dry-run"]
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    return subprocess.run(words, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False, env=environment)
