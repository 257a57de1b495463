"""Inspects files for the api: another process does that, a few files at a time."""

import asyncio
import json
import os
import pickle
import socket
import subprocess
import sys
import time
from contextlib import suppress

from warpfold.app.fairness.places import NoPlace, Places
from warpfold.app.fairness.turns import give_up_turn
from warpfold.app.inspection.inspector import InspectionRequest, Refused
from warpfold.contract.folders import Folders
from warpfold.contract.sources.inspection import FileSources, Inspection
from warpfold.kernels.errors import InvalidInput, Unavailable

_AT_A_TIME = 4
_OF_ONE_USER = 2
_START_S = 60.0


class TooManyInspections(Exception):
    """The user has too many inspections under way."""


class Inspections:
    """Has files inspected. The process that inspects them starts when it is first needed, and again should it die."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self._process: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None
        self._turns = asyncio.Semaphore(_AT_A_TIME)
        self._places = Places(_OF_ONE_USER)

    async def inspect(self, user_id: int, source: FileSources, within_s: float) -> Inspection:
        """Inspect the files of `source`. Raises InvalidInput naming the field, Unavailable where a package is
        missing, and TooManyInspections."""
        try:
            with self._places.taken(user_id):
                give_up_turn()
                async with self._turns:
                    return await self._inspect(
                        InspectionRequest(source.model_dump_json().encode(), self._folders, within_s)
                    )
        except NoPlace:
            raise TooManyInspections(
                f"You have {_OF_ONE_USER} inspections under way: wait until one has ended."
            ) from None

    def close(self) -> None:
        """End the process."""
        if self._requests is not None:
            self._requests.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._requests = self._process = None

    async def _inspect(self, request: InspectionRequest) -> Inspection:
        process = self._started()
        answer, took_s = await self._exchanged(request)
        if not answer:  # the process ended before the inspection began
            if self._process is process:
                self.close()
            self._started()
            answer, took_s = await self._exchanged(request)
        match answer[:2]:
            case b"!+":
                return Inspection.model_validate_json(answer[2:])
            case b"!-":
                refused = Refused(*json.loads(answer[2:]))
                if refused.unavailable:
                    raise Unavailable(refused.message)
                raise InvalidInput(refused.message, refused.field or "source")
            case b"":
                raise Unavailable("The process that inspects files ends as soon as it starts; its log may say why")
        if took_s >= request.within_s:
            raise InvalidInput(f"the inspection took longer than {request.within_s:g} s, and was ended", "timeout_s")
        raise InvalidInput(
            "the service could not inspect the file: it is damaged, or an inspection takes too much memory",
            "source",
        )

    async def _exchanged(self, request: InspectionRequest) -> tuple[bytes, float]:
        """The answer of the process to `request`, and how long the inspection took."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs, suppress(OSError):  # the process has ended: no answer will come
            assert self._requests is not None, "it was started"
            socket.send_fds(self._requests, [b"?"], [theirs.fileno()])
        reader, writer = await asyncio.open_connection(sock=ours)
        began, answer = time.monotonic(), b""
        try:
            async with asyncio.timeout(_START_S + request.within_s):
                with suppress(ConnectionError):
                    writer.write(pickle.dumps(request))
                    await writer.drain()
                    writer.write_eof()
                    answer = await reader.read(1)
                    began = time.monotonic()
                    answer += await reader.read()
        except TimeoutError:  # the process is stopped, or an inspection does not end: a new process serves later ones
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
                    # threads, because a fork keeps no threads.
                    env={"PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"},
                )
        return self._process
