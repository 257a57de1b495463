"""Runs the scripts that make the tables of the docs, all or those named: `python -m benchmarks [NAME …]`.

The figures of each go to `benchmarks/results/NAME.json`. A script that needs a GPU is left out on a machine without
one."""

import argparse
import ast
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
ON_A_GPU = ("strategies", "exact_cuda", "feed", "profiles", "scaling")
SCRIPTS = (
    *ON_A_GPU,
    "exact_cpu",
    "accuracy",
    "service",
    "latency",
    "recovery",
    "idle",
    "uploads",
    "drain",
    "depth",
    "batches",
    "dashboard",
)
_NOT_HERE = 2
"""The exit code of a script that cannot measure, because the machine has no GPU."""


def summary(name: str) -> str:
    """The first line of a script's docstring. The script is not imported, for it may need packages that are missing."""
    source = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]


def main() -> int:
    """Run the scripts one after the other, and return how many failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(SCRIPTS)}; by default all")
    names = parser.parse_args().names or SCRIPTS
    unknown = [name for name in names if name not in SCRIPTS]
    if unknown:
        parser.error(f"there is no script {unknown[0]!r}; known: {', '.join(SCRIPTS)}")
    failed = 0
    (FOLDER / "results").mkdir(exist_ok=True)
    for name in names:
        print(f"== {name}: {summary(name)}", flush=True)
        out = FOLDER / "results" / f"{name}.json"
        command = [sys.executable, "-m", f"benchmarks.{name}", "--out", str(out)]
        failed += subprocess.run(command, check=False).returncode not in (0, _NOT_HERE)
    return failed


if __name__ == "__main__":
    sys.exit(main())
