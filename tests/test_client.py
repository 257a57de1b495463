"""The public names are those of the client, and to import one loads little."""

import subprocess
import sys

import pytest

import warpfold
from warpfold import client


@pytest.mark.parametrize("name", client.__all__)
def test_a_public_name_is_there(name: str) -> None:
    assert getattr(warpfold, name).__name__.endswith(name) or name == "Result"


def test_other_names_are_not() -> None:
    for package in (warpfold, client):
        with pytest.raises(AttributeError, match="Clients"):
            package.Clients  # noqa: B018


@pytest.mark.parametrize("name", ["Client", "AsyncClient"])
def test_the_client_loads_neither_numpy_nor_strategies_nor_formats(name: str) -> None:
    code = f"import sys; from warpfold import {name}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = done.stdout.split()
    ours = [each for each in imported if each.partition(".")[0] == "warpfold"]
    assert len(ours) <= 50, sorted(ours)
    assert not {"numpy", "rich", "yaml"} & set(imported)
    rooms = {each.split(".")[2] for each in ours if each.startswith("warpfold.kernels.")}
    assert rooms <= {"errors", "machine", "studies"}
