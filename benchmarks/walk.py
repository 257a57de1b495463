"""Prints the functions that one reduction runs and an idle service does not: `python -m benchmarks.walk [--root DIR]`.

Starts `warpfold serve --slots cpu` of a checkout with a recorder in each of its processes, and runs one reduction so
that everything is imported and compiled. Then it notes what the idle service calls, and what is called while one more
reduction of three values is submitted, runs and is answered; the difference is printed, by file, and
under `made` the data classes of which an object was made.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
_READY = "Warpfold ready at "
_IDLE_S = 1.0
_QUIET_S = 4.0
_BODY = {
    "kind": "reduce",
    "op": "sum",
    "source": {"type": "values", "values": [1e8, 1.0, -1e8], "dtype": "float32"},
}


def measured_walk(root: Path) -> dict[str, list[str]]:
    """The functions of each file that ran for one reduction; `root` is a checkout with its `.venv`."""
    with tempfile.TemporaryDirectory(prefix="warpfold-walk-", dir="/tmp") as folder:
        Path(folder).chmod(0o711)  # Postgres may run as another user
        notes = Path(folder) / "notes"
        notes.mkdir()
        with _service(root, Path(folder) / "data", notes) as (url, token):
            _submit(url, token)
            _until_quiet(notes)
            for phase, work in (("idle", None), ("job", _submit)):
                (notes / "phase").write_text(phase, encoding="utf-8")
                time.sleep(_IDLE_S)
                if work is not None:
                    work(url, token)
                _until_quiet(notes)
            return _difference(notes)


@contextmanager
def _service(root: Path, data: Path, notes: Path) -> Iterator[tuple[str, str]]:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(HERE / "walk_recorder"), str(root / "src")]),
        "WALK_FOLDER": str(notes),
        "WALK_ROOT": str(root.resolve()),
        "WARPFOLD_COMPILE_AHEAD": "false",
    }
    python = root / ".venv" / "bin" / "python"
    command = [str(python), "-P", "-m", "warpfold", "serve", "--slots", "cpu", "--data-dir", str(data)]
    with subprocess.Popen([*command, "--port", "18473"], stdout=subprocess.PIPE, text=True, env=environment) as serve:
        try:
            assert serve.stdout is not None
            line = serve.stdout.readline()
            if not line.startswith(_READY):
                raise SystemExit(f"the service did not start: {line}")
            yield line.removeprefix(_READY).strip(), (data / "token").read_text().strip()
        finally:
            serve.send_signal(signal.SIGTERM)
            serve.wait()


def _submit(url: str, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Prefer": "wait=60"}
    request = urllib.request.Request(f"{url}/v1/jobs", json.dumps(_BODY).encode(), headers)  # noqa: S310
    with urllib.request.urlopen(request) as answer:  # noqa: S310
        job = json.load(answer)
    assert job["status"] == "succeeded", job


def _until_quiet(notes: Path) -> None:
    """Until no process has called anything new for some seconds."""
    size, since = -1, time.monotonic()
    while time.monotonic() - since < _QUIET_S:
        now = sum(path.stat().st_size for path in notes.glob("calls-*"))
        if now != size:
            size, since = now, time.monotonic()
        time.sleep(0.1)


def _difference(notes: Path) -> dict[str, list[str]]:
    calls: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for path in notes.glob("calls-*"):
        for line in path.read_text(encoding="utf-8").splitlines():
            phase, file, function = line.split("\t")
            calls[phase].add((file, function))
    walk: dict[str, list[str]] = defaultdict(list)
    for file, function in sorted(calls["job"] - calls["idle"]):
        walk[file].append(function)
    return dict(walk)


def main() -> int:
    """Print the walk."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.walk", description=__doc__)
    parser.add_argument("--root", type=Path, default=HERE.parent, help="the checkout to measure; by default this one")
    walk = measured_walk(parser.parse_args().root)
    for file, functions in walk.items():
        print(f"{file}: {', '.join(functions)}")
    made = walk.pop("made", [])
    print(f"{len(walk)} files, {sum(map(len, walk.values()))} functions, {len(made)} data classes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
