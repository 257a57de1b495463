"""The notebook of a climate array runs, and its exact means are those that are kept in it."""

import ast
import json
from pathlib import Path
from typing import Any

from IPython.lib.pretty import pretty

NOTEBOOK = Path(__file__).parents[2] / "docs" / "examples" / "climate.ipynb"
CELLS = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]


def shown(source: str, names: dict[str, Any]) -> str:
    """What a cell shows: the value of its last line, where that is an expression."""
    body = ast.parse(source).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), str(NOTEBOOK), "exec"), names)  # noqa: S102 - our own page
    if not isinstance(last, ast.Expr):
        return ""
    value = eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names)  # noqa: S307
    return str(pretty(value))  # type: ignore[no-untyped-call]


def test_the_climate_notebook_shows_what_is_kept_in_it() -> None:
    names: dict[str, Any] = {}
    compared = 0
    for cell in CELLS:
        source = "".join(cell["source"])
        made = shown(source, names)
        if "# on this machine" in source:  # how xarray rounds depends on the processor
            continue
        kept = ["".join(output["data"]["text/plain"]) for output in cell["outputs"]]
        assert kept == ([made] if made else [])
        compared += len(kept)
    assert compared > 3


def test_other_chunks_give_other_bits_only_without_exact() -> None:
    names: dict[str, Any] = {}
    for cell in CELLS[:2]:
        shown("".join(cell["source"]), names)
    maps = {
        kind: {
            (array.exact if kind == "exact" else array).mean("time").values.tobytes()
            for array in names["stored"].values()
        }
        for kind in ("exact", "xarray")
    }
    assert (len(maps["exact"]), len(maps["xarray"]) > 1) == (1, True)
