"""`python execute_notebook.py IN OUT`: run all cells of a notebook in this environment, and keep what they print."""

import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient


def main(source: str, kept: str) -> None:
    """Run the notebook; an error in a cell is an error here."""
    notebook: Any = nbformat.reads(Path(source).read_text(), as_version=4)  # type: ignore[no-untyped-call]
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # when each cell ran
    Path(kept).write_text(nbformat.writes(notebook))  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main(*sys.argv[1:3])
