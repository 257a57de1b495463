"""A look at the files of a job that has lost its child: a process of its own reads them before a child does again.

A file that lies about its own structure can crash the library that reads it, and the child with it. The first time
nobody knows why a child died. In the attempt after that the files are read by this process first: if it dies as well,
the job fails and names the file, and no other child is lost. After any other end of an attempt nothing is read twice.

`python -m warpfold.worker.second_look PARENT` reads the spec and the folders from its input, and writes a byte for each
source that it begins to read.
"""

import os
import pickle
import signal
import subprocess
import sys

from warpfold.contract.folders import Folders
from warpfold.contract.keyed import open_rows
from warpfold.contract.kinds.groupby import GroupbySpec
from warpfold.contract.tasks import TaskSpec, stored_task
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.machine.parent_death import end_with
from warpfold.kernels.sources.sequential import SequentialSource

_CRASHES = frozenset({signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE})
"""The signals by which a library dies of a file. A process that gets SIGKILL was ended by somebody."""


def look_again(spec: TaskSpec, stored: str, folders: Folders) -> None:
    """Read the files of `spec`, whose JSON is `stored`, in a process of its own. Raises InvalidInput naming the source
    of which the process dies; any other fault is left to the job, which says it better."""
    named = _read_from_files(spec)
    if not named:
        return
    looking = subprocess.Popen(
        [sys.executable, "-m", "warpfold.worker.second_look", str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    begun, _ = looking.communicate(pickle.dumps((stored, folders)))
    if -looking.returncode in _CRASHES and begun:
        field, identity = named[min(len(begun), len(named)) - 1]
        died_of = signal.Signals(-looking.returncode).name
        raise InvalidInput(
            f"{identity} ends every process that reads it ({died_of}): it is damaged, or was made to do so", field
        )


def _read_from_files(spec: TaskSpec) -> list[tuple[str, str]]:
    """The fields and the identities of the sources that are read from files, in the order in which they are read."""
    return [(field, named.identity()) for field, named in spec.sources() if named.known_count is None]


def main(parent: int) -> None:
    """Read the sources of the spec that comes by the input."""
    end_with(parent)
    stored, folders = pickle.loads(sys.stdin.buffer.read())  # noqa: S301 (our own parent)
    spec = stored_task(stored)
    begun = sys.stdout.buffer
    if isinstance(spec, GroupbySpec) and spec.source is not None:
        begun.write(b".")
        begun.flush()
        for part in open_rows(spec, folders).begin():
            part.read()
        return
    for _, named in spec.sources():
        if named.known_count is not None:
            continue
        begun.write(b".")
        begun.flush()
        elements = named.open(folders)
        if isinstance(elements, SequentialSource):
            for _ in elements.make():
                pass


if __name__ == "__main__":
    main(int(sys.argv[1]))
