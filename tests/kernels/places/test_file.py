"""An object as a file: the same bytes as of a file in memory, wherever they are read."""

import io
import random
import threading

import pytest

from tests.support.places.web import WebServer, status
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.places import file as remote_file
from warpfold.kernels.places import remote
from warpfold.kernels.places.file import RemoteFile, again, as_file, is_remote, stamp_of
from warpfold.kernels.places.remote import RemoteObject

CONTENT = random.Random(7).randbytes(50_000)
PAGE = 512


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_file, "PAGE_BYTES", PAGE)
    monkeypatch.setattr(remote_file, "_RUN_PAGES", 4)
    monkeypatch.setattr(remote_file, "MOST_BYTES", 32 * PAGE)


def opened(web: WebServer, content: bytes = CONTENT) -> RemoteFile:
    web.files["x"] = content
    session = web.session()
    file = as_file(RemoteObject(session, session.places.target(web.url("x"), ""), PAGE))
    assert isinstance(file, RemoteFile)
    return file


def test_it_reads_and_seeks_as_a_file_in_memory_does(web: WebServer) -> None:
    remote, here = opened(web), io.BytesIO(CONTENT)
    chance = random.Random(1)
    for _ in range(300):
        if chance.random() < 0.5:
            to = chance.randrange(-100, 100), chance.choice([io.SEEK_CUR, io.SEEK_END])
            to = to if here.tell() > 100 else (chance.randrange(60_000), io.SEEK_SET)
            assert remote.seek(*to) == here.seek(*to)
        size = chance.choice([0, 1, 7, 600, 5000])
        assert remote.read(size) == here.read(size)
        assert remote.tell() == here.tell()
    assert remote.seek(0) == 0
    assert remote.read() == CONTENT


@pytest.mark.parametrize("content", [b"", b"x", CONTENT[:PAGE], CONTENT[: PAGE + 1]])
def test_short_objects_have_ends_too(web: WebServer, content: bytes) -> None:
    file = opened(web, content)
    assert file.read(10_000) == content
    assert file.read(1) == b""
    assert file.seek(0, io.SEEK_END) == len(content)
    with pytest.raises(ValueError, match="is not negative"):
        file.seek(-1)


def test_reading_in_order_asks_ahead_and_for_every_byte_once(web: WebServer) -> None:
    file = opened(web)
    assert b"".join(iter(lambda: file.read(100), b"")) == CONTENT
    asked = [part.removeprefix("bytes=").split("-") for part in web.ranges()]
    assert sum(int(last) - int(first) + 1 for first, last in asked) == len(CONTENT)
    assert len(asked) < 40


def test_a_look_here_and_there_reads_little(web: WebServer) -> None:
    file = opened(web)
    for at in (40_000, 10_000, 30_000, 0):
        file.seek(at)
        assert file.read(8) == CONTENT[at : at + 8]
    assert file.remote.fetched <= 4 * PAGE


def test_memory_is_bounded_whatever_is_read(web: WebServer) -> None:
    file = opened(web)
    for at in range(0, len(CONTENT), 3000):
        file.seek(at)
        file.read(3000)
        assert file._pages._held <= 32 * PAGE + 4 * PAGE
    assert file.seek(0) == 0
    assert file.read() == CONTENT


def test_several_threads_read_one_object_from_places_of_their_own(web: WebServer) -> None:
    first = opened(web)
    results: dict[int, bytes] = {}

    def read(start: int) -> None:
        mine = again(as_file(first.remote)) if start == 0 else first.again()
        mine.seek(start)
        results[start] = mine.read(9000)

    threads = [threading.Thread(target=read, args=(start,)) for start in range(0, 40_000, 5000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {start: CONTENT[start : start + 9000] for start in range(0, 40_000, 5000)}
    assert first.tell() == 0


def test_a_fault_is_raised_where_the_bytes_are_read(web: WebServer) -> None:
    file = opened(web)
    web.behaviours[:] = [status(403)]
    file.seek(20_000)
    with pytest.raises(InvalidInput, match="may not be read"):
        file.read(10)


def test_it_is_told_from_files_of_this_machine(web: WebServer) -> None:
    file = opened(web)
    assert is_remote(as_file(file.remote))
    with open(__file__, "rb") as here:  # noqa: PTH123
        assert not is_remote(here)
        assert len(stamp_of(here)) == 4
    assert stamp_of(as_file(file.remote)) == (web.url("x"), len(CONTENT), file.remote.etag, file.remote.modified)
    assert remote.FIRST_BYTES % 4096 == 0
