"""What is printed: every table, with long names, on terminals, in a pipe, where there is little room and none."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO
from uuid import UUID

import numpy as np
import pytest
from sqlalchemy import delete, insert

from tests.support.measurements import POINT, replace
from tests.support.service import Service
from tests.support.shell import Shell
from tests.support.terminals import on_terminal
from warpfold.app.db import BlockingDatabase
from warpfold.app.jobs.workers import WorkerInfo, report
from warpfold.app.tables.jobs import workers
from warpfold.app.tables.measurements import measurements
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
        output.properties([("submitted", datetime(2026, 11, 21, 20, 30, tzinfo=UTC)), ("finished", None)])
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


NAME = "Intel(R) Xeon(R) Processor @ 2.60GHz of a machine [bold] whose maker likes :smile: long names"


FLAGS = ("throttled", "contended", "unconverged")


HOST = "a-machine-with-a-name-as-long-as-names-of-machines-may-be-0123"


TABLES = (
    *(("ops",), ("strategies",), ("presets",), ("devices",), ("workers",), ("jobs", "--parts"), ("dataset", "list")),
    *(
        ("results", "--job", "JOB"),
        ("compare", "JOB:cub", "JOB:single_pass"),
        ("show", "JOB"),
        ("whoami",),
    ),
)


@pytest.fixture(scope="module")
def job(service: Service) -> Iterator[str]:
    """A benchmark with two points, a job with long tags, a worker and an array: all with long names."""
    database = BlockingDatabase(service.settings.database_url, application="test")
    device = {"backend": "cuda", "name": NAME, "index": 0, "memory_bytes": 1 << 40, "cores": 132}
    device |= {"compute_capability": "9.0", "uuid": "GPU-1", "versions": {}}
    worker = WorkerInfo(f"{HOST}:cuda:0", "cuda:0", "cuda", HOST, 1, "0.1.0", device)
    with service.client() as client:
        client.upload(np.arange(20_000.0), NAME)
        tags = {"a" * 64: "b" * 200, "purpose": NAME}
        made = client.submit({"kind": "three_numbers", "tags": tags}).wait().id
    point = replace(POINT, device=NAME, host=HOST, flags=FLAGS, n=123_456_789_012, reason=NAME)
    rows = [{"job_id": UUID(made), **dict(replace(point, strategy=name))} for name in ("cub", "single_pass")]
    # An expired heartbeat: it is listed, and gets no job.
    database.run(report, worker, "idle", None, -1.0)
    database.run(lambda connection: connection.execute(insert(measurements), rows))
    yield made
    database.run(lambda connection: connection.execute(delete(workers).where(workers.c.id == worker.id)))
    database.run(lambda connection: connection.execute(delete(measurements).where(measurements.c.host == HOST)))
    database.close()


def words_of(shown: str) -> list[str]:
    return re.findall(r"[^\s│→]+", shown)


@pytest.mark.parametrize("words", TABLES, ids=" ".join)
def test_no_table_cuts_anything(shell: Shell, job: str, words: tuple[str, ...]) -> None:
    words = tuple(word.replace("JOB", job) for word in words)
    piped = shell.run(*words)
    assert piped.code == 0, piped.err
    # Blocks leave out names of columns where nothing stands, and long words may be broken.
    whole = {word for line in piped.out.splitlines()[1:] for word in words_of(line) if len(word) <= 16}
    assert whole
    for columns in (40, 80, 140):
        shown = on_terminal(columns, lambda: shell.call(*words))
        assert whole <= set(words_of(shown)), columns


@pytest.mark.parametrize(
    ("words", "texts"),
    [
        (("devices",), (NAME, HOST)),
        (("workers",), (NAME, f"{HOST}:cuda:0", "lost")),
        (("results", "--job", "JOB"), (NAME, "123,456,789,012", " ".join(FLAGS))),
        (("dataset", "list"), (NAME,)),
        (("show", "JOB"), ("a" * 64, "b" * 200, NAME)),
    ],
    ids=lambda words: words[0],
)
def test_a_pipe_has_long_names_whole_on_one_line(
    shell: Shell, job: str, words: tuple[str, ...], texts: tuple[str, ...]
) -> None:
    shell.environment["COLUMNS"] = "40"  # as a shell may have exported them
    out = shell.run(*(word.replace("JOB", job) for word in words)).out
    assert any(all(text in line for text in texts) for line in out.splitlines()), out


def test_the_lines_of_a_list_are_as_many_as_its_items(shell: Shell, job: str) -> None:
    lines = shell.run("jobs", "--parts").out.splitlines()
    assert len(lines) == 1 + len(shell.run("jobs", "--parts", "--json").out.splitlines())
    assert json.loads(shell.run("jobs", "--json").out.splitlines()[0])["id"] == job
