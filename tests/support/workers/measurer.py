"""Children that measure points, and die of one of them."""

import json
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.support.measurements import replace
from warpfold.app.jobs.attempt import Lease, Success
from warpfold.contract.measurement import Measurement
from warpfold.kernels.errors import CudaError
from warpfold.worker.messages import Measured, PointBegun, Progress, Tell

POINT = Measurement(
    kind="benchmark",
    op="sum",
    dtype="float32",
    strategy="",
    backend="cuda",
    device="a GPU",
    n=10,
    bytes=40,
    samples=20,
    kernel_ms=0.1,
    cache="hot",
)


@dataclass(frozen=True)
class Measurer:
    """Measures the strategies that the spec lists; one is called "kill", "exit", "cuda", "bug", "forever" or "always"
    for what it does.

    "always" does not even begin: the child dies of looking at it.
    """

    device: Mapping[str, object] = field(default_factory=dict)

    def run(self, lease: Lease, tell: Tell) -> Success:
        rows = list(lease.done)
        known = {row.strategy for row in rows}
        for name in json.loads(lease.spec)["strategies"]:
            if name in known:
                continue
            if name == "always":
                os._exit(9)
            point = replace(POINT, strategy=name)
            tell(PointBegun(replace(point, outcome="failed", kernel_ms=None)))
            if name == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if name == "exit":
                os._exit(3)
            if name == "bug":
                raise RuntimeError("secret detail")
            if name == "forever":
                time.sleep(0.2)  # progress is told so often
                tell(Progress(len(rows), len(rows) + 1, "points"))
                time.sleep(60)
            rows.append(replace(point, outcome="failed", kernel_ms=None, reason="bad") if name == "cuda" else point)
            tell(Measured(rows[-1]))
            if name == "cuda":
                raise CudaError("CUDA_ERROR_ILLEGAL_ADDRESS")
        return Success({"pid": os.getpid()}, tuple(rows))


def measurer() -> Measurer:
    return Measurer()
