"""What a client sends is watched: all files as one upload, and which of them is sent."""

import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from warpfold.client import Client
from warpfold.client.contents import BytesContent
from warpfold.client.exchange import Call, Interrupted, Portion, Steps
from warpfold.client.sending import UploadState, in_turn, watched
from warpfold.client.sources import ManyFiles, source


def test_many_files_are_one_upload_and_a_file_that_the_service_has_is_passed_over(
    client: Client, tmp_path: Path
) -> None:
    generator = np.random.default_rng()
    paths = [tmp_path / f"{name}.npy" for name in "abc"]
    for path, size in zip(paths, (1000, 9 << 20, 500), strict=True):  # the second one goes in parts
        np.save(path, generator.integers(0, 255, size, np.uint8))
    lengths = [path.stat().st_size for path in paths]
    seen: list[UploadState] = []
    client.upload(paths[0])
    made = client._do(watched(source(ManyFiles(paths)), seen.append))
    assert [{sent.name for sent in seen if sent.file == number} for number in (1, 2, 3)] == [
        set(),
        {str(paths[1])},
        {str(paths[2])},
    ]
    assert {(sent.whole, sent.files) for sent in seen} == {(sum(lengths), 3)}
    assert (seen[0].done, seen[-1].done) == (lengths[0], sum(lengths))
    assert all(earlier.done <= later.done for earlier, later in pairwise(seen))
    before = [*seen]
    assert client._do(watched(source(ManyFiles(paths)), seen.append)) == made
    assert seen == before


def test_an_upload_that_was_cut_is_shown_from_where_it_stands() -> None:
    def upload() -> Steps[str]:
        content = BytesContent(memoryview(bytes(600)))
        try:
            yield Call("PATCH", "/", str, content=content, portion=Portion("x", 0, 1000))
        except Interrupted:
            yield Call("HEAD", "/", str)
            yield Call("PATCH", "/", str, content=content, portion=Portion("x", 400, 1000))
        return "sent"

    seen: list[UploadState] = []
    steps = watched(in_turn([("a", 50, known("known")), ("b", 1000, upload())]), seen.append)
    call = next(steps)
    assert call.content is not None
    next(iter(call.content.pieces()))
    assert seen == [UploadState("b", 50, 1050, 2, 2)]
    assert steps.throw(Interrupted("cut")).method == "HEAD"
    call = steps.send(None)
    assert call.content is not None
    assert b"".join(call.content.pieces(100)) == bytes(500)
    assert [sent.done for sent in seen] == [50, 550, 1050]
    with pytest.raises(StopIteration) as end:
        steps.send(None)
    assert end.value.value == ["known", "sent"]


def known(outcome: str) -> Steps[str]:
    """A conversation that asks nothing."""
    return outcome
    yield


def test_a_reduction_shows_its_files_on_a_terminal(
    client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rich.console.Console", lambda stderr: Console(file=sys.stderr, force_terminal=True, width=200))
    generator = np.random.default_rng()
    paths = [tmp_path / "a.npy", tmp_path / "b.npy"]
    for path in paths:
        np.save(path, generator.random(3))
    client.submit_reduce([*paths], as_one=True, show_progress=True)
    assert "file 2 of 2" in capsys.readouterr().err
    np.save(paths[0], generator.random(3))
    client.reduce([*paths], as_one=True, show_progress=True)
    assert "file 1 of 2" in capsys.readouterr().err


def test_uploads_of_tables_and_of_single_files_are_shown_as_those_of_arrays(
    client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rich.console.Console", lambda stderr: Console(file=sys.stderr, force_terminal=True, width=200))
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]

    def write() -> None:
        for path in paths:
            path.write_text(f"k,x\na,{np.random.default_rng().random()}\n")

    write()
    sums = client.groupby([*paths], "k", show_progress=True).sum("x")
    shown = capsys.readouterr().err
    assert sums.num_rows == 1
    assert "file 1 of 2" in shown
    assert "groupby" in shown, "the job is followed, too"
    write()
    source = client.source([*paths], show_progress=True)
    assert [each["name"] for each in source["uploads"]] == [*map(str, paths)]
    assert "file 2 of 2" in capsys.readouterr().err
    write()
    client.upload(paths[0], show_progress=True)
    assert "a.csv" in capsys.readouterr().err
    client.groupby([*paths], "k", show_progress=False).sum("x")
    assert not capsys.readouterr().err
