"""Advice on what to install, wherever it is given."""

import re
import subprocess
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import warpfold
from warpfold.kernels.errors import OutOfMemory, Unavailable
from warpfold.kernels.machine.extras import bringing, install, required

ROOT = Path(__file__).parents[3]


def test_an_extra_is_installed_from_a_clone() -> None:
    assert install("server") == "`pip install '.[server]'` in a clone of Warpfold"
    assert install("cuda13", "cuda12").startswith("`pip install '.[cuda13]'` or `pip install '.[cuda12]'` in a clone")


def test_nothing_advises_to_install_a_name_that_is_in_no_index() -> None:
    named = re.compile(r"pip install (-\S+ )*['\"`]?warpfold\b|warpfold\[\w")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    texts = {
        name: ROOT / name for name in listed.split("\0") if name.endswith((".py", ".md", ".jinja", ".ipynb", ".sh"))
    }
    assert len(texts) > 500
    faults = [
        f"{name}:{number}"
        for name, path in texts.items()
        if path.is_file() and path != Path(__file__)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if named.search(line)
    ]
    assert faults == []


def test_every_extra_that_is_named_exists() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    sources = [
        path
        for folder in ("app", "client", "contract", "kernels", "src", "worker")
        for path in (ROOT / folder).rglob("*.py")
    ]
    named = {
        extra
        for path in sources
        for call in re.findall(r"\b(?:install|bringing)\((['\"][^)]*)\)", path.read_text(encoding="utf-8"))
        for extra in re.findall(r"\w+", call.partition("besides")[0])
    }
    assert {"server", "embedded", "frames", "tracing", "cuda13", "cuda12"} <= named
    assert named <= set(extras)


PUBLIC = sorted(path.stem for path in (ROOT / "src" / "warpfold").glob("*.py") if not path.stem.startswith("__"))


def test_every_engine_has_a_public_name() -> None:
    assert sorted(warpfold._ENGINES) == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_an_engine_is_imported_by_its_public_name(name: str) -> None:
    try:
        engine = import_module(f"warpfold.engines.{name}")
    except ModuleNotFoundError as error:
        assert error.name == name, "only a library that no extra brings may be missing here"  # noqa: PT017
        return
    public = import_module(f"warpfold.{name}")
    assert getattr(warpfold, name) is public
    own = {of for of, value in vars(engine).items() if getattr(value, "__module__", None) == engine.__name__}
    assert all(getattr(public, of) is getattr(engine, of) for of in own if not of.startswith("_"))
    assert {of for of in own if not of.startswith("_")} or name in ("gpu", "postgres", "xarray")


def test_an_import_that_fails_for_lack_of_memory_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(error: ImportError) -> None:
        def import_module(name: str) -> None:
            raise error

        monkeypatch.setattr("warpfold.kernels.machine.extras.import_module", import_module)

    fails(ImportError("libarrow.so: failed to map segment from shared object: Cannot allocate memory"))
    with pytest.raises(OutOfMemory, match="pyarrow cannot be imported for lack of memory"):
        required("pyarrow.csv", "tables")
    fails(ImportError("libarrow.so: undefined symbol: arrow"))
    with pytest.raises(
        Unavailable, match=r"pyarrow cannot be imported on the machine that ran this: libarrow\.so: undefined symbol"
    ):
        required("pyarrow.csv", "tables")
    fails(ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow"))
    with pytest.raises(Unavailable, match="pyarrow is not installed"):
        required("pyarrow.csv", "tables")


def test_a_missing_package_of_an_engine_says_what_to_type() -> None:
    with (
        pytest.raises(ModuleNotFoundError, match=r"not_there is not installed: `pip install '.\[duckdb\]'` or `pip"),
        bringing("duckdb", "polars"),
    ):
        import_module("not_there.at_all")
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'warpfold.not_there'"), bringing("duckdb"):
        import_module("warpfold.not_there")


def test_every_extra_with_compiled_loops_brings_what_they_import() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for name in ("engines", "flox", "datafusion", "duckdb", "pandas", "polars"):
        assert "warpfold[loops]" in extras[name], name
    assert {re.split(r"\W", needed)[0] for needed in extras["loops"]} == {"numba", "psutil"}
