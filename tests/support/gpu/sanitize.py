"""compute-sanitizer over every kernel of ours: `python -m tests.support.gpu.sanitize [--out FILE] [STRATEGY …]`.

Runs each `watched*.py` of this folder under each tool: memcheck (addresses), racecheck (shared memory), initcheck
(memory that is read before it was written), synccheck (barriers). With names of strategies only `watched.py` runs,
which takes them. The summary of each run is printed; `--out` writes them to a file, with the machine and versions that
they are of.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from warpfold.kernels.cuda.gpu.device import describe
from warpfold.kernels.cuda.gpu.launch import Gpu

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
_FOUND = 9  # exit code
_NOT_OURS = "kernel_substring=cupy_"
"""CuPy's own kernels, of which `nonzero` has races that do no harm."""
_ROOT = Path(__file__).resolve().parents[3]
BY_STRATEGY = "watched"
WATCHED = tuple(sorted(path.stem for path in Path(__file__).parent.glob("watched*.py")))
"""The modules that run kernels to be watched."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a tool said of a module: its last summary line, and what ran under it. `log` is all of its output."""

    tool: str
    module: str
    clean: bool
    summary: str
    ran: str
    seconds: float
    log: str


def watch(tool: str, module: str, strategies: list[str]) -> Verdict:
    """Run all kernels of a module, or its strategies that are named, under one tool."""
    command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", str(_FOUND), "--kernel-name-exclude", _NOT_OURS]
    began = time.monotonic()
    done = subprocess.run(
        [*command, sys.executable, "-m", f"tests.support.gpu.{module}", *strategies],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    summary = re.findall(r"^=+ ((?:\w+ )?SUMMARY:.*)$", done.stdout, re.MULTILINE)
    ran = re.findall(r"^\d+ reductions .*$", done.stdout, re.MULTILINE)
    return Verdict(
        tool,
        module,
        done.returncode == 0 and bool(summary),
        summary[-1] if summary else f"no summary, exit code {done.returncode}",
        ran[-1] if ran else "not to its end",
        round(time.monotonic() - began, 1),
        done.stdout + done.stderr,
    )


def sanitizer_version() -> str:
    printed = subprocess.run(["compute-sanitizer", "--version"], capture_output=True, text=True, check=True).stdout
    match = re.search(r"Version (\S+)", printed)
    return match[1] if match else printed.strip()


def write(path: Path, verdicts: list[Verdict]) -> None:
    """The verdicts without their logs."""
    gpu = Gpu(0)
    device = describe(gpu)
    gpu.close()
    commit = subprocess.run(["git", "-C", str(_ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    text = {
        "provenance": {
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "device": device.name,
            "versions": {**dict(device.versions), "compute-sanitizer": sanitizer_version()},
            "commit": commit.stdout.strip() or None,
        },
        "tools": [{name: value for name, value in asdict(verdict).items() if name != "log"} for verdict in verdicts],
    }
    path.write_text(json.dumps(text, indent=1) + "\n", encoding="utf-8")


def main() -> int:
    """0 if every tool found nothing, 2 where there is no compute-sanitizer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("strategies", nargs="*", help="which; by default all, the puzzles and the benchmark's kernels")
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=TOOLS)
    parser.add_argument("--out", type=Path, help="also write the summaries here, as JSON")
    arguments = parser.parse_args()
    if shutil.which("compute-sanitizer") is None:
        print("there is no compute-sanitizer on PATH; it comes with the CUDA toolkit", file=sys.stderr)
        return 2
    modules = (BY_STRATEGY,) if arguments.strategies else WATCHED
    runs = [(tool, module, arguments.strategies) for tool in arguments.tools for module in modules]
    with ThreadPoolExecutor(len(runs)) as pool:  # each is bound by its one processor, not by the GPU
        verdicts = list(pool.map(lambda run: watch(*run), runs))
    for verdict in verdicts:
        print(f"{verdict.tool} of {verdict.module}: {verdict.summary}; {verdict.ran} in {verdict.seconds} s")
        if not verdict.clean:
            print(verdict.log)
    if arguments.out:
        write(arguments.out, verdicts)
    return int(not all(verdict.clean for verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main())
