"""Which of the supervised processes hang: those that are stopped, and an api that does not answer."""

import time
from collections.abc import Sequence

import httpx
import psutil

from warpfold.worker.serve.process import Process
from warpfold.worker.silence import Clock, Silence

_AFTER_S = 20.0
_ANSWER_WITHIN_S = 2.0


class Hangs:
    """To be asked often. A process hangs when it has been stopped, or deaf, for `after_s` at every look.

    A dispatcher or a worker that runs and does nothing is found by others: its lead, or its lease, goes to the next.
    """

    def __init__(self, api_url: str, after_s: float = _AFTER_S, clock: Clock = time.monotonic) -> None:
        self._api_url = api_url
        self._after_s = after_s
        self._clock = clock
        self._every_s = after_s / 10
        self._next = 0.0
        # Were we stopped ourselves, we know nothing of the others in that time.
        self._silence = Silence[str](after_s / 5 + _ANSWER_WITHIN_S, clock)

    def find(self, processes: Sequence[Process]) -> list[Process]:
        """Those that hang now."""
        if self._clock() < self._next:
            return []
        self._next = self._clock() + self._every_s
        self._silence.look({process.name: process.pid for process in processes if self._is_mute(process)})
        hanging = self._silence.lasting(self._after_s)
        return [process for process in processes if process.name in hanging]

    def _is_mute(self, process: Process) -> bool:
        try:
            if process.pid is None or psutil.Process(process.pid).status() == psutil.STATUS_STOPPED:
                return process.pid is not None
        except psutil.NoSuchProcess:
            return False
        return process.name == "api" and self._is_deaf()

    def _is_deaf(self) -> bool:
        """Whether it takes a request and does not answer. One that cannot be reached is starting, or has ended."""
        try:
            httpx.get(f"{self._api_url}/healthz", timeout=_ANSWER_WITHIN_S, trust_env=False)
        except httpx.TransportError as error:
            return isinstance(error, httpx.TimeoutException)
        return False
