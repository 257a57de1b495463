"""The device of a slot `dask`: a Dask cluster, as its client sees it. The child of the slot holds the client."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from typing import Any

import dask
from distributed import Client, LocalCluster

from warpfold.contract.folders import Folders
from warpfold.kernels.backend import Device, Progress
from warpfold.kernels.driver import Backend
from warpfold.kernels.errors import Unavailable
from warpfold.kernels.machine.cores import usable_cores
from warpfold.kernels.places.place import Places
from warpfold.kernels.query import Answer, Query
from warpfold.worker.dask.device import open_device
from warpfold.worker.dask.options import ClusterOptions
from warpfold.worker.dask.task import PartitionTask, merge_task, run_task

CONNECT_S = 10.0
"""How long a scheduler may take to answer."""

ALIKE = ("warpfold", "dask", "distributed")
"""The packages whose versions must be the slot's own on every Dask worker."""

_MOST_LOCAL = 8
"""Processes of a local cluster: one reduces with several threads."""


class Cluster(Backend):
    """A Dask cluster. Raises Unavailable if no scheduler answers, or a worker has other versions than this process."""

    def __init__(self, options: ClusterOptions) -> None:
        self.options = options
        self._local: LocalCluster | None = None
        if not options.scheduler:
            self._local = _local_cluster(options.processes)
        self.address: str = options.scheduler or self._local.scheduler_address  # type: ignore[union-attr]
        self._client: Any = self._connected()
        self.check_versions()
        if self._local is not None:
            self._client.run(open_device)  # now, so that the first job need not wait for it
        self.device = self._described()

    @property
    def client(self) -> Any:
        """The client, connected anew if the scheduler was away. Raises Unavailable."""
        if self._client.status != "running":
            with suppress(Exception):  # the client has no connection to close
                self._client.close(timeout=1)
            self._client = self._connected()
        return self._client

    @property
    def is_connected(self) -> bool:
        return bool(self._client.status == "running")

    def workers(self) -> Mapping[str, int]:
        """The addresses of the present workers, with the number of threads of each. Raises Unavailable."""
        try:
            threads: Mapping[str, int] = self.client.sync(self.client.scheduler.ncores, callback_timeout=CONNECT_S)
        except (OSError, TimeoutError) as error:
            raise Unavailable(f"the Dask scheduler at {self.address} does not answer: {error}") from None
        return threads

    def check_versions(self) -> None:
        """Raise Unavailable naming the first worker whose versions are not those of this process."""
        own = own_versions()
        try:
            known = self.client.get_versions(packages=["warpfold"])
        except (OSError, TimeoutError) as error:
            raise Unavailable(f"the Dask scheduler at {self.address} does not answer: {error}") from None
        for worker, theirs in sorted(known["workers"].items()):
            for package in ALIKE:
                other = theirs["packages"].get(package)
                if own[package] != other:
                    has = f"has {package} {other}" if other else f"has no {package}"
                    raise Unavailable(f"Dask worker {worker} {has}, and the slot has {package} {own[package]}")

    def hand_out(self, tasks: Sequence[PartitionTask], ended: Callable[[Any], None]) -> Sequence[Any]:
        """The futures of `tasks`. `ended` is called, from another thread, for each future that ends in any way."""
        futures: Sequence[Any] = self.client.map(run_task, list(tasks), pure=False)
        for future in futures:
            future.add_done_callback(ended)
        return futures

    def merge(self, task: PartitionTask, futures: Sequence[Any], ended: Callable[[Any], None]) -> Any:
        """The future of the merged partial results of these futures of partitions; `task` is the task of one of them.
        The worker that holds most of the partial results merges them. `ended` is called as `hand_out` calls it."""
        future = self.client.submit(merge_task, task.spec, list(futures), pure=False)
        future.add_done_callback(ended)
        return future

    def forget(self, futures: Sequence[Any]) -> None:
        """Cancel the futures. A worker that runs one stops within some hundredths of a second."""
        if self.is_connected:
            self._client.unsubscribe_topic("all")
            self._client.cancel(list(futures), force=True)

    def restart(self, worker: str) -> None:
        """Have a worker whose device has failed replaced, if it has a nanny."""
        with suppress(Exception):  # nothing to report: the job has failed already, and says why
            self.client.restart_workers([worker], timeout=CONNECT_S, raise_for_error=False)

    def gathered(self, futures: Mapping[str, Any]) -> Mapping[str, Any]:
        """The results of finished futures, by their keys; None where one was lost with its worker meanwhile."""
        client = self.client
        try:
            results: Mapping[str, Any] = client.sync(
                client._gather, dict(futures), errors="skip", callback_timeout=CONNECT_S
            )
        except (OSError, TimeoutError):
            return dict.fromkeys(futures)
        return results

    def on_lost(self, tell: Callable[[Sequence[str]], None]) -> None:
        """Have `tell` called, from another thread, with the keys of the tasks that were lost with a worker."""

        def heard(event: tuple[float, Mapping[str, Any]]) -> None:
            if event[1].get("action") == "remove-worker":
                tell([*event[1]["processing-tasks"], *event[1]["lost-computed-tasks"]])

        self.client.subscribe_topic("all", heard)

    def sendable(self, folders: Folders) -> Folders:
        """The folders as Dask workers may know them: without the token of the apis and, where the connection to the
        workers is not encrypted, without places that need credentials."""
        places = folders.places
        if self._local is None and not self.address.startswith("tls://"):
            places = Places(tuple(place for place in places.listed if not place.secrets))
        # Only the slot fetches datasets, to its own machine, and has done so by now. So no worker needs the token.
        cache = None if folders.cache is None else replace(folders.cache, urls=(), token="")
        return Folders(folders.roots, folders.datasets, places, cache=cache)

    def aggregate(self, query: Query[Answer], progress: Progress | None = None) -> Answer:
        """Always raises Unavailable, because open elements do not travel to Dask workers: `worker.dask.running` reduces
        a spec."""
        raise Unavailable("a Dask cluster runs reductions of sources that its workers open")

    def close(self) -> None:
        """End the client, and the local cluster."""
        with suppress(Exception):
            self._client.close(timeout=1)
        if self._local is not None:
            self._local.close(timeout=5)

    def _connected(self) -> Any:
        try:
            return Client(self._local or self.address, timeout=CONNECT_S, set_as_default=False)
        except (OSError, TimeoutError, ValueError, ImportError) as error:
            raise Unavailable(f"no Dask scheduler answers at {self.address}: {error}") from None

    def _described(self) -> Device:
        info = self._client.scheduler_info(n_workers=-1)["workers"].values()
        threads = sum(int(worker["nthreads"]) for worker in info)
        called = f"Dask, {len(info)} local processes" if self._local is not None else f"Dask at {self.address}"
        return Device(
            backend="dask",
            name=called,
            index=0,
            memory_bytes=sum(int(worker["memory_limit"] or 0) for worker in info),
            cores=threads,
            compute_capability=None,
            uuid=None,
            versions=tuple((name, own_versions()[name]) for name in ("dask", "distributed", "numpy", "numba")),
        )


@cache
def own_versions() -> Mapping[str, str]:
    """The versions of this process's packages. They are cached, because looking them up takes milliseconds."""
    return {name: version(name) for name in (*ALIKE, "numpy", "numba")}


def _local_cluster(processes: int | None) -> LocalCluster:
    """A cluster of this machine's CPU. Other users of the machine cannot reach it, because anybody who reaches a
    scheduler can run any code."""
    cores = usable_cores()
    number = processes or min(cores, _MOST_LOCAL)
    options: dict[str, Any] = {
        "memory_limit": 0,  # mapped files would count as memory, and pause a worker
        # The scheduler has an HTTP server in any case; 8787 may be taken, and nobody is to read from it.
        "scheduler_kwargs": {"dashboard": False, "dashboard_address": "127.0.0.1:0"},
    }
    configured = {
        "distributed.scheduler.http.routes": [],
        "distributed.worker.profile.enabled": False,
        "warpfold.device": "cpu",  # these workers use no GPU: the GPUs of this machine have slots of their own
    }
    with dask.config.set(configured):
        return LocalCluster(
            n_workers=number,
            threads_per_worker=max(1, cores // number),
            processes=True,
            dashboard_address=None,
            security=True,
            **options,
        )
