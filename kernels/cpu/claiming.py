"""Folds all elements of a long array on all cores; the threads take pieces in machine code (`claims.py`)."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Protocol, TypeVar

from warpfold.kernels.backend import Progress, Stages
from warpfold.kernels.cores import usable_cores
from warpfold.kernels.cpu.claims import Claims
from warpfold.kernels.cpu.stream import REPORT_S, Folding, Streamed

_SHARE_BYTES = 1 << 21
"""A thread that has fewer bytes to add takes longer to start."""


class ClaimingFold(Folding, Protocol):
    """A fold that takes pieces by itself."""

    def add_claimed(self, claims: Claims, /) -> None: ...


F = TypeVar("F", bound=ClaimingFold)


def stream_claims(claims: Claims, make: Callable[[], F], progress: Progress | None = None) -> Streamed[F]:
    """Fold all elements; `make` gives an empty fold for each thread. The calling thread reports progress, and always at
    the end; an error of `progress` stops the work. Raises InvalidInput where the file cannot be read."""
    began = time.perf_counter()
    threads = max(1, min(usable_cores(), claims.nbytes // _SHARE_BYTES))
    folds = [make() for _ in range(threads)]
    _run(claims, folds, progress)
    claims.check()
    whole = folds[0]
    for other in folds[1:]:
        whole.merge(other)
    if progress is not None:
        progress(claims.count, claims.count)
    wall_ms = (time.perf_counter() - began) * 1e3
    read_s, add_s = claims.seconds()
    load_ms = wall_ms * read_s / (read_s + add_s) if read_s + add_s else 0.0
    stages = Stages(read_s=read_s / threads if claims.in_file else None, reduce_s=add_s / threads)
    return Streamed(whole, load_ms, wall_ms - load_ms, stages)


def _run(claims: Claims, folds: Sequence[F], progress: Progress | None) -> None:
    with ThreadPoolExecutor(len(folds), thread_name_prefix="reduce") as pool:
        running = [pool.submit(fold.add_claimed, claims) for fold in folds]
        try:
            while wait(running, timeout=REPORT_S).not_done:
                if progress is not None:
                    progress(claims.done, claims.count)
        finally:
            claims.stop()  # `progress` raised an error, and leaving the pool waits for the pieces in hand
    for job in running:
        job.result()
