"""Looks into files for the api: a process beside it does them, a few at a time."""

import asyncio
import json
import os
import pickle
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from warpfold.app.fairness.turns import give_up_turn
from warpfold.app.inspection.inspector import Look, Refused
from warpfold.contract.folders import Folders
from warpfold.contract.sources.inspection import FileSources, Inspection
from warpfold.kernels.errors import InvalidInput, Unavailable

_AT_A_TIME = 4
_OF_ONE_USER = 2
_START_S = 60.0


class TooManyLooks(Exception):
    """The user has too many looks under way."""


class Looks:
    """Has files looked into. The process that does so starts when it is first needed, and again should it die."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self._process: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None
        self._places = asyncio.Semaphore(_AT_A_TIME)
        self._users: Counter[int] = Counter()

    async def look(self, user_id: int, source: FileSources, within_s: float) -> Inspection:
        """Look into the files of `source`. Raises InvalidInput naming the field, Unavailable where a package is
        missing, and TooManyLooks."""
        with self._place(user_id):
            give_up_turn()
            async with self._places:
                return await self._look(Look(source.model_dump_json().encode(), self._folders, within_s))

    def close(self) -> None:
        """End the process."""
        if self._requests is not None:
            self._requests.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._requests = self._process = None

    @contextmanager
    def _place(self, user_id: int) -> Iterator[None]:
        if self._users[user_id] >= _OF_ONE_USER:
            raise TooManyLooks(f"You have {_OF_ONE_USER} looks into files under way: wait for one.")
        self._users[user_id] += 1
        try:
            yield
        finally:
            self._users[user_id] -= 1
            if not self._users[user_id]:
                del self._users[user_id]

    async def _look(self, look: Look) -> Inspection:
        process = self._started()
        answer, took_s = await self._exchanged(look)
        if not answer:  # the process ended before the look began
            if self._process is process:
                self.close()
            self._started()
            answer, took_s = await self._exchanged(look)
        match answer[:2]:
            case b"!+":
                return Inspection.model_validate_json(answer[2:])
            case b"!-":
                refused = Refused(*json.loads(answer[2:]))
                if refused.unavailable:
                    raise Unavailable(refused.message)
                raise InvalidInput(refused.message, refused.field or "source")
            case b"":
                raise Unavailable("The process that looks into files ends as soon as it starts; its log may say why")
        if took_s >= look.within_s:
            raise InvalidInput(f"the look took longer than {look.within_s:g} s, and was ended", "timeout_s")
        raise InvalidInput(
            "the service could not look into the file: it is damaged, or looking into it takes too much memory",
            "source",
        )

    async def _exchanged(self, look: Look) -> tuple[bytes, float]:
        """The answer of the process to `look`, and how long the look took."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs, suppress(OSError):  # the process has ended: no answer will come
            assert self._requests is not None, "it was started"
            socket.send_fds(self._requests, [b"?"], [theirs.fileno()])
        reader, writer = await asyncio.open_connection(sock=ours)
        began, answer = time.monotonic(), b""
        try:
            async with asyncio.timeout(_START_S + look.within_s):
                with suppress(ConnectionError):
                    writer.write(pickle.dumps(look))
                    await writer.drain()
                    writer.write_eof()
                    answer = await reader.read(1)
                    began = time.monotonic()
                    answer += await reader.read()
        except TimeoutError:  # the process is stopped, or a look does not end: a new process serves later looks
            self.close()
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
        return answer, time.monotonic() - began

    def _started(self) -> "subprocess.Popen[bytes]":
        if self._process is None or self._process.poll() is not None or self._requests is None:
            self.close()
            self._requests, theirs = socket.socketpair()
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "warpfold.app.inspection.inspector", str(theirs.fileno()), str(os.getpid())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    # The environment of the api is left out, because it may hold passwords; and libraries start no
                    # threads, because a fork keeps none.
                    env={"PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"},
                )
        return self._process
