"""How fast a .npy file becomes a dataset, beside the disk and a plain upload: `python -m benchmarks.uploads`.

Starts `warpfold serve --slots cpu` in a temporary folder and uploads a file of random bytes several times, each time
with other bytes. Beside it, in turn, on the same disk: a plain upload (uvicorn and Starlette write and hash what httpx
sends), a copy that is hashed and flushed, and the hash alone. Then the same in a folder that lies in memory, where the
machine has one: there no disk bounds what the api takes in. The same file is also uploaded and summed, by a job after
the upload and by a job beside it (decision 56). Times are the best of the rounds; CPU time is that of client and server
together, without the worker.
"""

import argparse
import hashlib
import multiprocessing
import os
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx
import numpy as np
import psutil
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from benchmarks.chaos.blows import Target
from benchmarks.figures import Figure, measured_service, report
from warpfold.client.api import Client

_PIECE = 1 << 20
_GB = 1e9
_AT_LEAST = 1.0
_RATIO_AT_LEAST = 1.5
_MEMORY = Path("/dev/shm")  # noqa: S108 (the benchmark makes a folder of its own there)
_REMEMBERED_S = 0.25
_NEW_S = 2.1
"""The client does not remember the digest of a file that was changed just now."""


@dataclass(eq=False)
class Stage:
    """The seconds and the CPU seconds that rounds of one stage took."""

    name: str
    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def time(self, work: Callable[[], object], server: psutil.Process | None = None) -> None:
        """Take one round, counting the CPU time of this process and of `server`."""
        before, started = _cpu(server), time.perf_counter()
        work()
        self.seconds.append(time.perf_counter() - started)
        self.cpu.append(_cpu(server) - before)


def _cpu(server: psutil.Process | None) -> float:
    times = [psutil.Process().cpu_times(), *([] if server is None else [server.cpu_times()])]
    return float(sum(each.user + each.system for each in times))


def file_of(path: Path, size: int, seed: int) -> Path:
    """A .npy file of `size` random bytes, in the page cache and on the disk."""
    with path.open("wb") as file:
        np.save(file, np.random.default_rng(seed).integers(0, 1 << 63, size // 8, np.int64))
        file.flush()
        os.fsync(file.fileno())
    return path


def pieces(path: Path) -> Iterator[bytes]:
    """The bytes of a file."""
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece


def plain_server(folder: Path, port: int) -> None:
    """Serve what most services do with an upload: hash and write each piece as it comes, flush, answer the digest."""

    async def put(request: Request) -> PlainTextResponse:
        running = hashlib.sha256()
        with (folder / "plain").open("wb") as file:
            async for piece in request.stream():
                running.update(piece)
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        return PlainTextResponse(running.hexdigest())

    uvicorn.run(Starlette(routes=[Route("/", put, methods=["PUT"])]), port=port, log_level="error")


@contextmanager
def plain_service(folder: Path) -> Iterator[tuple[str, psutil.Process]]:
    """The plain server in a process of its own: its address, and the process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    process = multiprocessing.get_context("spawn").Process(target=plain_server, args=(folder, port))
    process.start()
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/", psutil.Process(process.pid)
    finally:
        process.terminate()
        process.join()


def copied(path: Path, to: Path) -> str:
    """Copy a file with its hash taken on the way, and flush it."""
    running = hashlib.sha256()
    with to.open("wb") as file:
        for piece in pieces(path):
            running.update(piece)
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    return running.hexdigest()


def hashed(path: Path) -> str:
    """The hash alone, of a file in the page cache."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def api_of(data_dir: Path) -> psutil.Process:
    """The api process of the service in `data_dir`."""
    (api,) = Target(data_dir).processes()["api"]
    return api


@dataclass(frozen=True, slots=True)
class Stages:
    """The stages of one folder, and in how many rounds a job came beside its upload."""

    ours: Stage = field(default_factory=lambda: Stage("upload by warpfold.Client"))
    plain: Stage = field(default_factory=lambda: Stage("plain upload: httpx → uvicorn, Starlette"))
    copy: Stage = field(default_factory=lambda: Stage("copied, hashed and flushed by one thread"))
    digest: Stage = field(default_factory=lambda: Stage("SHA-256 alone"))
    again: Stage = field(default_factory=lambda: Stage("the same file again"))
    after: Stage = field(default_factory=lambda: Stage("upload, and its sum by a job after it"))
    beside: Stage = field(default_factory=lambda: Stage("upload, and its sum by a job beside it"))
    came_beside: list[bool] = field(default_factory=list)


def measure(size: int, rounds: int, within: Path) -> list[Figure]:
    """All stages, in turn, `rounds` times, with all files `within` a folder."""
    stages = Stages()
    with (
        measured_service(within) as (service, data_dir),
        tempfile.TemporaryDirectory(prefix="warpfold-bench-", dir=within) as name,
        plain_service(Path(name)) as (address, server),
        httpx.Client(timeout=600, trust_env=False) as http,
        Client(service.url, service.token) as client,
    ):
        api = api_of(data_dir)
        for number in range(rounds):
            path = file_of(Path(name) / "array.npy", size, number)
            digests: list[str] = []
            stages.digest.time(lambda: digests.append(hashed(path)))  # noqa: B023 (called within the round)
            stages.plain.time(lambda: http.put(address, content=pieces(path)).raise_for_status(), server)  # noqa: B023
            stages.copy.time(lambda: copied(path, Path(name) / "copy"))  # noqa: B023
            measure_client(stages, client, api, path, digests[0], ours_first=number % 2 == 0)
    return figures_of(stages, size + 128)


def measure_client(
    stages: Stages, client: Client, api: psutil.Process, path: Path, expected: str, *, ours_first: bool
) -> None:
    """One round of the stages that the client and the api take part in, for a file whose SHA-256 is `expected`."""

    def upload() -> None:
        assert client.upload(path).id == expected

    def reduce_after() -> None:
        source = {"type": "dataset", "id": client.upload(path).id}
        client.submit({"kind": "reduce", "op": "sum", "source": source}).get()

    def reduce_beside() -> None:
        job = client.submit_reduce(path, "sum")
        job.get()
        stages.came_beside.append(job.spec["source"]["type"] == "upload")

    ours, after, beside = stages.ours, stages.after, stages.beside
    works = {ours: upload, after: reduce_after, beside: reduce_beside}
    for stage in (ours, after, beside) if ours_first else (after, beside, ours):
        os.utime(path)  # the client takes the file for a new one
        if stage is ours:
            time.sleep(_NEW_S)
        stage.time(works[stage], api)
        if stage is ours:
            stages.again.time(upload, api)
        client.delete_dataset(expected)


def figures_of(stages: Stages, nbytes: int) -> list[Figure]:
    """The figures of a file of `nbytes`, with their targets."""
    ours, plain, copy = stages.ours, stages.plain, stages.copy
    rates = {stage: nbytes / min(stage.seconds) / _GB for stage in (ours, plain, copy, stages.digest)}
    rows = [
        Figure(
            f"{stage.name}, {nbytes / _GB:.2f} GB",
            f"{rate:.2f} GB/s; {min(stage.cpu) / nbytes * _GB:.2f} s of CPU a GB",
            "",
            True,
        )
        for stage, rate in rates.items()
    ]
    alone_s, again_s = min(ours.seconds), min(stages.again.seconds)
    came = f"the job came beside it in {sum(stages.came_beside)} of {len(stages.came_beside)} rounds"
    ratio, to_disk = min(plain.seconds) / alone_s, min(copy.seconds) / alone_s
    return [
        *rows,
        Figure(stages.after.name, _beside_upload(stages.after, alone_s), "", True),
        Figure(stages.beside.name, f"{_beside_upload(stages.beside, alone_s)}; {came}", "", True),
        Figure(f"{ours.name}", f"{rates[ours]:.2f} GB/s", f"≥ {_AT_LEAST:g} GB/s", rates[ours] >= _AT_LEAST),
        Figure("ratio to the plain upload", f"{ratio:.2f}", f"≥ {_RATIO_AT_LEAST}", ratio >= _RATIO_AT_LEAST),
        Figure("ratio to the copy, hashed and flushed", f"{to_disk:.2f}", "≥ 0.8", to_disk >= 0.8),
        Figure(
            "the same file again, recognised",
            f"{again_s * 1000:.0f} ms",
            f"≤ {_REMEMBERED_S * 1000:.0f} ms",
            again_s <= _REMEMBERED_S,
        ),
    ]


def _beside_upload(stage: Stage, alone_s: float) -> str:
    return f"{min(stage.seconds):.2f} s, {min(stage.seconds) / alone_s:.2f} × the upload alone of {alone_s:.2f} s"


def main() -> int:
    """Measure; 1 if a figure does not reach its target."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.uploads", description=__doc__)
    parser.add_argument("--mib", type=int, default=768, help="size of the file (768)")
    parser.add_argument("--rounds", type=int, default=2, help="how often each stage is measured (2)")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    options = parser.parse_args()
    size = options.mib << 20
    figures = measure(size, options.rounds, Path(tempfile.gettempdir()))
    if _MEMORY.is_dir() and psutil.disk_usage(str(_MEMORY)).free > 6 * size:
        in_memory = measure(size, options.rounds, _MEMORY)
        figures += [replace(figure, name=f"in memory: {figure.name}") for figure in in_memory]
    return report("Uploads", figures, options.out)


if __name__ == "__main__":
    sys.exit(main())
