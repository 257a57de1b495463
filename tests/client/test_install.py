"""The base installation has no server: the client must work without its packages."""

import subprocess
import sys
from pathlib import Path

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
from client import Client
from app.jobs.spec import job_spec
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
from client import ExactState
from client.local import reduce
a, b = np.array([1e16, 1.0]), np.array([-1e16])
merged = ExactState.of(a).merge(ExactState.of(b))
from kernels.dtypes import dtype_named
print(merged.round_to(dtype_named("float64")), reduce(np.concatenate([a, b])).value)
"""
    done = _run(code)
    assert done.stdout == "1.0 1.0\n", done.stderr


def test_data_frames_say_what_to_install() -> None:
    done = _run("from client import Results; Results(()).to_arrow()")
    assert "warpfold[frames]" in done.stderr


def test_the_command_line_shows_its_help_without_the_server() -> None:
    done = _run("import sys; sys.argv = ['warpfold', '--help']; from client.cli import main; main()")
    assert done.returncode == 0, done.stderr
    assert "serve" in done.stdout


def test_a_server_command_says_what_to_install() -> None:
    done = _run("import sys; sys.argv = ['warpfold', 'serve']; from client.cli import main; main()")
    assert done.returncode == 6
    assert "warpfold[embedded]" in done.stderr


def test_whoever_uses_the_client_can_have_it_type_checked() -> None:
    root = Path(__file__).parents[2]
    assert [name for name in ("client", "app", "kernels") if not (root / name / "py.typed").is_file()] == []
