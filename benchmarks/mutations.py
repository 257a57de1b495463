"""Damaged files, thousands of them: `python -m benchmarks.mutations --mutations 20000`.

Each mutation is one of 30 seed files with some bits, bytes or stretches changed. A child of a slot, which is a process
of its own with a limit, opens it as a job would and adds up its elements, and dies or takes too much memory, or not. A
value that changes without an error is counted: where the format has a checksum of what was changed there may be none.
"""

import argparse
import gzip
import json
import os
import random
import signal
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numcodecs
import numpy as np
import pyarrow as pa
import zarr
from pyarrow import feather, ipc, parquet
from zarr import codecs

from warpfold.contract.folders import Folders
from warpfold.contract.sources.array import ArrayFileSource
from warpfold.contract.sources.table import TableSource
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.cpu.memory import limit_memory
from warpfold.kernels.errors import KernelError
from warpfold.kernels.sources.file_checks import intact

MOST_MIB = 512
_WITHIN_S = 20
_VALUES = np.round(np.random.default_rng(34).standard_normal(3000) * 100, 3)
_TABLE = pa.table({"x": _VALUES, "w": [f"word {number % 7}" for number in range(_VALUES.size)]})
_ROWS = {"op": "!=", "column": "w", "value": "word 3"}


@dataclass(frozen=True)
class Seed:
    """A sound file: how it is written and read, and whether a checksum covers all of its elements."""

    write: Callable[[Path], None]
    source: dict[str, Any]
    checked: bool = False


def _zipped(path: Path, compression: int = zipfile.ZIP_STORED, **how: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        zarr.create_array(folder, data=_VALUES.reshape(60, 50), **how)
        with zipfile.ZipFile(path, "w", compression) as archive:
            for file in sorted(Path(folder).rglob("*")):
                if file.is_file():
                    archive.write(file, str(file.relative_to(folder)))


def _hdf5(path: Path, **how: Any) -> None:
    with h5py.File(path, "w", libver=how.pop("libver", None)) as file:
        file.create_dataset("x", data=_VALUES.reshape(60, 50), **how)


def _arrow(path: Path, begin: Any, **how: Any) -> None:
    with begin(str(path), _TABLE.schema, options=ipc.IpcWriteOptions(**how)) as writer:
        writer.write_table(_TABLE, 700)


def _text(path: Path) -> None:
    path.write_text("x,w\n" + "".join(f"{value},w{value > 0}\n" for value in _VALUES.tolist()))


def _quoted(path: Path) -> None:
    rows = "".join(f'"{value}","w ""{value > 0}"""\n' for value in _VALUES.tolist())
    path.write_text(f'"x","w"\n{rows}')


def _packed_text(path: Path) -> None:
    """Text within a frame of gzip, which has a checksum, or of zstd, which has one here."""
    text = "x,w\n" + "".join(f"{value},w{value > 0}\n" for value in _VALUES.tolist())
    packed = gzip.compress if path.suffix == ".gz" else numcodecs.Zstd(checksum=True).encode
    path.write_bytes(packed(text.encode()))


def _packed_hdf5(path: Path) -> None:
    with h5py.File(path, "w") as file:
        stored = file.create_dataset("x", data=np.round(_VALUES * 50).astype(np.int16).reshape(60, 50), chunks=(9, 11))
        stored.attrs.update(scale_factor=0.02, add_offset=1.5, _FillValue=np.int16(-1))


def _json_lines(path: Path) -> None:
    path.write_text("".join(f'{{"x": {value}, "w": "w{value > 0}"}}\n' for value in _VALUES.tolist()))


def _semicolons(path: Path) -> None:
    rows = "".join(f"{value};w{value > 0}\r\n" for value in _VALUES.tolist())
    path.write_bytes(f"# of a till\r\nx;w\r\n{rows.replace('.', ',')}".encode("utf-16"))


_ARRAY: dict[str, Any] = {"type": "array"}
_COLUMN: dict[str, Any] = {"type": "table", "column": "x"}
_CRC = codecs.Crc32cCodec()
_CHUNKS: dict[str, Any] = {"chunks": (20, 25)}
SEEDS: dict[str, Seed] = {
    "plain.npz": Seed(lambda path: np.savez(path, x=_VALUES), _ARRAY, checked=True),
    "packed.npz": Seed(lambda path: np.savez_compressed(path, x=_VALUES), _ARRAY, checked=True),
    "contiguous.h5": Seed(_hdf5, _ARRAY),
    "gzip.h5": Seed(lambda path: _hdf5(path, chunks=(9, 11), compression="gzip", shuffle=True), _ARRAY),
    "old.h5": Seed(lambda path: _hdf5(path, chunks=(7, 9), compression="lzf", libver="earliest"), _ARRAY),
    "latest.h5": Seed(lambda path: _hdf5(path, chunks=(9, 11), fletcher32=True, libver="latest"), _ARRAY, checked=True),
    "scaled.h5": Seed(lambda path: _hdf5(path, chunks=(9, 11), scaleoffset=3), _ARRAY),
    "two.zip": Seed(lambda path: _zipped(path, zarr_format=2, **_CHUNKS), _ARRAY, checked=True),
    "three.zip": Seed(lambda path: _zipped(path, compressors=[codecs.ZstdCodec(), _CRC], **_CHUNKS), _ARRAY, True),
    "gzip.zip": Seed(lambda path: _zipped(path, compressors=codecs.GzipCodec(), **_CHUNKS), _ARRAY, checked=True),
    "shards.zip": Seed(lambda path: _zipped(path, chunks=(10, 25), shards=(20, 50)), _ARRAY, checked=True),
    "deflated.zip": Seed(lambda path: _zipped(path, zipfile.ZIP_DEFLATED, compressors=None), _ARRAY, checked=True),
    "snappy.parquet": Seed(lambda path: parquet.write_table(_TABLE, path, row_group_size=900), _COLUMN),
    "checked.parquet": Seed(lambda path: parquet.write_table(_TABLE, path, write_page_checksum=True), _COLUMN),
    "zstd.parquet": Seed(
        lambda path: parquet.write_table(_TABLE, path, compression="zstd"), {**_COLUMN, "filter": _ROWS}
    ),
    "delta.parquet": Seed(
        lambda path: parquet.write_table(
            _TABLE, path, use_dictionary=False, column_encoding={"w": "DELTA_BYTE_ARRAY"}, data_page_version="2.0"
        ),
        {**_COLUMN, "filter": _ROWS},
    ),
    "plain.arrow": Seed(lambda path: _arrow(path, ipc.new_file), _COLUMN),
    "zstd.arrow": Seed(lambda path: _arrow(path, ipc.new_file, compression="zstd"), {**_COLUMN, "filter": _ROWS}),
    "lz4.arrows": Seed(lambda path: _arrow(path, ipc.new_stream, compression="lz4"), {**_COLUMN, "filter": _ROWS}),
    "plain.arrows": Seed(lambda path: _arrow(path, ipc.new_stream), _COLUMN),
    "lz4.feather": Seed(lambda path: feather.write_feather(_TABLE, str(path), compression="lz4"), _COLUMN),
    "plain.csv": Seed(_text, {**_COLUMN, "filter": {"op": "==", "column": "w", "value": "wTrue"}}),
    "utf-16.csv": Seed(_semicolons, {**_COLUMN, "filter": {"op": "==", "column": "w", "value": "wTrue"}}),
    "plain.jsonl": Seed(_json_lines, {**_COLUMN, "filter": {"op": "==", "column": "w", "value": "wTrue"}}),
    "quoted.csv": Seed(_quoted, {**_COLUMN, "filter": {"op": "==", "column": "w", "value": 'w "True"'}}),
    "text.csv.gz": Seed(_packed_text, _COLUMN, checked=True),
    "text.csv.zst": Seed(_packed_text, _COLUMN, checked=True),
    "packed.h5": Seed(_packed_hdf5, _ARRAY),
    "plain.npy": Seed(lambda path: np.save(path, _VALUES), _ARRAY),
    "three.npz": Seed(
        lambda path: np.savez_compressed(path, x=_VALUES, y=_VALUES, z=_VALUES), {**_ARRAY, "array": "y"}, True
    ),
}


def mutated(whole: bytes, draw: random.Random) -> bytes:
    """The bytes with a few bits, bytes, or stretches changed, or some of them cut out or repeated."""
    data = bytearray(whole)
    for _ in range(draw.choice((1, 1, 1, 2, 4, 16))):
        at = draw.randrange(len(data))
        match draw.randrange(6):
            case 0 | 1:
                data[at] ^= 1 << draw.randrange(8)
            case 2:
                data[at] = draw.choice((0, 1, 127, 128, 255))
            case 3:
                data[at : at + 8] = draw.choice((b"\xff" * 8, b"\0" * 8, b"\0\0\0\x7f" * 2, draw.randbytes(8)))
            case 4:
                del data[at : at + draw.randrange(1, 64)]
            case _:
                data[at:at] = data[at : at + draw.randrange(1, 64)]
        if not data:
            return b"\0"
    return bytes(data)


def value_of(backend: CpuBackend, folder: Path, name: str, source: dict[str, Any]) -> float:
    spec: Any = ArrayFileSource if source["type"] == "array" else TableSource
    named = spec.model_validate({**source, "path": name})
    elements = named.open(Folders((folder,), folder))
    with intact([(name, elements)]):
        return float(backend.reduce(elements, "sum").value)


def child(folder: Path, names: list[str], seed: int, first: int, count: int) -> None:
    """Read mutations `first` … and write a line of JSON for each, before and behind it. Ends the process."""
    backend = CpuBackend()
    values = {name: value_of(backend, folder, name, SEEDS[name].source) for name in names}
    limit_memory(2 << 30)
    with os.fdopen(3, "w") as out:
        for number in range(first, count):
            name = names[number % len(names)]
            draw = random.Random(f"{seed} {number}")
            data = mutated((folder / name).read_bytes(), draw)
            (folder / f"mutated-{name}").write_bytes(data)
            out.write(f"{number}\n")
            out.flush()
            Path("/proc/self/clear_refs").write_text("5")
            before, began = _resident("VmRSS"), time.monotonic()
            signal.alarm(_WITHIN_S)
            try:
                value = value_of(backend, folder, f"mutated-{name}", SEEDS[name].source)
                outcome = "same" if value == values[name] else "changed"
            except KernelError as error:
                outcome = error.reason
            except MemoryError:
                outcome = "out_of_memory"
            except Exception as error:
                outcome = f"unforeseen: {type(error).__name__}: {str(error)[:100]}"
            signal.alarm(0)
            took = [number, name, outcome, _resident("VmHWM") - before, round(time.monotonic() - began, 2)]
            out.write(json.dumps(took) + "\n")
            out.flush()
    os._exit(0)


def _resident(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(f"{name}:"))) >> 10


def lines_of(folder: Path, names: list[str], seed: int, count: int) -> Iterator[list[Any]]:
    """What became of each mutation; a child that dies is replaced by one that goes on behind it."""
    first = 0
    while first < count:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.dup2(writer, 3)
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                child(folder, names, seed, first, count)
            finally:
                os._exit(1)
        os.close(writer)
        with os.fdopen(reader) as lines:
            for line in lines:
                took = json.loads(line)
                if isinstance(took, list):
                    yield took
                first = took + 1 if isinstance(took, int) else took[0] + 1
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if code:
            name = names[(first - 1) % len(names)]
            kept = folder / f"death-{first - 1}-{name}"
            (folder / f"mutated-{name}").rename(kept)
            yield [first - 1, name, f"death by {signal.Signals(-code).name if code < 0 else code}", 0, 0.0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutations", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=34)
    parser.add_argument("--only", nargs="*", help="names of seed files")
    parser.add_argument("--into", type=Path, help="a JSON file for the figures")
    asked = parser.parse_args()
    names = asked.only or list(SEEDS)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary).resolve()
        for name in names:
            SEEDS[name].write(folder / name)
        outcomes: dict[str, Counter[str]] = {name: Counter() for name in names}
        largest = dict.fromkeys(names, 0)
        slowest = dict.fromkeys(names, 0.0)
        for number, name, outcome, more, took in lines_of(folder, names, asked.seed, asked.mutations):
            outcomes[name][outcome] += 1
            largest[name], slowest[name] = max(largest[name], more), max(slowest[name], took)
            bad = outcome.startswith(("death", "unforeseen")) or more > MOST_MIB
            if bad or (outcome == "changed" and SEEDS[name].checked):
                print(f"mutation {number} of {name}: {outcome}, {more} MiB, {took} s", flush=True)
    rows = [
        {
            "file": name,
            **outcomes[name],
            "most_mib": largest[name],
            "most_s": slowest[name],
            "checked": SEEDS[name].checked,
        }
        for name in names
    ]
    for row in rows:
        print(row)
    if asked.into is not None:
        asked.into.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
