"""A machine fetches an uploaded array that it lacks once, whatever happens on the way, and keeps it within a limit."""

import hashlib
import random
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.dataset_server import DatasetServer, dataset_server
from tests.support.waiting import until
from warpfold.contract.folders import DatasetCache, Folders
from warpfold.kernels.errors import InvalidInput, Unavailable
from warpfold.worker import fetching
from warpfold.worker.fetching import at_hand

SIZE = 300_000


def _array(seed: int, size: int = SIZE) -> tuple[str, bytes]:
    data = random.Random(seed).randbytes(size)
    return hashlib.sha256(data).hexdigest(), data


ID, DATA = _array(1)
OTHER, OTHER_DATA = _array(2)
THIRD, THIRD_DATA = _array(3)


@pytest.fixture
def server() -> Iterator[DatasetServer]:
    with dataset_server(files={ID: DATA, OTHER: OTHER_DATA, THIRD: THIRD_DATA}) as running:
        running.go_on.set()
        yield running


def _folders(tmp_path: Path, *urls: str, most_bytes: int = 10 * SIZE, keep_free: int = 0, token: str = "") -> Folders:
    cache = DatasetCache(tmp_path / "cache", most_bytes, keep_free, urls, token)
    return Folders((), tmp_path / "datasets", cache=cache)


def _silent(done: int, total: int, unit: str) -> None:
    pass


def _fetch(folders: Folders, *ids: str) -> None:
    with at_hand(folders, ids, _silent):
        pass


def _files(tmp_path: Path) -> set[str]:
    return {path.stem for path in (tmp_path / "cache").rglob("*") if path.is_file()} - {"lock"}


def test_what_is_lacking_is_fetched_once_and_progress_shows_it(tmp_path: Path, server: DatasetServer) -> None:
    folders = _folders(tmp_path, server.url)
    reports: list[tuple[int, int, str]] = []
    for _ in range(2):
        with at_hand(folders, [ID, ID], lambda *progress: reports.append(progress)):
            assert folders.dataset(ID).read_bytes() == DATA
    assert server.ranges == [None]
    assert reports[-1] == (SIZE, SIZE, "bytes fetched")
    assert _files(tmp_path) == {ID}


def test_what_is_in_the_shared_folder_is_not_fetched(tmp_path: Path, server: DatasetServer) -> None:
    folders = _folders(tmp_path, server.url)
    shared = tmp_path / "datasets" / ID[:2] / f"{ID}.npy"
    shared.parent.mkdir(parents=True)
    shared.write_bytes(DATA)
    with at_hand(folders, [ID], _silent):
        assert folders.dataset(ID) == shared
    assert server.ranges == []


def test_a_download_that_breaks_off_goes_on_at_its_byte(tmp_path: Path, server: DatasetServer) -> None:
    server.break_off_after = [100_000, 50_000]
    folders = _folders(tmp_path, server.url)
    with at_hand(folders, [ID], _silent):
        assert folders.dataset(ID).read_bytes() == DATA
    assert server.ranges == [None, "bytes=100000-", "bytes=150000-"]


def test_another_attempt_goes_on_where_an_earlier_one_was_ended(tmp_path: Path, server: DatasetServer) -> None:
    server.break_off_after = [100_000]
    folders = _folders(tmp_path, server.url)

    class _Ended(BaseException):
        """As a cancel ends the child."""

    def end(done: int, total: int, unit: str) -> None:
        raise _Ended

    with pytest.raises(_Ended), at_hand(folders, [ID], end):
        pass
    [partial] = [path for path in (tmp_path / "cache" / "incoming").iterdir() if not path.suffix]
    came = partial.stat().st_size
    assert 0 < came <= 100_000
    with at_hand(folders, [ID], _silent):
        assert folders.dataset(ID).read_bytes() == DATA
    assert server.ranges[1] == f"bytes={came}-"
    assert _files(tmp_path) == {ID}


def test_bytes_with_another_hash_are_thrown_away(tmp_path: Path, server: DatasetServer) -> None:
    server.flip = [True, False]
    folders = _folders(tmp_path, server.url)
    with at_hand(folders, [ID], _silent):
        assert folders.dataset(ID).read_bytes() == DATA
    assert server.ranges == [None, None]


def test_bytes_that_are_damaged_twice_fail_the_job_and_leave_no_file(tmp_path: Path, server: DatasetServer) -> None:
    server.flip = [True, True]
    with pytest.raises(Unavailable, match=f"dataset {ID[:12]} was fetched twice, and its SHA-256 was another"):
        _fetch(_folders(tmp_path, server.url), ID)
    assert not list((tmp_path / "cache").glob("??/*"))


def test_of_several_apis_the_one_that_has_the_file_is_found(tmp_path: Path, server: DatasetServer) -> None:
    with dataset_server() as without:
        _fetch(_folders(tmp_path, "http://127.0.0.1:9", without.url, server.url), ID)
    assert without.ranges == server.ranges == [None]


def test_an_api_that_is_busy_is_asked_again(tmp_path: Path, server: DatasetServer) -> None:
    server.statuses = [503, 429, 500]
    _fetch(_folders(tmp_path, server.url), ID)
    assert server.ranges == [None] * 4


def test_a_deleted_array_is_named(tmp_path: Path) -> None:
    with (
        dataset_server() as without,
        pytest.raises(InvalidInput, match=f"dataset {ID[:12]} is not there: it was deleted"),
    ):
        _fetch(_folders(tmp_path, without.url, without.url), ID)


def test_a_token_is_sent_and_a_wrong_one_is_named(tmp_path: Path, server: DatasetServer) -> None:
    server.token = "right" * 8
    with pytest.raises(Unavailable, match=rf"dataset {ID[:12]} .* refuses this worker's WARPFOLD_WORKER_TOKEN"):
        _fetch(_folders(tmp_path, server.url, token="wrong" * 8), ID)
    folders = _folders(tmp_path, server.url, token=server.token)
    _fetch(folders, ID)
    assert server.token not in repr(folders)


def test_an_api_that_stays_away_is_named_in_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "PATIENCE_S", 0.0)
    with pytest.raises(
        Unavailable, match=rf"dataset {ID[:12]} could not be fetched: http://127.0.0.1:9 does not answer"
    ):
        _fetch(_folders(tmp_path, "http://127.0.0.1:9"), ID)


def test_slots_that_need_the_same_array_wait_for_one_download(tmp_path: Path, server: DatasetServer) -> None:
    server.go_on.clear()
    folders = _folders(tmp_path, server.url)
    read: list[bytes] = []
    reports: set[int] = set()

    def job() -> None:
        with at_hand(folders, [ID], lambda done, total, unit: reports.add(done)):
            read.append(folders.dataset(ID).read_bytes())

    jobs = [threading.Thread(target=job) for _ in range(4)]
    for each in jobs:
        each.start()
    until(lambda: any(0 < done < SIZE for done in reports))
    assert not read
    server.go_on.set()
    for each in jobs:
        each.join()
    assert read == [DATA] * 4
    assert server.ranges == [None]


# --- the limit


def test_what_was_used_least_recently_makes_room(tmp_path: Path, server: DatasetServer) -> None:
    folders = _folders(tmp_path, server.url, most_bytes=2 * SIZE)
    _fetch(folders, ID)
    _fetch(folders, OTHER)
    _fetch(folders, ID)  # used again
    _fetch(folders, THIRD)
    assert _files(tmp_path) == {ID, THIRD}


def test_nothing_is_removed_that_a_job_reads(
    tmp_path: Path, server: DatasetServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "PATIENCE_S", 0.0)
    folders = _folders(tmp_path, server.url, most_bytes=2 * SIZE)
    with ExitStack() as reading:
        reading.enter_context(at_hand(folders, [ID], _silent))
        _fetch(folders, OTHER)
        reading.enter_context(at_hand(folders, [THIRD], _silent))
        assert _files(tmp_path) == {ID, THIRD}
        with pytest.raises(Unavailable, match=f"dataset {OTHER[:12]} .* is full of files of other jobs"):
            _fetch(folders, OTHER)
    _fetch(folders, OTHER)
    assert OTHER in _files(tmp_path)


def test_an_unfinished_download_makes_room_too(tmp_path: Path, server: DatasetServer) -> None:
    folders = _folders(tmp_path, server.url, most_bytes=SIZE)
    partial = tmp_path / "cache" / "incoming" / ID
    partial.parent.mkdir(parents=True)
    partial.write_bytes(DATA[:1000])  # of a process that was killed
    partial.with_name(f"{ID}.bytes").write_text(str(SIZE))
    _fetch(folders, OTHER)
    assert _files(tmp_path) == {OTHER}


def test_an_array_larger_than_the_cache_is_refused_by_the_name_of_the_setting(
    tmp_path: Path, server: DatasetServer
) -> None:
    with pytest.raises(Unavailable, match=f"dataset {ID[:12]} has {SIZE} bytes.*WARPFOLD_DATASET_CACHE_BYTES"):
        _fetch(_folders(tmp_path, server.url, most_bytes=SIZE - 1), ID)


def test_a_full_disk_is_waited_for_and_named(
    tmp_path: Path, server: DatasetServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "PATIENCE_S", 0.0)
    with pytest.raises(
        Unavailable, match=f"dataset {ID[:12]} could not be fetched: the disk of this machine's cache is full"
    ):
        _fetch(_folders(tmp_path, server.url, keep_free=1 << 60), ID)
