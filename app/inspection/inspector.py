"""The process that inspects files: it imports their parsers, and forks a child for each inspection.

A hostile file may crash its parser. So each inspection has a process of its own, with a deadline that the kernel holds
and with limits of memory and of processor time, and it may write nothing. An inspection that crashes disturbs no other.
Forking takes milliseconds, where importing the parsers takes a second. This process itself never opens a file.

`python -m warpfold.app.inspection.inspector DESCRIPTOR PARENT` takes sockets from the socket DESCRIPTOR, one for each
inspection, until its PARENT ends.
"""

import json
import os
import pickle
import resource
import signal
import socket
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from pydantic import TypeAdapter

from warpfold.contract.folders import Folders
from warpfold.contract.sources.inspection import FileSources, inspected
from warpfold.kernels.errors import InvalidInput, Unavailable
from warpfold.kernels.machine.parent_death import end_with

MEMORY_BYTES = 1 << 30
"""Memory that an inspection may take beside that of its imports."""

_PARSERS = ("pyarrow.dataset", "pyarrow.parquet", "pyarrow.csv", "pyarrow.ipc", "h5py", "zarr")
_PAGE = resource.getpagesize()
_SOURCE: TypeAdapter[FileSources] = TypeAdapter(FileSources)


@dataclass(frozen=True, slots=True)
class InspectionRequest:
    """The request of an inspection: a source as JSON, the folders of files, and the seconds that the inspection may
    take."""

    source: bytes
    folders: Folders
    within_s: float


@dataclass(frozen=True, slots=True)
class Refused:
    """The reason for a refusal: a sentence, the field that it is about, and whether a package is missing."""

    message: str
    field: str | None
    unavailable: bool


def main(descriptor: int, parent: int) -> None:
    """Take requests until the parent ends."""
    end_with(parent)
    for module in _PARSERS:
        try:
            import_module(module)
        except ImportError:
            continue  # an inspection that needs it says so
    # The kernel reaps ended children.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    own = os.getpid()
    with socket.socket(fileno=descriptor) as requests:
        while True:
            message, descriptors, _, _ = socket.recv_fds(requests, 1, 1)
            if not message:
                return
            with socket.socket(fileno=descriptors[0]) as connection:
                if os.fork() == 0:
                    requests.close()
                    _inspect(connection, own)


def _inspect(connection: socket.socket, parent: int) -> None:
    """Read an `InspectionRequest`, write a "!" as it begins, and then an answer: the JSON of an Inspection behind a
    "+", or that of a `Refused` behind a "-". Ends the process."""
    code = 1
    try:
        end_with(parent)
        with connection.makefile("rwb") as stream:
            request: InspectionRequest = pickle.loads(stream.read())  # noqa: S301 (our own parent)
            stream.write(b"!")
            stream.flush()
            _limit(request.within_s)
            try:
                inspection = inspected(_SOURCE.validate_json(request.source), request.folders)
                answer = b"+" + inspection.model_dump_json().encode()
            except (InvalidInput, Unavailable) as error:
                field = getattr(error, "field", None)
                answer = b"-" + json.dumps([str(error), field, isinstance(error, Unavailable)]).encode()
            stream.write(answer)
        code = 0
    finally:
        os._exit(code)


def _limit(within_s: float) -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # it ends the process even in the middle of a parser
    signal.setitimer(signal.ITIMER_REAL, within_s)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * _PAGE
    for limit, most in (
        (resource.RLIMIT_AS, taken + MEMORY_BYTES),
        (resource.RLIMIT_CPU, int(within_s) + 1),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (most, most))
    os.nice(5)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
