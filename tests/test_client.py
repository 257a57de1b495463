"""The public names are those of the client, and to import one loads little."""

import importlib
import importlib.abc
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


@pytest.mark.parametrize(
    ("engine", "package", "line"),
    [
        ("torch", "torch", "`pip install torch`"),
        ("jax", "jax", "`pip install jax`"),
        ("dask", "dask", "`pip install '.[engines]'` in a clone"),
        ("pandas", "pandas", "`pip install '.[pandas]'` in a clone"),
        ("polars", "polars", "`pip install '.[polars]'` in a clone"),
    ],
)
def test_an_engine_that_is_missing_says_how_to_install_it(
    engine: str, package: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith(f"warpfold.engines.{engine}")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, f"warpfold.{engine}", raising=False)
    monkeypatch.setattr(sys, "meta_path", [_Without(package), *sys.meta_path])
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module(f"warpfold.{engine}")
    assert line in str(caught.value)


class _Without(importlib.abc.MetaPathFinder):
    """Finds that a package is not installed."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        if fullname.partition(".")[0] == self._package:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
