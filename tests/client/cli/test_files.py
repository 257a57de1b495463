"""Files that come through pipes, and files that reports are written into."""

import json
import os
import subprocess
import threading
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest
from sqlalchemy import insert
from typer.testing import CliRunner

from tests.support.measurements import POINT, replace
from tests.support.service import Service
from tests.support.shell import Shell
from warpfold.app.db import BlockingDatabase
from warpfold.app.tables.measurements import measurements
from warpfold.client.cli import build

SPEED = {"kind": "benchmark", "strategies": ["numpy"], "sizes": [1000, 2000], "backend": "cpu", "time_limit_s": 0.05}


def piped(folder: Path, path: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """`cat PATH | warpfold WORDS`, without a service."""
    shell = Shell(folder)
    reading, writing = os.pipe()
    threading.Thread(target=_pour, args=(path.read_bytes(), writing)).start()
    with os.fdopen(reading) as pipe:
        return shell.spawn_with(pipe, *words)


def _pour(content: bytes, into: int) -> None:
    with os.fdopen(into, "wb") as pipe:
        pipe.write(content)


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_an_array_may_come_through_a_pipe(tmp_path: Path, name: str) -> None:
    np.save(tmp_path / "x.npy", np.array([1e16, 1.0, -1e16]))
    done = piped(tmp_path, tmp_path / "x.npy", "reduce", name, "--local", "--json")
    assert json.loads(done.stdout)["value"] == 1.0, done.stderr


def test_a_named_pipe_is_read_once(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(100_000.0))
    os.mkfifo(tmp_path / "pipe")
    pour = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes((tmp_path / "x.npy").read_bytes()))
    pour.start()
    done = CliRunner().invoke(build(), ["reduce", str(tmp_path / "pipe"), "--local", "--op", "max"])
    pour.join()
    assert done.stdout == "99999.0\n"


def test_what_comes_through_the_pipe_is_named_where_it_is_wrong() -> None:
    done = CliRunner().invoke(build(), ["reduce", "-", "--local"], input="nothing of the kind")
    assert done.exit_code == 2
    assert "standard input" in done.stderr
    twice = CliRunner().invoke(build(), ["reduce", "-", "--other", "-", "--op", "dot", "--local"], input="")
    assert twice.exit_code == 2
    assert "one array, not two" in twice.stderr


def test_a_large_array_through_a_pipe_is_uploaded(shell: Shell) -> None:
    environment = {**os.environ, **shell.environment}
    large = (shell.folder / "large.npy").read_bytes()
    reduced = CliRunner().invoke(build(), ["reduce", "-", "--op", "max"], input=large, env=environment)
    assert reduced.stdout == "19999.0\n"
    kept = CliRunner().invoke(build(), ["dataset", "upload", "-"], input=large, env=environment)
    assert kept.stdout == shell.run("dataset", "upload", "large.npy").out


def test_a_report_is_written_with_its_pictures(shell: Shell, service: Service) -> None:
    with service.client() as client:
        job = client.submit(SPEED).wait().id
    database = BlockingDatabase(service.settings.database_url, application="test")
    rows = [{"job_id": UUID(job), **dict(replace(POINT, n=n, bytes=4 * n))} for n in (1 << 10, 1 << 20)]
    database.run(lambda connection: connection.execute(insert(measurements), rows))
    database.close()
    printed = shell.run("report", job)
    assert "](/v1/" not in printed.out
    assert "*Picture: " in printed.out
    assert "--output FILE writes them beside the report" in printed.err or "a picture is left out" in printed.err
    written = shell.run("report", job, "--output", "speed.md")
    assert written.code == 0, written.err
    text = (shell.folder / "speed.md").read_text()
    named = [part.split(">)")[0] for part in text.split("](<")[1:]]
    assert named
    assert sorted(named) == sorted(f"figures/{file.name}" for file in (shell.folder / "figures").iterdir())
    assert all("<svg" in (shell.folder / name).read_text() for name in named)


def test_times_nulls_and_complex_numbers_are_printed_in_words(tmp_path: Path) -> None:
    (tmp_path / "trips.csv").write_text("pickup,fare\n2026-01-02 03:04:05,1.5\n2026-01-01 00:00:00,\n")
    trips = str(tmp_path / "trips.csv")
    words = ["reduce", trips, "--local", "--column"]
    latest = CliRunner().invoke(build(), [*words, "pickup", "--op", "max"])
    assert latest.stdout == "2026-01-02T03:04:05\n"
    assert "max of 2 elements as timestamp[s]" in latest.stderr
    fare = CliRunner().invoke(build(), [*words, "fare", "--null-policy", "propagate"])
    assert fare.stdout == "null\n"
    assert "sum of 1 element as float64, exact, correctly rounded; this machine; 1 null met" in fare.stderr
    printed = json.loads(CliRunner().invoke(build(), [*words, "pickup", "--op", "mean", "--json"]).stdout)
    assert printed["time"] == {"iso": "2026-01-01T13:32:02", "unit": "s", "timezone": None, "exact": "3534548645/2"}
    np.save(tmp_path / "t.npy", np.array([5, 7], "m8[h]"))
    total = CliRunner().invoke(build(), ["reduce", str(tmp_path / "t.npy"), "--local"])
    assert total.stdout == "PT12H\n"
    np.save(tmp_path / "z.npy", np.array([1 + 2j, 0.5]))
    words = ["reduce", str(tmp_path / "z.npy"), "--local"]
    assert CliRunner().invoke(build(), words).stdout == "(1.5+2j)\n"
    parts = json.loads(CliRunner().invoke(build(), [*words, "--json"]).stdout)
    assert (parts["value"], parts["hex"]["im"], parts["dtype"]) == ({"re": 1.5, "im": 2.0}, (2.0).hex(), "complex128")
