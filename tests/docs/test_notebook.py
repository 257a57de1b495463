"""The notebook of the documentation runs, and shows what is kept in it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.docs import execute_notebook
from tests.support.docs.runner import Runner
from tests.support.service import Service

NOTEBOOK = Path(__file__).parents[2] / "docs" / "examples" / "warpfold.ipynb"


def shown(path: Path) -> list[list[str]]:
    """The text of the outputs, cell by cell, but for what depends on the machine."""
    cells: list[dict[str, Any]] = json.loads(path.read_text())["cells"]
    return [
        [_text(output) for output in cell.get("outputs", ())]
        for cell in cells
        if cell["cell_type"] == "code" and "# on this machine" not in "".join(cell["source"])
    ]


def _text(output: dict[str, Any]) -> str:
    kinds = output.get("data", {"text/plain": output.get("text", "")})
    if "text/html" in kinds and "text/plain" in kinds:  # the plain text of a result names this machine
        return "a table" if "<table" in "".join(kinds["text/html"]) else "something else"
    return "".join(kinds["text/plain"]).strip()


def test_the_notebook_shows_what_is_kept_in_it(service: Service, command_address: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran.ipynb"
    done = subprocess.run(
        [sys.executable, execute_notebook.__file__, str(NOTEBOOK), str(ran)],
        cwd=tmp_path,
        env=Runner.at(service, command_address, tmp_path).environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    kept = shown(NOTEBOOK)
    assert shown(ran) == kept
    assert any(kept)
