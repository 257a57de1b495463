import json

import pytest

from tests.support.rates import CPU, H200
from tests.support.shell import Shell
from warpfold.client.catalogue import Rates
from warpfold.client.cli.catalogue import _speeds


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
    assert devices[0] == "host  device  memory  cores  read GB/s  copy GB/s  reduce GB/s  live  workers"
    assert "  –  –  –  yes  " in devices[1], "the rates of this slot are not measured"
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


def test_the_speeds_of_a_device_are_those_of_its_rates() -> None:
    assert _speeds(Rates.model_validate(H200.model_dump())) == ["38", "55", "4600"]
    assert _speeds(Rates.model_validate(CPU.model_dump())) == ["51.7", "–", "50"]
