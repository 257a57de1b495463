"""All-reduces through mailboxes run, for compute-sanitizer to watch: `compute-sanitizer --tool racecheck python -m
tests.support.gpu.watched_mailboxes`. A tool may hold a launch until its kernel has ended, so each rank has a thread."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from tests.support.gpu.watching import watch
from warpfold.kernels.cuda.gpu.device import visible_devices
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.scaling.mailboxes import Mailboxes

RANKS = 3


def add_up(gpu: Gpu) -> int:
    """How many all-reduces ran."""
    import cupy

    count = len(visible_devices())
    gpus = [gpu, *(Gpu(rank % count) for rank in range(1, RANKS))]
    mailboxes = Mailboxes(gpus, 0, RANKS)
    mailboxes.open([])
    ran = 0
    with ThreadPoolExecutor(RANKS) as threads:
        for dtype in (np.int64, np.float64):
            for size in (1, 78, 96):
                arrays: list[tuple[Any, Any]] = []
                for rank, on in enumerate(gpus):
                    with on.active():
                        arrays.append((cupy.full(size, rank + 1, dtype), cupy.zeros(size, dtype)))
                        on.stream.synchronize()
                starts = mailboxes.prepared(*zip(*arrays, strict=True))
                list(threads.map(lambda launch: launch(), starts.each))
                for on, (_, received) in zip(gpus, arrays, strict=True):
                    with on.active():
                        assert set(received.get().tolist()) == {RANKS * (RANKS + 1) // 2}
                mailboxes.check()
                ran += RANKS
    return ran


if __name__ == "__main__":
    watch("all-reduces", add_up)
