"""Finds the supervised processes that hang: a signal stopped them, they do not answer, or they do not report
themselves."""

import socket
import threading
import time
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection, HTTPException
from typing import Self
from urllib.parse import urlsplit

import psutil
from sqlalchemy import Connection, select

from warpfold.app.db import DATABASE_LOST, BlockingDatabase
from warpfold.app.metrics.monitoring import somebody_leads
from warpfold.app.tables.jobs import lives, workers
from warpfold.worker.serve.process import Process
from warpfold.worker.silence import Clock, SilenceDetector

_AFTER_S = 20.0
_UNREPORTED_AFTER_S = 60.0  # even on a busy machine a process that starts reports itself much sooner
_ANSWER_WITHIN_S = 2.0


class Reports:
    """Tells from Postgres which processes are alive: a dispatcher while some dispatcher leads, a worker while its lease
    is renewed.

    Every look goes on in a thread of its own. While Postgres does not answer, only that thread waits, and nobody is
    called silent: no process could have reported itself.
    """

    def __init__(self, database_url: str) -> None:
        self._database = BlockingDatabase(database_url, application="warpfold-serve", pool_size=1)
        self._host = socket.gethostname()[:64]
        self._looking: threading.Thread | None = None
        self._silent: Mapping[str, int] = {}

    def silent(self, processes: Sequence[Process]) -> Mapping[str, int]:
        """The names and process ids of the processes that the last look found silent. The call begins the next look."""
        if self._looking is not None and self._looking.is_alive():
            return {}
        silent, self._silent = self._silent, {}
        pids = {process.name: process.pid for process in processes if process.pid is not None}
        self._looking = threading.Thread(target=self._look, args=(pids,), name="reports", daemon=True)
        self._looking.start()
        return silent

    def close(self) -> None:
        """Wait for the look under way, though not for a server that hangs."""
        if self._looking is not None:
            self._looking.join(_ANSWER_WITHIN_S)
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _look(self, pids: Mapping[str, int]) -> None:
        try:
            somebody, slots = self._database.step(_reported, self._host)
        except DATABASE_LOST:
            return
        self._silent = {
            name: pid
            for name, pid in pids.items()
            if (name == "dispatcher" and not somebody)
            or (name.startswith("worker-") and slots.get(name.removeprefix("worker-")) != pid)
        }


def _reported(connection: Connection, host: str) -> tuple[bool, Mapping[str, int]]:
    """Whether a dispatcher leads, and the process ids of this host's workers by their slots."""
    rows = connection.execute(select(workers.c.slot, workers.c.pid).where(workers.c.host == host, lives()))
    return somebody_leads(connection), {row.slot: row.pid for row in rows}


class HangDetector:
    """Call this object often. A process hangs when every look for `after_s` finds it stopped, or deaf; and when every
    look for `unreported_after_s` finds that it does not report itself, as a dispatcher does whose loop does not turn.

    A worker reports itself by a thread of its own, and its slot finds a child that hangs.
    """

    def __init__(
        self,
        api_url: str,
        reports: Reports | None = None,
        after_s: float = _AFTER_S,
        unreported_after_s: float = _UNREPORTED_AFTER_S,
        clock: Clock = time.monotonic,
    ) -> None:
        self._api_url = api_url
        self._reports = reports
        self._after_s = after_s
        self._unreported_after_s = unreported_after_s
        self._clock = clock
        self._every_s = after_s / 10
        self._next = 0.0
        # If this process was stopped itself, it could not see the others meanwhile.
        longest_s = after_s / 5 + _ANSWER_WITHIN_S
        self._mute = SilenceDetector[str](longest_s, clock)
        self._unreported = SilenceDetector[tuple[str, int]](longest_s, clock)

    def find(self, processes: Sequence[Process]) -> list[Process]:
        """The processes that hang now."""
        if self._clock() < self._next:
            return []
        self._next = self._clock() + self._every_s
        self._mute.look({process.name: process.pid for process in processes if self._is_mute(process)})
        silent = {} if self._reports is None else self._reports.silent(processes)
        self._unreported.look(dict.fromkeys(silent.items()))
        mute = self._mute.lasting(self._after_s)
        # A report may be of a process that has been replaced since.
        unreported = self._unreported.lasting(self._unreported_after_s)
        return [process for process in processes if process.name in mute or (process.name, process.pid) in unreported]

    def _is_mute(self, process: Process) -> bool:
        try:
            if process.pid is None or psutil.Process(process.pid).status() == psutil.STATUS_STOPPED:
                return process.pid is not None
        except psutil.NoSuchProcess:
            return False
        return process.name == "api" and self._is_deaf()

    def _is_deaf(self) -> bool:
        """Whether the api takes a request and does not answer. An api that cannot be reached is starting, or has
        ended."""
        address = urlsplit(self._api_url)
        connection = HTTPConnection(address.hostname or "", address.port, timeout=_ANSWER_WITHIN_S)
        try:  # the cheapest request, because it is made every two seconds
            connection.request("GET", "/healthz")
            connection.getresponse().read()
        except TimeoutError:
            return True
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()
        return False
