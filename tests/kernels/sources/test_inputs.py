"""The files of a reduction: how they were, whether they stayed so, and their hashes."""

import hashlib
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO

import pytest

from tests.support.places.web import folders_of, web_server
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.places.remote import RemoteObject, Session
from warpfold.kernels.sources.inputs import Inputs, LocalFile, fingerprint_of, hash_of_object

CONTENT = os.urandom(3_000_001)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def begin(path: Path) -> BinaryIO:
    return path.open("rb")


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., LocalFile]:
    def make(name: str = "x", content: bytes = CONTENT, digest: str | None = None) -> LocalFile:
        (tmp_path / name).write_bytes(content)
        return LocalFile(name, partial(begin, tmp_path / name), digest)

    return make


Make = Callable[..., LocalFile]


def test_a_file_is_named_with_its_size_its_time_and_the_hash_that_was_asked_for(file: Make, tmp_path: Path) -> None:
    wanted = file()
    os.utime(tmp_path / "x", (1e9, 1e9))
    with Inputs([wanted], fingerprint=True, most=1) as inputs:
        [metadata] = inputs.metadata()
    assert (metadata.name, metadata.size, metadata.modified, metadata.sha256) == (
        "x",
        len(CONTENT),
        1e9,
        sha256(CONTENT),
    )
    with Inputs([wanted], fingerprint=False, most=1) as inputs:
        assert inputs.metadata()[0].sha256 is None


def test_a_file_that_is_named_after_its_hash_is_not_read(file: Make) -> None:
    with Inputs([file(digest="0" * 64)], fingerprint=True, most=1) as inputs:
        [metadata] = inputs.metadata()
    assert (metadata.sha256, metadata.modified) == ("0" * 64, None)


def test_of_many_files_some_are_looked_at_and_all_where_they_are_hashed(file: Make) -> None:
    files = [file(str(number), bytes([number]) * 5) for number in range(9)]
    with Inputs(files, fingerprint=False, most=4) as inputs:
        assert (inputs.count, len(inputs.metadata())) == (9, 4)
    with Inputs(files, fingerprint=True, most=4) as inputs:
        assert [metadata.sha256 for metadata in inputs.metadata()] == [
            sha256(bytes([number]) * 5) for number in range(9)
        ]


@pytest.mark.parametrize("fingerprint", [True, False])
@pytest.mark.parametrize("how", ["written", "replaced"])
def test_a_file_that_changes_meanwhile_is_an_error(file: Make, tmp_path: Path, how: str, fingerprint: bool) -> None:
    with Inputs([file()], fingerprint=fingerprint, most=1) as inputs:
        if how == "written":
            with (tmp_path / "x").open("ab") as opened:
                opened.write(b"more")
        else:
            file("y")
            (tmp_path / "y").replace(tmp_path / "x")
        with pytest.raises(InvalidInput, match="'x' changed while it was read"):
            inputs.metadata()


def test_folders_and_files_that_are_not_there_have_a_name_alone(tmp_path: Path) -> None:
    files = [LocalFile("folder", partial(begin, tmp_path)), LocalFile("none", partial(begin, tmp_path / "none"))]
    with Inputs(files, fingerprint=True, most=2) as inputs:
        assert [(metadata.size, metadata.modified, metadata.sha256) for metadata in inputs.metadata()] == [
            (None, None, None)
        ] * 2


def test_hashing_ends_with_the_reduction(file: Make) -> None:
    with pytest.raises(KeyError), Inputs([file()], fingerprint=True, most=1) as inputs:
        raise KeyError
    assert inputs._threads is not None
    assert inputs._threads._shutdown


def test_one_fingerprint_stands_for_several_files() -> None:
    first, second = sha256(b"a"), sha256(b"b")
    assert fingerprint_of([]) is None
    assert fingerprint_of([first]) == first
    assert fingerprint_of([first, second]) == sha256(f"{first}\n{second}\n".encode())
    assert fingerprint_of([first, second]) != fingerprint_of([second, first])
    assert fingerprint_of([first, None]) is None


def test_an_object_is_hashed_as_it_was_opened() -> None:
    with web_server() as web:
        web.files["x"] = CONTENT
        places = folders_of(web.place()).places
        session = Session(places)
        read = RemoteObject(session, places.target(web.url("x"), "source.path"))
        assert hash_of_object(read) == sha256(CONTENT)
        web.files["x"] = CONTENT[::-1]
        with pytest.raises(InvalidInput, match="changed while it was read"):
            hash_of_object(read)
        session.close()
    assert hash_of_object(object()) is None
