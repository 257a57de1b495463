"""How the child of a real slot opens its device. Light, for the parent imports it; the heavy part is `execute`."""

from pathlib import Path

from worker.messages import Work


def open_kernels(slot: str, worker: str, data_roots: tuple[Path, ...]) -> Work:
    """Called in the child. Raises Unavailable if there is no such device."""
    from worker.execute import Kernels

    return Kernels(slot, worker, data_roots)
