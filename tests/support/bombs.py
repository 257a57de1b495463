"""Files of a few kilobytes that become a gibibyte or more where a decoder believes them."""

import gzip
import json
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import ipc

MIB = 1 << 20
BECOMES = 1 << 30
"""About what a file becomes."""


@dataclass(frozen=True)
class Bomb:
    """A file that `write` writes, the source of the job that reads it, and words of the error that refuses it; without
    words the job succeeds."""

    write: Callable[[Path], None]
    source: dict[str, Any]
    refused: str | None


def deflated_zeros(count: int) -> bytes:
    """So many zeros, a multiple of a mebibyte, packed by zlib: all mebibytes are packed alike."""
    packer = zlib.compressobj(9)
    head = packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH)
    piece = packer.compress(bytes(MIB)) + packer.flush(zlib.Z_FULL_FLUSH)
    end = b"\x01\x00\x00\xff\xff" + struct.pack(">I", count % 65521 << 16 | 1)
    return head + piece * (count // MIB) + end


def gzipped_zeros(count: int) -> bytes:
    return gzip.compress(bytes(MIB)) * (count // MIB)


def _zarr(chunk: bytes, compressor: dict[str, Any], filters: list[Any] | None) -> Callable[[Path], None]:
    described = {"zarr_format": 2, "shape": [1024], "chunks": [1024], "dtype": "<f8", "fill_value": 0.0, "order": "C"}

    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(".zarray", json.dumps({**described, "compressor": compressor, "filters": filters}))
            archive.writestr("0", chunk)

    return write


def _hdf5(chunk: bytes, times: int) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        created = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        created.set_chunk((1024,))
        for _ in range(times):
            created.set_deflate(9)
        with h5py.File(path, "w") as file:
            space = h5py.h5s.create_simple((1024,))
            dataset = h5py.h5d.create(file.id, b"x", h5py.h5t.NATIVE_DOUBLE, space, dcpl=created)
            dataset.write_direct_chunk((0,), chunk)

    return write


def _stream(path: Path) -> None:
    batch = pa.record_batch({"x": pa.array(np.zeros(BECOMES // 8))})
    with ipc.new_stream(str(path), batch.schema, options=ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(batch)


def _parquet(path: Path) -> None:
    words = pa.DictionaryArray.from_arrays(np.zeros(4000, np.int32), pa.array(["w" * (MIB // 2)]))
    pq.write_table(pa.table({"x": np.ones(4000), "w": words}), path, compression="gzip", write_statistics=False)


def _csv(path: Path) -> None:
    path.write_text(",".join(f"c{number}" for number in range(200_000)) + "\n" + ",".join(["1"] * 200_000) + "\n")


def _nested(path: Path) -> None:
    path.write_text('{"x": 1}\n{"y": ' + "[" * 1_000_000 + "]" * 1_000_000 + "}\n")


_GZIP: dict[str, Any] = {"id": "gzip", "level": 9}
_ARRAY: dict[str, Any] = {"type": "array"}
_TABLE: dict[str, Any] = {"type": "table", "column": "x"}
BOMBS = {
    "gzip.zip": Bomb(_zarr(gzipped_zeros(BECOMES), _GZIP, None), _ARRAY, "at most 91,136 are read"),
    "twice.zip": Bomb(_zarr(gzip.compress(gzipped_zeros(BECOMES)), _GZIP, [_GZIP]), _ARRAY, "are declared"),
    "gzip.h5": Bomb(_hdf5(deflated_zeros(BECOMES), 1), _ARRAY, "packed bytes"),
    "twice.h5": Bomb(_hdf5(zlib.compress(deflated_zeros(BECOMES)), 2), _ARRAY, "packed more than once"),
    "zstd.arrows": Bomb(_stream, _TABLE, "compressed record batch that becomes 1,073,741,824 bytes"),
    "words.parquet": Bomb(_parquet, {**_TABLE, "filter": {"column": "w", "op": "!=", "value": "v"}}, None),
    "nested.jsonl": Bomb(_nested, _TABLE, "nested too deeply"),
    "columns.csv": Bomb(_csv, {**_TABLE, "column": "c7"}, "has 200,000 columns"),
}
