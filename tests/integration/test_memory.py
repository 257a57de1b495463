"""What a job over a large file takes of the host's memory, in a process of its own."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zarr

_SCRIPT = """
import json, sys, threading, time
from pathlib import Path
from uuid import uuid4
from warpfold.contract.folders import Folders
from warpfold.worker.execute import Kernels
from warpfold.app.jobs.attempt import Lease

def taken():  # pages of its own, and those of mapped files
    lines = Path("/proc/self/status").read_text().splitlines()
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(("RssAnon", "RssFile")))

root = Path(sys.argv[1])
kernels = Kernels("cpu", "here:cpu", Folders((root,), root))
kernels.run(Lease(uuid4(), 1, uuid4(), sys.argv[2], 60.0, 0.0), lambda news: None)  # imports what reads the format
before, most, ended = taken(), 0, threading.Event()

def watch():
    global most
    while not ended.is_set():
        most = max(most, taken() - before)
        time.sleep(0.001)

watcher = threading.Thread(target=watch)
watcher.start()
result = kernels.run(Lease(uuid4(), 1, uuid4(), sys.argv[3], 60.0, 0.0), lambda news: None).result
ended.set()
watcher.join()
print(json.dumps({"count": result["count"], "value": result["value"], "bytes": most}))
"""
_ELEMENTS = 1 << 25  # 256 MiB
_MOST_BYTES = 160 << 20


def _reduced(root: Path, small: dict[str, str], large: dict[str, str]) -> dict[str, float]:
    specs = [json.dumps({"kind": "reduce", "op": "max", "source": source}) for source in (small, large)]
    ended = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(root), *specs], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    figures: dict[str, float] = json.loads(ended.stdout)
    return figures


def test_a_row_group_of_a_quarter_of_a_gigabyte_is_not_held_in_memory(data_root: Path) -> None:
    for name, count in (("small", 10), ("large", _ELEMENTS)):
        table = pa.table({"x": np.zeros(count)})
        path = data_root / f"{name}.parquet"
        pq.write_table(table, path, row_group_size=count, compression="none", use_dictionary=False)
    figures = _reduced(data_root, *({"type": "table", "path": f"{name}.parquet"} for name in ("small", "large")))
    assert (figures["count"], figures["value"]) == (_ELEMENTS, 0.0)
    assert figures["bytes"] < _MOST_BYTES


def test_a_sparse_file_of_half_a_gigabyte_is_not_held_in_memory(data_root: Path) -> None:
    np.save(data_root / "small.npy", np.zeros(10))
    np.lib.format.open_memmap(data_root / "large.npy", "w+", np.float64, (2 * _ELEMENTS,)).flush()
    figures = _reduced(data_root, {"type": "path", "path": "small.npy"}, {"type": "path", "path": "large.npy"})
    assert (figures["count"], figures["value"]) == (2 * _ELEMENTS, 0.0)
    assert figures["bytes"] < _MOST_BYTES


def test_large_chunks_of_zarr_are_decoded_few_at_a_time(data_root: Path) -> None:
    chunk = _ELEMENTS // 4  # 64 MiB
    for name, count in (("small", 10), ("large", 2 * _ELEMENTS)):
        array = zarr.create_array(data_root / f"{name}.zarr", shape=(count,), chunks=(chunk,), dtype="f8")
        array[: min(count, chunk)] = 1.0
    for number in range(1, 2 * _ELEMENTS // chunk):
        shutil.copy(data_root / "large.zarr/c/0", data_root / f"large.zarr/c/{number}")
    figures = _reduced(data_root, *({"type": "array", "path": f"{name}.zarr"} for name in ("small", "large")))
    assert (figures["count"], figures["value"]) == (2 * _ELEMENTS, 1.0)
    assert figures["bytes"] < 400 << 20


def test_text_is_not_held_in_memory(data_root: Path) -> None:
    line = f"0.5,{'a' * 4000}\n"
    (data_root / "small.csv").write_text(f"x,y\n{line}")
    with (data_root / "large.csv").open("w") as file:
        file.write("x,y\n")
        for _ in range(64):
            file.write(line * 1000)
    figures = _reduced(
        data_root, *({"type": "table", "path": f"{name}.csv", "column": "x"} for name in ("small", "large"))
    )
    assert (figures["count"], figures["value"]) == (64_000, 0.5)
    assert figures["bytes"] < _MOST_BYTES
