"""`warpfold` as a command that begins in hundredths of a second: forks of a process that has imported the client with
all of its commands.

An interpreter of its own imports for half a second and more, and the pages have more than a hundred commands. What a
fork runs is the same: `python -m warpfold.client` with the files, the folder and the environment of its caller
(`ask.py`). How the interpreter starts the command line is tested in `tests/client/test_cli.py`.
"""

import marshal
import os
import pkgutil
import runpy
import signal
import socket
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from tests.support.servers import folder
from tests.support.waiting import until
from tests.support.warm import fork
from warpfold.client import cli

ASK = Path(__file__).parent / "ask.py"


@contextmanager
def command_server() -> Iterator[Path]:
    """The address of a process that runs commands, until the end of the block."""
    with folder() as root:
        address, log = root / "commands", root / "log"
        server = fork((__name__, str(address)), os.environ, log)
        try:
            until(lambda: address.exists() or server.poll() is not None, 60, describe=log.read_text)
            yield address
        finally:
            server.terminate()
            server.wait()


def main(address: str) -> None:
    """Run commands, each in a process of its own, until this process is killed."""
    for module in pkgutil.iter_modules(cli.__path__, f"{cli.__name__}."):  # the command line imports them when called
        import_module(module.name)
    for name in ("numba", "pyarrow", "warpfold.contract.terminal"):
        import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that answer
    listener = socket.socket(socket.AF_UNIX)
    bound = f"{address}.bound"
    listener.bind(bound)
    listener.listen(64)
    Path(bound).rename(address)  # there once it listens
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            _answer(connection)
            os._exit(0)
        connection.close()


def _answer(connection: socket.socket) -> None:
    """Run one command in a child, and say how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head, files, _, _ = socket.recv_fds(connection, 8, 3)
    request = b""
    while len(request) < int.from_bytes(head):
        request += connection.recv(1 << 16)
    here, environment, words = marshal.loads(request)  # noqa: S302 (of ask.py)
    child = os.fork()
    if child == 0:
        connection.close()
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        os.chdir(here)
        os.environ.clear()
        os.environ.update(environment)
        time.tzset()
        os._exit(_run(words))
    for file in files:
        os.close(file)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    connection.sendall((code if code >= 0 else 128 - code).to_bytes(4))


def _run(words: Sequence[str]) -> int:
    """What `python -m warpfold.client words…` does; the exit code that the interpreter would have."""
    sys.argv = ["warpfold", *words]
    sys.stdin = os.fdopen(0, closefd=False)  # multiprocessing has put another in its place
    code: object = None
    try:
        runpy.run_module("warpfold.client", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
        code = 1
    if not isinstance(code, int | None):
        print(code, file=sys.stderr)
        code = 1
    for stream in (sys.stdout, sys.stderr):
        if not stream.closed:
            stream.flush()
    return code or 0


if __name__ == "__main__":
    main(sys.argv[1])
