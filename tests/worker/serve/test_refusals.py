"""What keeps `warpfold serve` from starting is said in a sentence."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

NOWHERE = "postgresql://127.0.0.1:9/none"


@pytest.mark.parametrize(
    ("options", "variables", "said"),
    [
        (("--host", "nowhere.invalid"), {}, "nowhere.invalid:18099 cannot be listened at ("),
        (("--data-dir", "file/below"), {}, "file/below cannot be made: Not a directory; choose another --data-dir"),
        ((), {"WARPFOLD_DATABASE_URL": NOWHERE}, "the database cannot be used: connection failed: "),
    ],
)
def test_what_is_in_the_way_is_named(
    tmp_path: Path, options: tuple[str, ...], variables: dict[str, str], said: str
) -> None:
    (tmp_path / "file").touch()
    ours = {name: value for name, value in os.environ.items() if not name.startswith("WARPFOLD")}
    done = subprocess.run(
        [sys.executable, "-m", "warpfold.worker.serve", "--port", "18099", "--slots", "cpu", *options],
        cwd=tmp_path,
        env={**ours, "PYTHONPATH": str(Path(__file__).parents[3] / "src"), **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("warpfold serve: ")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
