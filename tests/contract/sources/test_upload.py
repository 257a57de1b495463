"""Uploads that are read while they come: nothing is read before it has come, nothing ends before the upload has."""

import io
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.waiting import until
from warpfold.app.datasets.partial import PartialUpload, UploadMetadata
from warpfold.app.datasets.store import Store
from warpfold.contract.folders import Folders
from warpfold.contract.sources import upload as module
from warpfold.contract.sources.upload import UploadSource
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.sources.sequential import SequentialSource, in_order

DATA = np.arange(5000.0)
ID = "ab" * 32


def npy(array: np.ndarray[Any, Any]) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


BODY = npy(DATA)


class Sender:
    """An upload, of which the api has received so much."""

    def __init__(self, store: Store, body: bytes) -> None:
        self._store = store
        self.upload: PartialUpload = store.partial.new(7)
        self.upload.create(UploadMetadata(name="", dtype=None, length=len(body), lives_s=600))
        self._body = body
        with self.upload.path.open("r+b") as file:
            file.truncate(len(body))

    def receive(self, upto: int) -> None:
        with self.upload.writing() as writing:
            writing.file.seek(0)
            writing.file.write(self._body[:upto])
            writing.note(upto, flushed=False)

    def finish(self) -> None:
        self.receive(len(self._body))
        self._store.place(self.upload.path, ID)
        self.upload.finish(ID)


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders((), tmp_path / "datasets")


@pytest.fixture
def sender(folders: Folders) -> Sender:
    return Sender(Store(folders.datasets), BODY)


def opened(folders: Folders, sender: Sender) -> Any:
    return UploadSource(type="upload", id=sender.upload.id).open(folders)


def reading(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


@pytest.fixture
def short_sections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SECTION_BYTES", 8000)


@pytest.mark.usefixtures("short_sections")
def test_what_has_come_is_read_and_the_end_waits_for_the_dataset(folders: Folders, sender: Sender) -> None:
    sender.receive(20_128)
    source = opened(folders, sender)
    assert isinstance(source, SequentialSource)
    assert (source.count, source.shape, source.dtype.name) == (5000, (5000,), "float64")
    seen: list[float] = []

    def read() -> None:
        for part in source.make():
            seen.extend(part)

    thread = reading(read)
    until(lambda: len(seen) == 2000)  # 20,000 bytes of elements are two sections and a half
    sender.receive(len(BODY))
    until(lambda: len(seen) == 5000)
    assert thread.is_alive()
    sender.finish()
    thread.join()
    assert seen == DATA.tolist()


def test_an_upload_that_is_a_dataset_already_is_read_as_that(folders: Folders, sender: Sender) -> None:
    sender.finish()
    assert np.concatenate(list(in_order(opened(folders, sender), 100))).tolist() == DATA.tolist()
    [file] = UploadSource(type="upload", id=sender.upload.id).files(folders)
    assert file.becomes is not None
    assert file.becomes() == ID
    with file.begin() as begun:
        assert begun.read() == BODY


@pytest.mark.parametrize("came", [0, 5, 20_000, len(BODY)])
def test_a_sender_who_dies_fails_the_job_with_that_sentence(
    folders: Folders, sender: Sender, monkeypatch: pytest.MonkeyPatch, came: int
) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 0.05)
    monkeypatch.setattr(module, "_SLOWEST", 1e12)
    sender.receive(came)
    with pytest.raises(InvalidInput, match=r"nothing came for|has not become a dataset") as caught:
        list(in_order(opened(folders, sender), 100))
    assert caught.value.field == "source.id"
    assert sender.upload.id in str(caught.value)
    assert (f"after {came} of {len(BODY)} bytes" in str(caught.value)) == (came < len(BODY))


def test_a_sender_who_trickles_does_not_hold_the_slot(
    folders: Folders, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_WAITING_S", 0.1)
    monkeypatch.setattr(module, "_HANDED_IN_FOR", 1e12)
    over = threading.Event()

    def trickle() -> None:
        for upto in range(len(BODY)):
            if over.wait(0.002):
                return
            sender.receive(upto)

    thread = reading(trickle)
    with pytest.raises(InvalidInput, match=r"comes too slowly: the job waited 0\.1 s for it in all") as caught:
        list(in_order(opened(folders, sender), 100))
    over.set()
    thread.join()
    assert caught.value.field == "source.id"


def test_an_upload_that_is_given_up_fails_the_job_at_once(folders: Folders, sender: Sender) -> None:
    sender.receive(20_000)
    source = opened(folders, sender)
    sender.upload.remove()
    with pytest.raises(InvalidInput, match="it was given up"):
        list(in_order(source, 100))
    with pytest.raises(InvalidInput, match="it was given up"):
        opened(folders, sender)


@pytest.mark.parametrize(
    "array", [np.asfortranarray(DATA.reshape(50, 100)), DATA > 7, DATA.astype(">f8")], ids=["F", "bool", "big-endian"]
)
def test_what_cannot_be_read_in_order_is_opened_once_it_is_whole(folders: Folders, array: Any) -> None:
    sender = Sender(Store(folders.datasets), npy(array))
    sender.receive(len(npy(array)) - 1)
    sources: list[Any] = []
    thread = reading(lambda: sources.append(opened(folders, sender)))
    until(thread.is_alive)
    assert not sources
    sender.finish()
    thread.join()
    assert not isinstance(sources[0], SequentialSource)
    assert sources[0].array.tolist() == array.tolist()


def test_bytes_that_a_crash_of_the_machine_lost_are_waited_for_again(
    folders: Folders, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    sender.receive(len(BODY))
    monkeypatch.setattr("warpfold.contract.upload_notes.boot", lambda: "another")
    monkeypatch.setattr(module, "PATIENCE_S", 0.05)
    with pytest.raises(InvalidInput, match=f"ended after 0 of {len(BODY)} bytes"):
        opened(folders, sender)


def test_a_mark_goes_after_a_while_and_is_no_upload(folders: Folders, sender: Sender) -> None:
    store = Store(folders.datasets)
    sender.finish()
    assert store.partial.of(7) == []
    store.partial.remove_expired()
    assert sender.upload.finished()
    mark = next((folders.datasets / "partial").iterdir())
    half = mark.with_name(f"{mark.name}.new")  # a crash came between its writing and its name
    half.touch()
    store.partial.remove_expired()
    assert half.exists()
    for old in (mark, half):
        os.utime(old, (0, 0))
    store.partial.remove_expired()
    assert not sender.upload.finished()
    assert not half.exists()


@pytest.mark.parametrize("dtype", ["c16", "M8[s]", ">f8"])
def test_what_is_not_read_while_it_comes_is_read_once_it_is_there(folders: Folders, dtype: str) -> None:
    array = np.arange(6).astype(dtype)
    sender = Sender(Store(folders.datasets), npy(array))
    sender.receive(len(npy(array)))
    assert module._Following(folders.datasets, sender.upload.id).head() is None
    sender.finish()
    assert opened(folders, sender).count in (6, None)
