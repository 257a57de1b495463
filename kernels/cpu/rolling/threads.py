"""Chunks of values on all cores."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from warpfold.kernels.machine.cores import usable_cores

T = TypeVar("T")


def on_all_cores(make: Callable[[int], T], starts: Sequence[int]) -> Iterator[T]:
    """What `make` gives for each of `starts`, in their order. Whoever stops asking, stops the work."""
    threads = min(usable_cores(), len(starts))
    if threads <= 1:
        yield from map(make, starts)
        return
    with ThreadPoolExecutor(threads, "rolling") as pool:
        try:
            yield from pool.map(make, starts)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
