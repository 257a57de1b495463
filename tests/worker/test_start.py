"""`warpfold.worker.start` runs what it names, and no garbage is collected while that is imported."""

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from warpfold.worker.start import imports

WATCHER = """
import gc
collecting = gc.isenabled()
def main():
    import sys
    print(collecting, gc.isenabled(), gc.get_freeze_count() > 1000, *sys.argv[1:])
    return 3
"""


@pytest.mark.parametrize("module", ["watcher", "package"])
def test_a_module_or_package_is_run_after_its_imports_without_garbage_collection(tmp_path: Path, module: str) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    (tmp_path / "package" / "__main__.py").write_text(WATCHER)
    (tmp_path / "watcher.py").write_text(WATCHER)
    code = f"import sys; from warpfold.worker.start import run; sys.exit(run(['{module}', '--port', '1']))"
    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (3, "False True True --port 1\n"), ended.stderr


def test_garbage_is_collected_again_where_an_import_fails() -> None:
    with pytest.raises(ModuleNotFoundError), imports():
        raise ModuleNotFoundError
    assert gc.isenabled()
