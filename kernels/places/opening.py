"""Opens what a URL names: an object, or a folder of objects."""

from collections.abc import Iterator
from contextlib import contextmanager

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.places.place import Target
from warpfold.kernels.places.remote import NotThere, RemoteObject, Session
from warpfold.kernels.places.tree import ZARR, RemoteTree


def open_object(target: Target, session: Session, *, folder: bool = False) -> RemoteObject | RemoteTree:
    """The object of a URL; or with `folder`, where there is none, the folder of a Zarr hierarchy. Raises InvalidInput
    and Unavailable."""
    try:
        if target.key and not target.key.endswith("/"):
            return RemoteObject(session, target)
        if not folder:
            raise InvalidInput("is a folder, and no object")
    except NotThere:
        if not folder or not _has_metadata(session, target):
            raise
    return RemoteTree(session, target)


def _has_metadata(session: Session, target: Target) -> bool:
    tree = RemoteTree(session, target)
    return any(tree.size(name) is not None for name in ZARR)


@contextmanager
def own_faults(opened: RemoteObject | RemoteTree) -> Iterator[None]:
    """Tell why an object could not be read in our words, where a library that read it has others."""
    try:
        yield
    except Exception:
        if opened.fault is not None:
            raise opened.fault from None
        raise
