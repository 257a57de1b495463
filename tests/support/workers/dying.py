"""A real child on the CPU that dies of one method of an accuracy study."""

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warpfold.app.jobs.attempt import Lease, Success
from warpfold.contract.folders import Folders
from warpfold.kernels.accuracy import executors
from warpfold.kernels.accuracy.looped import looped
from warpfold.worker.execute import Kernels
from warpfold.worker.messages import Tell

DEADLY = "kahan"


class Dying:
    """Runs any spec, and is killed where it comes to `DEADLY`."""

    def __init__(self) -> None:
        self._kernels = Kernels("cpu", "here:cpu", Folders((), Path()), cpu_cache_bytes=8 << 20)

    @property
    def device(self) -> Mapping[str, object]:
        return self._kernels.device

    def run(self, lease: Lease, tell: Tell) -> Success:
        vars(executors)[looped.__name__] = _deadly  # in this process alone
        return self._kernels.run(lease, tell)


def dying() -> Dying:
    return Dying()


def _deadly(method: str, *operands: Any) -> float:
    if method == DEADLY:
        os.kill(os.getpid(), signal.SIGKILL)
    return looped(method, *operands)
