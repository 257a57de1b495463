"""Lock files that divide this machine among its slots. Each slot has one, held for the worker's life, and each GPU has
two, held for the time of a job.

A slot of one GPU and a gang of several want the same devices. Each GPU has a *turnstile* beside its lock. A slot or
gang passes all turnstiles of its GPUs in index order, takes all their locks in index order, and leaves the turnstiles.
One order for all means no deadlock. While a gang waits for a GPU to become free it stands in the turnstile, so the slot
cannot take its next job before it; and while the slot waits for the gang's end, the gang cannot come back before it.
Nobody starves (as in the no-starve readers-writers of Downey, The Little Book of Semaphores, 4.2.5).

The kernel releases these locks with the process that held them, however it ended.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from warpfold.contract.needs import GANG
from warpfold.worker.stop import WaitAbandoned

_LOOK_EVERY_S = 0.02
_FOREVER_S = 1e9  # `give_up` ends the wait


class SlotTaken(Exception):
    """Another worker serves the slot."""


@contextmanager
def slot_lock(directory: Path, slot: str) -> Iterator[None]:
    """Within the block, be the only worker of `slot` on this machine. Raises SlotTaken if another worker serves it."""
    path = directory / f"slot-{_file_name(slot)}.lock"
    try:
        with _lock(path).acquire(blocking=False):
            yield
    except Timeout:
        raise SlotTaken(f"another worker already serves slot {slot}: it holds {path}") from None


class GpuTurn:
    """The right to use some GPUs of this machine, taken for one job at a time."""

    def __init__(self, directory: Path, gpus: Sequence[int]) -> None:
        indices = sorted(set(gpus))
        self._turnstiles = [_lock(directory / f"gpu-{index}.next.lock") for index in indices]
        self._gpus = [_lock(directory / f"gpu-{index}.lock") for index in indices]

    @property
    def is_shared(self) -> bool:
        """Whether other slots use these GPUs, too, so that a job has to wait for its turn."""
        return bool(self._gpus)

    @contextmanager
    def hold(self, give_up: Callable[[], bool]) -> Iterator[None]:
        """Wait until no other slot uses any of the GPUs, and hold them all.

        `give_up` is called every 20 ms while waiting; when it returns True, WaitAbandoned is raised.
        """
        with ExitStack() as held:
            try:
                with ExitStack() as passing:
                    for turnstile in self._turnstiles:
                        passing.enter_context(turnstile.acquire(poll_interval=_LOOK_EVERY_S, cancel_check=give_up))
                    for gpu in self._gpus:
                        held.enter_context(gpu.acquire(poll_interval=_LOOK_EVERY_S, cancel_check=give_up))
            except Timeout:
                raise WaitAbandoned from None
            yield


def gpus_of(slot: str) -> tuple[int, ...]:
    """Indices of the GPUs that a slot uses: "cuda:1" → (1,), "gang" → all of them, "cpu" → ()."""
    if slot == GANG:
        return tuple(range(gpu_count()))
    backend, _, index = slot.partition(":")
    return (int(index),) if backend == "cuda" else ()


def gpu_count() -> int:
    """How many GPUs CUDA shows this process under CUDA_VISIBLE_DEVICES; 0 where none works."""
    # The import is here, because the parent of a slot stays small.
    from warpfold.kernels.cuda.gpu.device import visible_devices
    from warpfold.kernels.errors import CudaError

    try:
        return len(visible_devices())
    except CudaError:
        return 0


def _lock(path: Path) -> FileLock:
    path.parent.mkdir(parents=True, exist_ok=True)
    # A file system without flock must be an error: a marker file would outlive a killed process.
    return FileLock(path, timeout=_FOREVER_S, thread_local=False, fallback_to_soft=False)


def _file_name(slot: str) -> str:
    return slot.replace(":", "-")
