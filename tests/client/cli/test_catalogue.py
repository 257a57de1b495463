import json

import pytest

from tests.support.shell import Shell


def test_the_ops_are_listed(shell: Shell) -> None:
    lines = shell.run("ops").transcript.splitlines()
    assert lines[:3] == [
        "op  computes  of float32  of int32",
        "sum  Σ x  float32  integer",
        "mean  Σ x / n  float32  float64",
    ]


def test_devices_and_workers_are_listed(shell: Shell) -> None:
    devices = shell.run("devices").transcript.splitlines()
    workers = shell.run("workers").transcript.splitlines()
    assert devices[0] == "host  device  memory  cores  live  workers"
    assert workers[0] == "worker  state  job  device  version"
    assert len(devices) == len(workers) == 2


@pytest.mark.parametrize("command", ["ops", "strategies", "presets", "devices", "workers"])
def test_every_list_is_json_by_lines(shell: Shell, command: str) -> None:
    lines = shell.run(command, "--json").out.splitlines()
    assert lines
    assert all(isinstance(json.loads(line), dict) for line in lines)


def test_a_pipe_gets_whole_lines_however_narrow_the_terminal_is(shell: Shell) -> None:
    wide = shell.run("strategies").out
    shell.environment["COLUMNS"] = "70"
    assert shell.run("strategies").out == wide
    assert wide.splitlines()[0].split() == ["strategy", "backend", "ops", "how"]
