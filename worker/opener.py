"""How the child of a real slot opens its device. Light, for the parent imports it; the heavy part is `execute`."""

from warpfold.contract.folders import Folders
from warpfold.worker.messages import Work


def open_kernels(slot: str, worker: str, folders: Folders) -> Work:
    """Called in the child. Raises Unavailable if there is no such device."""
    from warpfold.worker.execute import Kernels

    return Kernels(slot, worker, folders)
