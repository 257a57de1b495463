"""Measures how fast an object reaches the reduction: `python -m benchmarks.places`.

A web server with ranges, in a process of its own on this machine, serves one file from the page cache. It is read in
turns by bare sockets that throw the bytes away (what the server gives: ranges of the same length, as many at a time),
by the sum of a CPU slot, and by the same sum of the file itself. A figure is GB/s of the file in the best of several
runs; a ratio is to the bare sockets in the same run. `--out` writes the figures with their provenance as JSON.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx
import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.provenance import of_host
from warpfold.contract.folders import Folders
from warpfold.contract.sources.path import PathSource
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.driver import Backend
from warpfold.kernels.places.place import Place, Places
from warpfold.kernels.places.remote import IN_FLIGHT, REQUEST_BYTES

ROUNDS = 5
_NAME = "numbers.npy"
SOCKETS, BY_URL, FROM_FILE = "the server's own ranged reads", "warpfold, by URL", "warpfold, the same file"


@dataclass(frozen=True, slots=True)
class Row:
    """The GB/s of one way to read the file; `ratio` is to the bare sockets."""

    reader: str
    bytes: int
    gb_per_s: float
    ratio: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=int, default=1 << 30, help="size of the file")
    parser.add_argument("--folder", type=Path, help="where to write the file; a temporary folder by default")
    parser.add_argument("--out", type=Path, help="also write the figures here, as JSON")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        _serve(arguments.serve)
        return
    load, cpu = os.getloadavg()[0], CpuBackend()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder, server(Path(folder)) as port:
        np.save(Path(folder) / _NAME, np.random.default_rng(1).normal(size=arguments.bytes // 8))
        rows = measure(Path(folder), port, cpu)
    _show(rows)
    if arguments.out:
        made = {**of_host(cpu.device, load), "rows": [asdict(row) for row in rows]}
        arguments.out.write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")


def measure(folder: Path, port: int, cpu: Backend) -> list[Row]:
    """Measure every way to read the file in `folder`, in turns. Raises ValueError where the sums differ."""
    size = (folder / _NAME).stat().st_size
    best: dict[str, float] = {}
    values: dict[str, object] = {}
    named = ways(folder, port, cpu)
    for _ in range(ROUNDS):
        for name, read_file in named.items():
            began = time.perf_counter()
            values[name] = read_file()
            best[name] = min(best.get(name, float("inf")), time.perf_counter() - began)
    if values[BY_URL] != values[FROM_FILE]:
        raise ValueError(f"the sums differ: {values[BY_URL]} by URL, {values[FROM_FILE]} of the file")
    return [Row(name, size, size / taken / 1e9, best[SOCKETS] / taken) for name, taken in best.items()]


def ways(folder: Path, port: int, slot: Backend, name: str = _NAME) -> Mapping[str, Callable[[], object]]:
    """Ways to read the file `name` in `folder`, which a server gives at `port`; `slot` adds up its elements."""
    size = (folder / name).stat().st_size
    root = f"http://127.0.0.1:{port}/"
    places = Folders((folder.resolve(),), folder, Places((Place(root, private=True),)))
    by_url, of_file = (PathSource(type="path", path=path) for path in (root + name, name))
    return {
        SOCKETS: lambda: thrown_away(port, name, size),
        BY_URL: lambda: slot.reduce(by_url.open(places), "sum").value,
        FROM_FILE: lambda: slot.reduce(of_file.open(places), "sum").value,
    }


def thrown_away(port: int, name: str, size: int, headers: Mapping[str, str] = MappingProxyType({})) -> None:
    """Read the whole file in ranges, several at a time, and keep nothing. Each request carries `headers`."""
    own = threading.local()
    more = "".join(f"{header}: {value}\r\n" for header, value in headers.items())

    def read(start: int) -> None:
        if not hasattr(own, "connection"):
            own.connection = socket.create_connection(("127.0.0.1", port), timeout=60)
            own.buffer = bytearray(REQUEST_BYTES + 4096)
        stop = min(start + REQUEST_BYTES, size)
        asked = f"GET /{name} HTTP/1.1\r\nHost: here\r\nRange: bytes={start}-{stop - 1}\r\n{more}\r\n"
        own.connection.sendall(asked.encode())
        view, filled, head = memoryview(own.buffer), 0, -1
        while head < 0 or filled - head < stop - start:
            # The body is received by as few calls as the system allows.
            most, whole = (len(view), 0) if head < 0 else (head + stop - start, socket.MSG_WAITALL)
            received = own.connection.recv_into(view[filled:most], 0, whole)
            if not received:
                raise ConnectionError(f"the server closed a connection after {filled:,} bytes of a range")
            filled += received
            if head < 0:
                head = bytes(view[: min(filled, 4096)]).find(b"\r\n\r\n")
                head += 4 if head >= 0 else 0
        if bytes(view[:8]) == b"HTTP/1.0" or headers.get("Connection") == "close":  # one request a connection
            own.connection.close()
            del own.connection

    with ThreadPoolExecutor(IN_FLIGHT) as threads:
        list(threads.map(read, range(0, size, REQUEST_BYTES)))


@contextmanager
def server(folder: Path) -> Iterator[int]:
    """A web server with ranges, in a process of its own, that has the files in `folder`; its port."""
    command = [sys.executable, "-m", "benchmarks.places", "--serve", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.terminate()
        process.communicate()


_S3 = """
from moto.server import ThreadedMotoServer
import sys
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
server.stop()
"""


@dataclass(frozen=True, slots=True)
class Bucket:
    """An object in moto's S3 server: its place, its URL, and what reads it by bare sockets."""

    place: Place
    url: str
    sockets: Callable[[], object]


@contextmanager
def bucket(content: bytes) -> Iterator[Bucket]:
    """An object of a bucket that a process of its own serves."""
    process = subprocess.Popen(
        [sys.executable, "-c", _S3], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    try:
        port = int(process.stdout.readline())
        secrets = {"access_key_id": "AKIAOFTHEBENCHMARK", "secret_access_key": "none"}
        signed = f"AWS4-HMAC-SHA256 Credential={secrets['access_key_id']}/20261122/us-east-1/s3/aws4_request"
        headers = {"Authorization": signed}
        at = f"http://127.0.0.1:{port}/numbers"
        httpx.put(at, headers=headers).raise_for_status()
        httpx.put(f"{at}/x.npy", headers=headers, content=content, timeout=120).raise_for_status()
        headers["Connection"] = "close"  # moto's server keeps connections, and at times answers nothing more on them
        place = Place("s3://numbers/", endpoint=at.removesuffix("/numbers"), private=True, secrets=secrets)
        yield Bucket(place, "s3://numbers/x.npy", lambda: thrown_away(port, "numbers/x.npy", len(content), headers))
    finally:
        process.terminate()
        process.communicate()


def _serve(folder: Path) -> None:
    """Serve the files of `folder` in ranges, and print the port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 0

        def do_GET(self) -> None:
            with (folder / self.path.strip("/")).open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                start, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
                stop = min(last + 1, size)
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{size}")
                self.send_header("Content-Length", str(stop - start))
                self.send_header("ETag", f'"{size:x}"')
                self.end_headers()
                while start < stop:
                    start += os.sendfile(self.connection.fileno(), file.fileno(), start, stop - start)

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


def _show(rows: list[Row]) -> None:
    table = Table(
        "way", "GB/s", "ratio", title=f"{rows[0].bytes:,} bytes, {IN_FLIGHT} ranges of {REQUEST_BYTES:,} bytes"
    )
    for row in rows:
        table.add_row(row.reader, f"{row.gb_per_s:.2f}", f"{row.ratio:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
