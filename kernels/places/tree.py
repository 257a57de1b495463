"""Folders of object stores and of web servers: the objects in them by name, the objects that a pattern matches, and the
object or the folder that a URL names."""

import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from threading import Lock

from warpfold.kernels.errors import InvalidInput, KernelError
from warpfold.kernels.places.place import WEB, ObjectMetadata, Target
from warpfold.kernels.places.remote import REQUEST_BYTES, NotThere, RemoteObject, Session
from warpfold.kernels.places.stores import endpoint, folders_in, keys_below
from warpfold.kernels.places.transport import FAULTS, connected

MOST_LISTED = 1_000_000
"""Objects that are looked at for one pattern."""

_MOST_KEPT = 64
_SMALL = 1 << 20

ZARR = ("zarr.json", ".zgroup", ".zarray")
"""Names of objects that say that a folder is a Zarr hierarchy."""

_WILD = re.compile(r"[*?\[]")


class RemoteTree:
    """The objects below a URL by their names, as the files of a folder. Small ones are kept: metadata is read more than
    once."""

    def __init__(self, session: Session, folder: Target) -> None:
        self._session = session
        self._folder = folder
        self._kept: OrderedDict[str, RemoteObject | None] = OrderedDict()
        self._lock = Lock()
        self.fetched = 0
        self.fault: KernelError | None = None

    @property
    def url(self) -> str:
        return self._folder.url

    def metadata(self) -> ObjectMetadata:
        """The record of it in a result."""
        return ObjectMetadata(self.url, None, None, None, self.fetched)

    def size(self, name: str) -> int | None:
        """Bytes of the object `name`; None if there is no such object."""
        remote = self._object(name)
        return None if remote is None else remote.size

    def read(self, name: str, start: int, stop: int | None, most: int) -> bytes | None:
        """Bytes start … stop − 1 of the object, to its end for None; a negative start counts from the end. None if
        there is no such object. Raises InvalidInput where these are more than `most`."""
        remote = self._object(name)
        if remote is None:
            return None
        begin = max(0, remote.size + start) if start < 0 else start
        length = max(0, min(remote.size, remote.size if stop is None else stop) - begin)
        if length > most:
            raise InvalidInput(f"holds {name!r} with {length:,} bytes, and at most {most:,} are read at a time")
        if begin + length <= len(remote.head):
            return remote.head[begin : begin + length]
        out = bytearray(length)
        view = memoryview(out)
        for at in range(0, length, REQUEST_BYTES):
            try:
                remote.read_into(begin + at, view[at : at + REQUEST_BYTES])
            except KernelError as error:
                self.fault = self.fault or error
                raise
        with self._lock:
            self.fetched += length
        return bytes(out)

    def check_names(self) -> None:
        """Do nothing: an object has the name by which it is asked for."""

    def folders(self, name: str = "") -> Iterator[str]:
        """The names of the folders in the folder `name`."""
        if self._folder.place.scheme in WEB:
            raise InvalidInput("lies on a web server, which lists no folders: name the array", "array")
        below = self._folder.below(name) if name.strip("/") else self._folder
        signer = self._session.signer(below.place)
        _check_server(self._session, below)
        yield from folders_in(signer, below.key.rstrip("/"))

    def _object(self, name: str) -> RemoteObject | None:
        name = name.strip("/")
        with self._lock:
            if name in self._kept:
                self._kept.move_to_end(name)
                return self._kept[name]
        try:
            remote = RemoteObject(self._session, self._folder.below(name), _SMALL)
        except NotThere:
            remote = None
        except KernelError as error:
            self.fault = self.fault or error
            raise
        with self._lock:
            if remote is not None:
                self.fetched += len(remote.head)
            if remote is None or remote.size <= _SMALL:
                self._kept[name] = remote
            if len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return remote


def matching(session: Session, pattern: Target, most: int) -> list[str]:
    """The URLs of the objects that match a pattern, and of the Zarr hierarchies, sorted. Raises InvalidInput where none
    matches, or more than `most` do, and Unavailable."""
    parts = pattern.key.split("/")
    literal = next((number for number, part in enumerate(parts) if _WILD.search(part)), len(parts) - 1)
    _check_server(session, pattern)
    names: set[str] = set()
    for number, key in enumerate(keys_below(session.signer(pattern.place), "/".join(parts[:literal]))):
        if number >= MOST_LISTED:
            raise InvalidInput(f"names a folder of more than {MOST_LISTED:,} objects")
        folder, _, last = key.rpartition("/")
        name = folder if folder and last in ZARR else key
        if matches(parts, name.split("/")):
            names.add(name)
        if len(names) > most:
            raise InvalidInput(f"matches more than {most:,} files")
    if not names:
        raise InvalidInput("matches no object")
    top = f"{pattern.place.scheme}://{pattern.place.bucket}/"
    return [top + name for name in sorted(names)]


def matches(pattern: Sequence[str], parts: Sequence[str]) -> bool:
    """Whether the parts of a key match those of a pattern; `**` stands for any folders, and no wildcard for a name that
    begins with a dot. The time is linear in both, whatever a pattern says."""
    states = _with_none(pattern, {0})
    for part in parts:
        after = set()
        for state in states:
            if state == len(pattern) or (part.startswith(".") and _WILD.match(pattern[state])):
                continue
            if pattern[state] == "**":
                after.add(state)
            elif fnmatchcase(part, pattern[state]):
                after.add(state + 1)
        states = _with_none(pattern, after)
    return len(pattern) in states


def _with_none(pattern: Sequence[str], states: set[int]) -> set[int]:
    """The places in a pattern that are reached where `**` stands for no folder."""
    reached = set(states)
    for state in sorted(states):
        at = state
        while at < len(pattern) and pattern[at] == "**":
            at += 1
            reached.add(at)
    return reached


def _check_server(session: Session, target: Target) -> None:
    """Raise InvalidInput where the server of a bucket lies at a private address that it may not have: what lists
    connects to any."""
    scheme, _, authority = endpoint(target.place).partition("://")
    host, _, port = authority.partition("/")[0].rpartition(":")
    if not port.isdecimal():
        host, port = authority.partition("/")[0], "443" if scheme == "https" else "80"
    try:
        connected(
            host.strip("[]"), int(port), session.retry_policy.timeouts.connect_s, private=target.place.private
        ).close()
    except FAULTS:
        return  # the listing reports the fault, after tries of its own


def open_object(target: Target, session: Session, *, folder: bool = False) -> RemoteObject | RemoteTree:
    """The object of a URL; or with `folder`, where no such object exists, the folder of a Zarr hierarchy. Raises
    InvalidInput and Unavailable."""
    try:
        if target.key and not target.key.endswith("/"):
            return RemoteObject(session, target)
        if not folder:
            raise InvalidInput("is a folder, not an object")
    except NotThere:
        if not folder or not _has_metadata(session, target):
            raise
    return RemoteTree(session, target)


def _has_metadata(session: Session, target: Target) -> bool:
    tree = RemoteTree(session, target)
    return any(tree.size(name) is not None for name in ZARR)


@contextmanager
def own_faults(opened: RemoteObject | RemoteTree) -> Iterator[None]:
    """Raise the fault of `opened` in place of the error of the library that read it: the fault says why the object
    could not be read."""
    try:
        yield
    except Exception:
        if opened.fault is not None:
            raise opened.fault from None
        raise
