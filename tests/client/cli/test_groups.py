import json

import numpy as np
import pytest

from tests.support.shell import Shell


def test_an_axis_prints_a_line_for_each_value_or_each_row(shell: Shell) -> None:
    np.save(shell.folder / "cube.npy", np.arange(24.0).reshape(2, 3, 4))
    alone = Shell(shell.folder)
    for words in (("--axis", "0,2"), ("--axis", "0,2", "--local")):
        asked = shell if "--local" not in words else alone
        assert asked.run("reduce", "cube.npy", *words).out == "60.0\n92.0\n124.0\n"
    said = alone.run("reduce", "cube.npy", "--axis", "-1", "--op", "max", "--local")
    assert said.out == "3.0\t7.0\t11.0\n15.0\t19.0\t23.0\n"
    assert said.err.startswith("max of 24 elements as float64, shape 2 × 3; exact by rows, correctly rounded; ")


def test_segments_have_a_length_or_offsets(shell: Shell) -> None:
    alone = Shell(shell.folder)
    assert alone.run("reduce", "samples.npy", "--segments", "2", "--local").out == "1e+16\n-1e+16\n"
    said = alone.run("reduce", "samples.npy", "--segments", "0,0,3", "--op", "max", "--local", "--json")
    assert json.loads(said.out)["values"] == [None, 1e16]


def test_a_job_with_an_axis_is_shown_with_its_shape(shell: Shell) -> None:
    job = json.loads(shell.run("reduce", "samples.npy", "--segments", "1", "--json").out)
    assert job["result"]["values"] == [1e16, 1.0, -1e16]
    listed = shell.run("jobs", "--limit", "1").out
    assert "array of 3" in listed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--axis", "x"), "needs whole numbers"),
        (("--axis", "0", "--segments", "2"), "cannot be combined with --axis"),
        (("--keepdims",), "needs --axis"),
        (("--axis", "1", "--local"), "there is no axis 1: the array has 1 axis"),
    ],
)
def test_what_is_wrong_is_said(shell: Shell, words: tuple[str, ...], message: str) -> None:
    said = Shell(shell.folder).run("reduce", "samples.npy", *words)
    assert said.code == 2
    assert message in " ".join(said.err.replace("│", " ").split())
