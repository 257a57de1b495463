"""Fetches uploaded arrays for machines without a shared file system. An array that the dataset folder of this machine
lacks is fetched from an api, once for all slots, and kept in a cache (docs/operations/several-machines.md). The child
of a slot does this, so that a cancel, the time limit and the loss of the lease end a download as they end a
computation. The downloaded bytes stay, and the next attempt on this machine goes on from there.
"""

import os
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import httpx
import structlog
from structlog.typing import FilteringBoundLogger

from warpfold.app.datasets.digest import FollowingDigest
from warpfold.contract.backoff import Backoff
from warpfold.contract.folders import DatasetCache, Folders, dataset_file, dataset_in_words
from warpfold.kernels.errors import InvalidInput, Unavailable
from warpfold.worker.dataset_cache import CachedDatasets, NoRoom, Partial

log: FilteringBoundLogger = structlog.get_logger()

Report = Callable[[int, int, str], None]
"""Takes how many units of work are done, out of how many, and the unit."""

UNIT = "bytes fetched"
PATIENCE_S = 60.0
"""A dataset of which no byte comes for this long fails its job."""
_TIMEOUT = httpx.Timeout(15.0, connect=5.0)
_LOOK_AGAIN_S = 0.1
_REFUSED = (401, 403)


@contextmanager
def at_hand(folders: Folders, dataset_ids: Collection[str], report: Report) -> Iterator[None]:
    """Within the block these uploaded arrays are files of this machine, and none of them is removed from the cache.

    Waits for arrays that another process is fetching, perhaps for a job of another slot, and fetches the others, in the
    order of their ids. Raises InvalidInput where an array was deleted, and Unavailable where no api gives it, or where
    it is too large.
    """
    with ExitStack() as kept:
        if folders.cache is not None:
            for dataset_id in sorted(set(dataset_ids)):
                if not dataset_file(folders.datasets, dataset_id).exists():
                    kept.enter_context(_kept(folders.cache, dataset_id, report))
        yield


@contextmanager
def _kept(cache: DatasetCache, dataset_id: str, report: Report) -> Iterator[None]:
    datasets = CachedDatasets(cache)
    stall = _Stall(dataset_id)
    while True:
        with datasets.reading(dataset_id) as is_cached:
            if is_cached:
                yield
                return
        try:
            with datasets.partial(dataset_id) as partial:
                if partial is not None:
                    _Download(cache, datasets, partial, report, stall).run()
                    continue
            done, total = datasets.progress(dataset_id)
            if total:
                report(done, total, UNIT)
        except OSError as error:
            stall.lost(f"this machine cannot keep it: {os.strerror(error.errno or 0).lower()}")
        else:
            time.sleep(_LOOK_AGAIN_S)


class _Stall:
    """How long a dataset has made no progress, and why."""

    def __init__(self, dataset_id: str) -> None:
        self._dataset_id = dataset_id
        self._since = time.monotonic()
        self._pause = Backoff(0.1, 2.0)

    def progress(self) -> None:
        self._since = time.monotonic()
        self._pause.reset()

    def lost(self, why: str) -> None:
        """Wait a moment after a failure. Raises Unavailable after PATIENCE_S without progress."""
        if not self._pause.failing:
            log.warning("dataset not fetched yet", dataset=self._dataset_id, why=why)
        if time.monotonic() - self._since > PATIENCE_S:
            raise Unavailable(f"{dataset_in_words(self._dataset_id)} could not be fetched: {why}")
        time.sleep(self._pause.next())


@dataclass(frozen=True, slots=True)
class _Missing:
    """The reason for which an api does not give a dataset and never will: it has no such file, or it refuses the
    token."""

    why: str
    refused: bool


class _Damaged(Exception):
    """The downloaded bytes have another digest than the dataset."""


class _Download:
    """The download of one dataset, or of the rest of it, by the process that has locked its partial file."""

    def __init__(
        self, cache: DatasetCache, datasets: CachedDatasets, partial: Partial, report: Report, stall: _Stall
    ) -> None:
        self._cache = cache
        self._datasets = datasets
        self._partial = partial
        self._report = report
        self._stall = stall
        self._damaged = 0

    def run(self) -> None:
        """Fetch the dataset from the first api that has it. Where the connection to an api is lost, go on with the next
        api. Raises InvalidInput, Unavailable and OSError."""
        began, had = time.monotonic(), self._partial.size
        with httpx.Client(timeout=_TIMEOUT, headers={"Accept-Encoding": "identity"}, follow_redirects=False) as client:
            while True:
                missing = []
                for url in self._cache.urls:
                    why = self._ask(client, url)
                    if why is None:
                        seconds = round(time.monotonic() - began, 3)
                        fetched = {"bytes": self._partial.size, "resumed_from": had, "seconds": seconds}
                        log.info("dataset fetched", dataset=self._partial.dataset_id, api=url, **fetched)
                        return
                    if isinstance(why, _Missing):
                        missing.append(why)
                    else:
                        self._stall.lost(why)
                if len(missing) == len(self._cache.urls):
                    raise self._not_to_be_had(missing)

    def _ask(self, client: httpx.Client, url: str) -> str | _Missing | None:
        """Fetch the missing bytes from one api; None where all of them have come, else the reason."""
        try:
            return self._receive(client, url)
        except NoRoom as error:
            return str(error)
        except httpx.HTTPError as error:
            return f"{url} does not answer: {str(error) or type(error).__name__}"
        except OSError as error:
            return f"this machine cannot keep it: {os.strerror(error.errno or 0).lower()}"
        except _Damaged:
            self._damaged += 1
            self._partial.empty()
            if self._damaged > 1:
                raise Unavailable(
                    f"{dataset_in_words(self._partial.dataset_id)} was fetched twice, and its SHA-256 was another; "
                    f"{url} has it damaged"
                ) from None
            return f"what {url} sent has another SHA-256"

    def _receive(self, client: httpx.Client, url: str) -> str | _Missing | None:
        partial, dataset_id = self._partial, self._partial.dataset_id
        headers = {"Authorization": f"Bearer {self._cache.token}"} if self._cache.token else {}
        if partial.size:
            headers["Range"] = f"bytes={partial.size}-"
        with client.stream("GET", f"{url}/v1/datasets/{dataset_id}/file", headers=headers) as answer:
            if answer.status_code == 404:
                return _Missing(f"{url} does not have it", refused=False)
            if answer.status_code in _REFUSED:
                return _Missing(f"{url} refuses this worker's WARPFOLD_WORKER_TOKEN", refused=True)
            if answer.status_code == 416:  # the partial file has all bytes, or more than the dataset
                total = int(answer.headers.get("Content-Range", "bytes */-1").rpartition("/")[2])
                if partial.size != total:
                    partial.empty()
                    return f"what {url} has is shorter than what came before"
            elif answer.status_code == 206:
                total = int(answer.headers["Content-Range"].rpartition("/")[2])
            elif answer.status_code == 200:
                partial.empty()
                total = int(answer.headers["Content-Length"])
            else:
                return f"{url} answers {answer.status_code}"
            self._datasets.make_room(partial, total)
            self._take(answer, total)
        return None

    def _take(self, answer: httpx.Response, total: int) -> None:
        """Write the bytes of the answer, and give the file its name. Raises _Damaged, httpx.HTTPError and OSError."""
        digest = FollowingDigest(self._partial.fileno())
        try:
            digest.advance(self._partial.size)
            if answer.status_code != 416:
                for piece in answer.iter_raw():
                    self._partial.append(piece)
                    digest.advance(self._partial.size)
                    self._stall.progress()
                    self._report(self._partial.size, total, UNIT)
            if self._partial.size != total or digest.hexdigest() != self._partial.dataset_id:
                raise _Damaged
        finally:
            digest.close()
        self._partial.place()

    def _not_to_be_had(self, missing: Collection[_Missing]) -> InvalidInput | Unavailable:
        named = dataset_in_words(self._partial.dataset_id)
        if any(each.refused for each in missing):
            return Unavailable(f"{named} could not be fetched: {'; '.join(each.why for each in missing)}")
        return InvalidInput(f"{named} is not there: it was deleted after the job was accepted", "source.id")
