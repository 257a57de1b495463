import subprocess
import sys

import pytest

from warpfold.app import main
from warpfold.app.config import Settings
from warpfold.app.main import create_app


def test_without_a_database_it_says_which_setting_is_missing() -> None:
    with pytest.raises(ValueError, match="WARPFOLD_DATABASE_URL"):
        create_app(Settings(database_url=""))


def test_making_an_app_connects_to_nothing() -> None:
    assert create_app(Settings(database_url="postgresql://nobody@nowhere.invalid/x")).title == "Warpfold"


def test_the_app_of_the_environment_is_made_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPFOLD_DATABASE_URL", "postgresql://nobody@nowhere.invalid/x")
    assert main.app.title == "Warpfold"
    with pytest.raises(AttributeError):
        _ = main.application


def test_the_api_imports_neither_queue_nor_gpu_nor_compiler_and_waits_for_no_charts() -> None:
    listed = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, warpfold.app.main as main; main.create_app(main.Settings(database_url='postgresql://x'));"
            "print(*{'.'.join(name.split('.')[:n]) for name in sys.modules for n in (1, 2)})",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert not {"rq", "cupy", "numba", "warpfold.worker", "torch", "altair", "vl_convert"} & set(listed)
