"""Run the benchmark scripts of this folder, all or those named: `python -m benchmarks [NAME …]`.

A script is a module with a `main` that takes `--out`; its figures go to `benchmarks/results/NAME.json`.
"""

import argparse
import ast
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent


def scripts() -> dict[str, str]:
    """The scripts by name, with the first line of what each says of itself."""
    found = {}
    for path in sorted(FOLDER.glob("*.py")):
        text = path.read_text()
        tree = ast.parse(text)
        runs = any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in tree.body)
        if runs and path.stem != "__main__" and '"--out"' in text:
            found[path.stem] = (ast.get_docstring(tree) or "").partition("\n")[0]
    return found


def main() -> int:
    """Run them one after the other; the number of those that failed."""
    known = scripts()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="; ".join(f"{k}: {v}" for k, v in known.items()))
    names = parser.parse_args().names or list(known)
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"there is no script {unknown[0]!r}; known: {', '.join(known)}")
    failed = 0
    for name in names:
        print(f"== {name}: {known[name]}", flush=True)
        out = FOLDER / "results" / f"{name}.json"
        out.parent.mkdir(exist_ok=True)
        failed += (
            subprocess.run([sys.executable, "-m", f"benchmarks.{name}", "--out", str(out)], check=False).returncode != 0
        )
    return failed


if __name__ == "__main__":
    sys.exit(main())
