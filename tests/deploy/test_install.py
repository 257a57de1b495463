"""The base installation has no server: the client must work without its packages."""

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

import warpfold
import warpfold.client

ROOT = Path(__file__).parents[2]
PACKAGES = ("app", "client", "contract", "engines", "kernels", "migrations", "worker")

BLOCKED = """
import sys

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names}:
            raise ModuleNotFoundError(name + " is not part of the base installation", name=name)

sys.meta_path.insert(0, Block())
"""
SERVER_ONLY = {
    "altair",
    "fastapi",
    "jinja2",
    "pandas",
    "pydantic_settings",
    "starlette",
    "sqlalchemy",
    "psycopg",
    "redis",
    "rq",
    "numba",
    "filelock",
    "cuda",
    "pyarrow",
    "psutil",
    "structlog",
    "uvicorn",
}


def _run(code: str) -> subprocess.CompletedProcess[str]:
    blocked = BLOCKED.replace("{names}", repr(SERVER_ONLY))
    return subprocess.run([sys.executable, "-c", blocked + code], capture_output=True, text=True, check=False)


def test_the_client_and_its_specs_need_no_package_of_the_server() -> None:
    code = """
from warpfold.client import Client
from warpfold.contract.jobs import job_spec
job_spec.validate_python({"kind": "reduce", "source": {"type": "values", "values": [1]}})
job_spec.validate_python({"kind": "benchmark", "strategies": ["exact"], "sizes": [10]})
job_spec.validate_python({"kind": "cluster", "puzzle": "reduction"})
print("fine")
"""
    done = _run(code)
    assert done.stdout == "fine\n", done.stderr


def test_states_are_made_and_merged_without_the_server() -> None:
    code = """
import numpy as np
from warpfold.client import ExactState
from warpfold.client.local import reduce
a, b = np.array([1e16, 1.0]), np.array([-1e16])
merged = ExactState.of(a).merge(ExactState.of(b))
from warpfold.kernels.dtypes import dtype_named
print(merged.round_to(dtype_named("float64")), reduce(np.concatenate([a, b])).value)
"""
    done = _run(code)
    assert done.stdout == "1.0 1.0\n", done.stderr


def test_data_frames_say_what_to_install() -> None:
    done = _run("from warpfold.client import Results; Results(()).to_arrow()")
    assert "pip install '.[frames]'" in done.stderr


def test_the_command_line_shows_its_help_without_the_server() -> None:
    done = _run("import sys; sys.argv = ['warpfold', '--help']; from warpfold.client.cli import main; main()")
    assert done.returncode == 0, done.stderr
    assert "serve" in done.stdout


def test_a_server_command_says_what_to_install() -> None:
    done = _run("import sys; sys.argv = ['warpfold', 'serve']; from warpfold.client.cli import main; main()")
    assert done.returncode == 6
    assert "pip install '.[embedded]'" in done.stderr


def test_whoever_uses_the_client_can_have_it_type_checked() -> None:
    packages = ("client", "contract", "app", "engines", "kernels", "src/warpfold")
    assert [name for name in packages if not (ROOT / name / "py.typed").is_file()] == []


def test_no_file_of_a_users_folder_takes_the_place_of_a_package(tmp_path: Path) -> None:
    for name in PACKAGES:
        (tmp_path / f"{name}.py").write_text("raise ImportError('this is the file of a user')")
    (tmp_path / "both").mkdir()
    for name in PACKAGES:
        (tmp_path / "both" / name).mkdir()
        (tmp_path / "both" / name / "__init__.py").touch()
    script = """
import numpy as np
from warpfold import Client, ExactState
from warpfold.contract.jobs import job_spec
from warpfold.client.local import reduce
from warpfold.worker import dispatcher
from warpfold import migrations
print(reduce(np.array([1e16, 1.0, -1e16])).value, Client.__module__)
"""
    (tmp_path / "script.py").write_text(script)
    for folder, words in ((tmp_path, ["script.py"]), (tmp_path / "both", ["-c", script])):
        done = subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True, check=False)
        assert done.stdout == "1.0 warpfold.client.api\n", done.stderr


def test_an_installation_puts_one_name_beside_other_packages(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, text=True)
    [wheel] = tmp_path.glob("*.whl")
    with ZipFile(wheel) as packed:
        names = packed.namelist()
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {"warpfold"}
    built = {name for name in names if name.endswith((".py", ".cu", ".cuh", ".yaml", ".jinja"))}
    tracked = subprocess.run(["git", "ls-files", *PACKAGES], cwd=ROOT, check=True, capture_output=True, text=True)
    sources = [line for line in tracked.stdout.splitlines() if line.endswith((".py", ".cu", ".cuh", ".yaml", ".jinja"))]
    assert [name for name in sources if (ROOT / name).exists() and f"warpfold/{name}" not in built] == []


def test_names_of_the_public_package_are_those_of_the_client() -> None:
    assert set(warpfold.client.__all__) <= set(dir(warpfold))
    with pytest.raises(AttributeError, match="no attribute 'clinet'"):
        getattr(warpfold, "clinet")  # noqa: B009 - mypy would refuse the misspelt name


def test_a_package_of_the_server_loads_no_http_client() -> None:
    code = "import sys, warpfold.kernels.ops; print('httpx' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
