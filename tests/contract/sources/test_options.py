"""Sources by URL: every format gives the same bits as the same file does, and faults are told with the URL."""

import gzip
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from pydantic import TypeAdapter

from tests.support.places.s3 import SECRET, S3Server, s3_server
from tests.support.places.web import WebServer, cut, folders_of, status, web_server
from warpfold.contract.folders import Folders
from warpfold.contract.sources import Source
from warpfold.contract.sources.source import SourceSpec
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.errors import InvalidInput, KernelError
from warpfold.kernels.places import remote
from warpfold.kernels.places.remote import RetryPolicy
from warpfold.kernels.sources.sequential import Elements, SequentialSource, gathered

h5py = pytest.importorskip("h5py")
zarr = pytest.importorskip("zarr")
SOURCE: TypeAdapter[SourceSpec] = TypeAdapter(Source)
NUMBERS = np.random.default_rng(7).normal(size=(120, 5, 70)) * 1e200
TABLE = pa.table({"x": NUMBERS.ravel()[:42_000], "y": np.arange(42_000) % 7, "z": [None, 1.5, -2.0] * 14_000})


@pytest.fixture
def web() -> Iterator[WebServer]:
    with web_server() as server:
        yield server


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    pytest.importorskip("obstore")
    pytest.importorskip("moto")
    with s3_server() as server:
        yield server


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = RetryPolicy(retries=3, first_s=0.001, most_s=0.002)
    monkeypatch.setattr(remote, "RetryPolicy", lambda: quick)


def opened(folders: Folders, **source: Any) -> Elements:
    asked = SOURCE.validate_python(source)
    asked.check("source", folders.roots, 100, folders.places)
    return SOURCE.validate_json(asked.model_dump_json()).open(folders)


def elements(folders: Folders, **source: Any) -> NDArray[Any]:
    whole = gathered(opened(folders, **source))
    return whole.read(0, whole.count)


def refused(folders: Folders, field: str = "source.path", **source: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        elements(folders, **source)
    assert caught.value.field == field
    return str(caught.value)


def _hdf5(buffer: io.BytesIO, **how: Any) -> None:
    with h5py.File(buffer, "w") as file:
        file.create_dataset("a", data=NUMBERS, **how)


def _csv(buffer: io.BytesIO) -> None:
    pyarrow.csv.write_csv(TABLE, buffer)


def _csv_gz(buffer: io.BytesIO) -> None:
    text = io.BytesIO()
    _csv(text)
    buffer.write(gzip.compress(text.getvalue()))


ARRAYS: dict[str, Callable[[io.BytesIO], None]] = {
    "a.npy": lambda buffer: np.save(buffer, NUMBERS),
    "fortran.npy": lambda buffer: np.save(buffer, np.asfortranarray(NUMBERS)),
    "big.npy": lambda buffer: np.save(buffer, NUMBERS.astype(">f8")),
    "a.npz": lambda buffer: np.savez(buffer, a=NUMBERS),
    "packed.npz": lambda buffer: np.savez_compressed(buffer, a=NUMBERS),
    "a.h5": _hdf5,
    "chunked.h5": lambda buffer: _hdf5(buffer, chunks=(7, 2, 30), compression="gzip"),
}
TABLES: dict[str, Callable[[io.BytesIO], None]] = {
    "t.parquet": lambda buffer: pq.write_table(TABLE, buffer, row_group_size=5000),
    "t.arrow": lambda buffer: pyarrow.feather.write_feather(TABLE, buffer, compression="uncompressed"),
    "zstd.arrow": lambda buffer: pyarrow.feather.write_feather(TABLE, buffer, compression="zstd"),
    "t.csv": _csv,
    "t.csv.gz": _csv_gz,
}


def content(write: Callable[[io.BytesIO], None]) -> bytes:
    buffer = io.BytesIO()
    write(buffer)
    return buffer.getvalue()


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_has_the_bits_that_it_has_in_a_file(name: str, web: WebServer, tmp_path: Path) -> None:
    web.files[name] = content(ARRAYS[name])
    (tmp_path / name).write_bytes(web.files[name])
    here, remote = Folders((tmp_path,), tmp_path), folders_of(web.place())
    for select in ([], [3], [None, {"start": 1, "step": 2}], [{"step": 7}, 2, {"stop": 20}]):
        source = {"type": "array", "select": select}
        values = elements(remote, path=web.url(name), **source)
        assert values.tobytes() == elements(here, path=name, **source).tobytes()
    reduced = [
        CpuBackend().reduce(opened(folders, type="array", path=path), "sum")
        for folders, path in ((here, name), (remote, web.url(name)))
    ]
    assert reduced[0].value == reduced[1].value
    assert reduced[0].state == reduced[1].state


@pytest.mark.parametrize("name", TABLES)
def test_a_column_has_the_bits_that_it_has_in_a_file(name: str, web: WebServer, tmp_path: Path) -> None:
    web.files[name] = content(TABLES[name])
    (tmp_path / name).write_bytes(web.files[name])
    here, remote = Folders((tmp_path,), tmp_path), folders_of(web.place())
    rows = {"op": ">=", "column": "y", "value": 3}
    for options in ({"column": "x"}, {"column": "z"}, {"column": "z", "filter": rows}):
        source = opened(remote, type="table", path=web.url(name), **options)
        assert isinstance(source, SequentialSource)
        whole = gathered(source)
        expected = opened(here, type="table", path=name, **options)
        gathered_here = gathered(expected)
        assert whole.read(0, whole.count).tobytes() == gathered_here.read(0, gathered_here.count).tobytes()
        if isinstance(expected, SequentialSource):
            assert source.tally.nulls == expected.tally.nulls


@pytest.mark.parametrize("name", ["a.npy", "t.parquet", "chunked.h5", "t.csv.gz"])
def test_cut_connections_change_no_bit(name: str, web: WebServer) -> None:
    web.files[name] = content({**ARRAYS, **TABLES}[name])
    source = {"type": "table", "column": "x"} if name in TABLES else {"type": "array"}
    whole = elements(folders_of(web.place()), path=web.url(name), **source)
    web.behaviours[:] = [cut(100), status(503), cut(5000)]
    assert elements(folders_of(web.place()), path=web.url(name), **source).tobytes() == whole.tobytes()
    assert not web.behaviours


@pytest.mark.parametrize("name", ["a.npy", "packed.npz", "chunked.h5", "t.parquet", "zstd.arrow", "t.csv"])
def test_an_object_that_changes_while_it_is_read_fails_with_that_sentence(
    name: str, web: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = 1 << (18 if name == "t.csv" else 14)
    for bound, size in {"PAGE_BYTES": page, "MOST_BYTES": 4 * page, "_RUN_PAGES": 1}.items():  # little is read ahead
        monkeypatch.setattr(f"warpfold.kernels.places.file.{bound}", size)
    web.files[name] = content({**ARRAYS, **TABLES}[name]) + b"1.5,2,3.5\n" * (500_000 if name == "t.csv" else 0)
    source = {"type": "table", "column": "x"} if name in TABLES else {"type": "array"}
    elements_read = opened(folders_of(web.place()), path=web.url(name), **source)
    web.files[name] = web.files[name][:-1] + b"?"
    with pytest.raises(InvalidInput) as caught:
        gathered(elements_read)
    assert str(caught.value) == f"{web.url(name)!r} changed while it was read"
    assert caught.value.field == "source.path"


def test_a_zarr_hierarchy_is_read_by_its_folder(web: WebServer, tmp_path: Path) -> None:
    zarr.create_array(str(tmp_path / "a.zarr"), data=NUMBERS, chunks=(50, 2, 70))
    zarr.open_group(str(tmp_path / "g.zarr"), mode="w").create_array("t", data=NUMBERS[:3], chunks=(2, 5, 70))
    for path in tmp_path.rglob("*"):
        if path.is_file():
            web.files[str(path.relative_to(tmp_path))] = path.read_bytes()
    remote = folders_of(web.place())
    assert elements(remote, type="array", path=web.url("a.zarr")).tobytes() == NUMBERS.tobytes()
    assert elements(remote, type="array", path=web.url("a.zarr/"), select=[7]).tobytes() == NUMBERS[7].tobytes()
    assert elements(remote, type="array", path=web.url("g.zarr"), array="t").tobytes() == NUMBERS[:3].tobytes()
    assert "lists no folders" in refused(remote, "source.array", type="array", path=web.url("g.zarr"))
    assert "is not there" in refused(remote, type="array", path=web.url("h.zarr"))


def test_a_flat_array_is_read_by_a_source_of_type_path(web: WebServer) -> None:
    web.files |= {name: content(ARRAYS[name]) for name in ("a.npy", "a.npz")}
    assert elements(folders_of(web.place()), type="path", path=web.url("a.npy")).tobytes() == NUMBERS.tobytes()
    assert "is .npz, not .npy: a source of type array reads it" in refused(
        folders_of(web.place()), type="path", path=web.url("a.npz")
    )


def test_files_by_urls_are_one_array_beside_files_of_this_machine(web: WebServer, tmp_path: Path) -> None:
    np.save(tmp_path / "here.npy", NUMBERS[1])
    for number in range(3):
        web.files[f"{number}.npy"] = content(lambda buffer, number=number: np.save(buffer, NUMBERS[number]))  # type: ignore[misc]
    folders = Folders((tmp_path,), tmp_path, folders_of(web.place()).places)
    paths = [web.url("0.npy"), "here.npy", web.url("2.npy")]
    source = opened(folders, type="files", paths=paths)
    assert isinstance(source, SequentialSource)
    assert gathered(source).read(0, 3 * NUMBERS[0].size).tobytes() == NUMBERS[:3].tobytes()
    metadata = [read.metadata() for read in source.tally.objects]
    assert [(fact.url, fact.size) for fact in metadata] == [
        (url, len(web.files["0.npy"])) for url in (paths[0], paths[2])
    ]
    assert all(fact.etag and fact.modified for fact in metadata)
    message = refused(folders, "source.paths", type="files", paths=[paths[0], web.url("none.npy")])
    assert message == f"{web.url('none.npy')!r} is not there"


def test_what_is_no_place_is_refused_with_the_field(web: WebServer) -> None:
    folders = folders_of(web.place())
    for source in ({"type": "path"}, {"type": "array"}, {"type": "table"}):
        assert "outside of the places" in refused(folders, path="s3://other/x", **source)
    assert "outside of the places" in refused(
        folders, "source.paths.1", type="files", paths=[web.url("x"), "s3://other/x"]
    )
    assert "outside of the places" in refused(folders, "source.glob", type="files", glob="s3://other/*")
    assert "does not list" in refused(folders, "source.glob", type="files", glob=web.url("*.npy"))


class TestAnObjectStore:
    def test_gives_the_same_bits(self, s3: S3Server) -> None:
        folders = folders_of(s3.place("s3://formats/"))
        for name, write in {**ARRAYS, **TABLES}.items():
            url = s3.put("formats", f"in/{name}", content(write))
            source: dict[str, Any] = {"type": "table", "column": "x"} if name in TABLES else {"type": "array"}
            expected = NUMBERS if name in ARRAYS else NUMBERS.ravel()[:42_000]
            assert elements(folders, path=url, **source).tobytes() == expected.tobytes(), name

    def test_lists_the_objects_that_match_a_pattern(self, s3: S3Server) -> None:
        for key, number in {"runs/1/a.npy": 1, "runs/2/a.npy": 2, "runs/2/b.npy": 3, "runs/x.npy": 4}.items():
            s3.put("globs", key, content(lambda buffer, number=number: np.save(buffer, NUMBERS[number, 0])))  # type: ignore[misc]
        folders = folders_of(s3.place("s3://globs/runs/"))
        source = opened(folders, type="files", glob="s3://globs/runs/[0-9]/a.npy")
        assert isinstance(source, SequentialSource)
        assert gathered(source).read(0, 140).tobytes() == NUMBERS[1:3, 0].tobytes()
        assert [read.metadata().url for read in source.tally.objects] == [f"s3://globs/runs/{n}/a.npy" for n in (1, 2)]
        everything = elements(folders, type="files", glob="s3://globs/runs/**/*.npy")
        assert everything.size == 4 * 70
        message = refused(folders, "source.glob", type="files", glob="s3://globs/runs/*.parquet")
        assert message == "'s3://globs/runs/*.parquet' matches no object"
        assert "outside of the places" in refused(folders, "source.glob", type="files", glob="s3://globs/*.npy")

    def test_lists_the_hierarchies_that_match_and_their_arrays(self, s3: S3Server, tmp_path: Path) -> None:
        for number in range(2):
            group = zarr.open_group(str(tmp_path / f"run-{number}.zarr"), mode="w")
            group.create_array("temp", data=NUMBERS[number], chunks=(2, 70))
        for path in tmp_path.rglob("*"):
            if path.is_file():
                s3.put("trees", str(path.relative_to(tmp_path)), path.read_bytes())
        folders = folders_of(s3.place("s3://trees/"))
        assert elements(folders, type="array", path="s3://trees/run-1.zarr").tobytes() == NUMBERS[1].tobytes()
        values = elements(folders, type="files", glob="s3://trees/run-*.zarr", array="temp")
        assert values.tobytes() == NUMBERS[:2].tobytes()

    def test_an_object_that_changes_is_noticed_by_its_etag(self, s3: S3Server) -> None:
        url = s3.put("changing", "a.npy", content(ARRAYS["a.npy"]))
        source = opened(folders_of(s3.place("s3://changing/")), type="path", path=url)
        s3.put("changing", "a.npy", content(ARRAYS["a.npy"])[:-1] + b"?")
        with pytest.raises(InvalidInput, match="changed while it was read"):
            gathered(source)

    def test_says_what_is_not_there_and_shows_no_secret(self, s3: S3Server) -> None:
        s3.put("there", "x", b"x")
        folders = folders_of(s3.place("s3://there/"), s3.place("s3://nowhere/"))
        messages = [refused(folders, type="array", path=f"s3://{bucket}/none.npy") for bucket in ("there", "nowhere")]
        messages.append(refused(folders, "source.glob", type="files", glob="s3://nowhere/*"))
        assert messages[0] == "'s3://there/none.npy' is not there"
        assert not any(SECRET in message or "X-Amz" in message for message in messages)

    def test_a_private_endpoint_needs_the_configuration_to_allow_it(self, s3: S3Server) -> None:
        url = s3.put("strict", "a.npy", content(ARRAYS["a.npy"]))
        allowed = s3.place("s3://strict/")
        strict = folders_of(type(allowed)(allowed.url, allowed.endpoint, allowed.region, secrets=allowed.secrets))
        assert "private address" in refused(strict, type="path", path=url)
        assert "private address" in refused(strict, "source.glob", type="files", glob="s3://strict/*")


def test_a_store_that_refuses_its_credentials_is_told_without_them(web: WebServer) -> None:
    pytest.importorskip("obstore")
    from tests.support.places.s3 import REGION
    from warpfold.kernels.places.place import Place

    secrets = {"access_key_id": "AKIA", "secret_access_key": SECRET, "session_token": "another-secret"}
    folders = folders_of(Place("s3://bucket/", web.root, REGION, private=True, secrets=secrets))
    body = b"<Error><Code>%s</Code><Message>AKIA</Message></Error>"
    for code, why in ((b"AccessDenied", "may not be read with"), (b"ExpiredToken", "have expired")):
        web.behaviours[:] = [status(403, body % code)]
        with pytest.raises(KernelError, match=why) as caught:
            elements(folders, type="path", path="s3://bucket/a.npy")
        assert not any(word in str(caught.value) for word in (SECRET, "another-secret", "AKIA", "X-Amz"))
    web.behaviours[:] = [status(403, body % b"AccessDenied")] * 2
    with pytest.raises(KernelError, match="cannot be listed") as caught:
        elements(folders, type="files", glob="s3://bucket/*")
    assert not any(word in str(caught.value) for word in (SECRET, "another-secret", "AKIA", "X-Amz"))


def test_a_store_needs_its_library_and_says_so(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "obstore.store", None)
    monkeypatch.setitem(sys.modules, "obstore", None)
    place = folders_of(S3Server(web.port).place("s3://bucket/"))
    with pytest.raises(KernelError, match="obstore is not installed on the machine that ran this") as caught:
        elements(place, type="path", path="s3://bucket/a.npy")
    assert caught.value.reason == "unavailable"
