"""A store through which zarr-python reads the files of a folder: it follows no link, and bounds the bytes that are read
at a time. And an event loop of each thread, in which zarr-python reads."""

import asyncio
import weakref
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from threading import local
from typing import Any

from warpfold.kernels.formats.folder import Tree
from warpfold.kernels.machine.extras import required

MOST_CHUNK_BYTES = 1 << 27
"""The largest chunk, or shard, that is read or decoded."""

MOST_METADATA_BYTES = 1 << 22
"""The largest file of metadata that is read."""

_METADATA = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")


class OwnLoop(local):
    """An event loop of each reading thread, which runs what zarr-python would hand to other threads. zarr-python
    has one loop for all threads, and that loop copies the elements of every chunk."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def read(self, array: Any, block: tuple[slice, ...]) -> Any:
        """The elements of a block, as `array[block]` gives them."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:  # the thread may have a running loop already, as in a notebook, and no thread can run two
            return array[block]
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._loop.set_default_executor(_AtOnce(1))
            weakref.finalize(self, self._loop.close)
        try:
            return self._loop.run_until_complete(array.async_array.getitem(block))
        except BaseException:  # the other chunks of the block would wait in the loop, with their bytes
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            self._loop.run_until_complete(_ended(left))
            raise


async def _ended(tasks: Iterable[asyncio.Task[Any]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)


class _AtOnce(ThreadPoolExecutor):
    """An executor that runs each task before `submit` returns, in the thread that calls it."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(function(*arguments, **named))
        except Exception as error:
            done.set_exception(error)
        return done


def store_of(folder: Tree) -> Any:
    """A read-only store of zarr over a folder; `take_missed` gives the names of chunks that were asked for in vain."""
    return _store_type()(folder)


@cache
def _store_type() -> Any:
    """The class of read-only stores over a Tree. It derives from zarr's, so it exists only where zarr is installed."""
    abc = required("zarr.abc.store", "arrays")

    class FolderStore(abc.Store):  # type: ignore[misc, name-defined, unused-ignore]
        """The files of a folder by their keys."""

        supports_writes = supports_deletes = supports_partial_writes = False
        supports_listing = False

        def __init__(self, folder: Tree) -> None:
            super().__init__(read_only=True)
            self._folder = folder
            self._missed: set[str] = set()
            self.most_bytes = 2 * MOST_CHUNK_BYTES
            """The largest part of a chunk, or of a shard, that is read at a time."""

        def __eq__(self, other: object) -> bool:
            return isinstance(other, FolderStore) and other._folder is self._folder

        __hash__ = object.__hash__

        def with_read_only(self, read_only: bool = False) -> "FolderStore":
            if not read_only:
                raise ValueError("the files of users are only read")
            return self

        async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Any:
            start, stop = 0, None
            if isinstance(byte_range, abc.RangeByteRequest):
                start, stop = byte_range.start, byte_range.end
            elif isinstance(byte_range, abc.OffsetByteRequest):
                start = byte_range.offset
            elif isinstance(byte_range, abc.SuffixByteRequest):
                start = -byte_range.suffix
            most = MOST_METADATA_BYTES if key.rpartition("/")[2] in _METADATA else self.most_bytes
            read = await asyncio.to_thread(self._folder.read, key, start, stop, most)
            kind = prototype or required("zarr.core.buffer", "arrays").default_buffer_prototype()
            if read is None and key.rpartition("/")[2] not in _METADATA:
                self._missed.add(key)
            return None if read is None else kind.buffer.from_bytes(read)

        def take_missed(self) -> set[str]:
            """The names of chunks that were asked for in vain since the last call, which may be by another thread."""
            missed: set[str] = set()
            with suppress(KeyError):  # other threads take them, too
                while self._missed:
                    missed.add(self._missed.pop())
            return missed

        async def get_partial_values(self, prototype: Any, key_ranges: Iterable[Any]) -> list[Any]:
            return [await self.get(key, prototype, byte_range) for key, byte_range in key_ranges]

        async def exists(self, key: str) -> bool:
            return self._folder.size(key) is not None

        async def set(self, key: str, value: Any) -> None:
            raise NotImplementedError

        async def delete(self, key: str) -> None:
            raise NotImplementedError

        async def list(self) -> AsyncIterator[str]:
            raise NotImplementedError
            yield ""

        async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
            raise NotImplementedError
            yield prefix

        async def list_dir(self, prefix: str) -> AsyncIterator[str]:
            raise NotImplementedError
            yield prefix

    return FolderStore
