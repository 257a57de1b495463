"""The digest behind a writer: right wherever it stands, and a writer that runs ahead waits, but not for ever."""

import hashlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.waiting import until
from warpfold.app.datasets import digest
from warpfold.app.datasets.digest import FollowingDigest

SIZE = 24 << 20


class Gated:
    """A hash that goes no further until it may."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self._hash = hashlib.sha256()

    def update(self, piece: memoryview) -> None:
        self.opened.wait()
        self._hash.update(piece)

    def hexdigest(self) -> str:
        return self._hash.hexdigest()


@pytest.fixture
def gated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[FollowingDigest, Gated]]:
    gate = Gated()
    with (tmp_path / "a").open("w+b") as file:
        file.truncate(SIZE)
        following = FollowingDigest(file.fileno())
        monkeypatch.setattr(following, "_hash", gate)
        yield following, gate
        gate.opened.set()
        following.close()


def test_a_writer_far_ahead_waits_for_the_digest(
    gated: tuple[FollowingDigest, Gated], monkeypatch: pytest.MonkeyPatch
) -> None:
    following, gate = gated
    monkeypatch.setattr(digest, "_PAUSE_S", 600.0)
    writer = threading.Thread(target=following.advance, args=(SIZE,))
    writer.start()
    until(lambda: following._pausing)
    assert writer.is_alive()
    gate.opened.set()
    writer.join()
    assert following.hexdigest() == hashlib.sha256(bytes(SIZE)).hexdigest()


def test_a_digest_that_takes_long_does_not_stop_the_writer(gated: tuple[FollowingDigest, Gated]) -> None:
    following, gate = gated
    following.advance(SIZE - 1)
    following.advance(SIZE)
    gate.opened.set()
    assert following.hexdigest() == hashlib.sha256(bytes(SIZE)).hexdigest()


def test_a_growing_file_is_flushed_on_its_way_and_whole_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents, step = os.urandom(12_000_001), 1_000_000
    path, flushed = tmp_path / "a", list[int]()
    path.write_bytes(contents)
    monkeypatch.setattr(digest, "_FLUSH_EVERY", 5 * step)
    with path.open("r+b") as file:
        following = FollowingDigest(file.fileno())
        monkeypatch.setattr("os.fdatasync", lambda _: flushed.append(following._end))
        for end in range(step, len(contents), step):
            following.advance(end)
            until(lambda: len(flushed) == end // (5 * step))  # noqa: B023 (called within the round)
        following.advance(len(contents))
        assert following.hexdigest() == hashlib.sha256(contents).hexdigest()
    assert flushed == [5 * step, 10 * step, len(contents)]
