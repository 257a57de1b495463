"""Which clusters a slot takes, and what it says of those that it does not."""

import socket
from pathlib import Path
from typing import Any

import pytest

from warpfold.contract.folders import Folders
from warpfold.kernels.errors import Unavailable
from warpfold.kernels.places.place import Place, Places
from warpfold.worker.dask import cluster
from warpfold.worker.dask.cluster import Cluster
from warpfold.worker.dask.options import ClusterOptions


def test_a_scheduler_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "CONNECT_S", 0.3)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(Unavailable, match=f"no Dask scheduler answers at {address}"):
            Cluster(ClusterOptions(address))


@pytest.mark.parametrize("package", cluster.ALIKE)
def test_workers_of_other_versions_are_refused(scheduler: str, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    own = dict(cluster.own_versions())
    monkeypatch.setattr(cluster, "own_versions", lambda: own | {package: "9.9.9"})
    with pytest.raises(Unavailable, match=f"has {package} {own[package]}, and the slot has {package} 9.9.9"):
        Cluster(ClusterOptions(scheduler))


def test_credentials_travel_to_workers_by_encrypted_ways_alone(scheduler: str, tmp_path: Path) -> None:
    public, private = Place("https://a.example/"), Place("https://b.example/", secrets={"Authorization": "x"})
    folders = Folders((tmp_path,), tmp_path, Places((public, private)))
    opened = Cluster(ClusterOptions(scheduler))
    try:
        assert opened.sendable(folders).places.listed == (public,)
        opened.address = "tls://host:8786"
        assert opened.sendable(folders).places.listed == (public, private)
    finally:
        opened.close()


def test_the_device_is_the_cluster(scheduler: str) -> None:
    opened = Cluster(ClusterOptions(scheduler))
    try:
        facts: Any = opened.device
        assert (facts.backend, facts.name, facts.cores) == ("dask", f"Dask at {scheduler}", 2)
        assert {"dask", "distributed"} <= dict(facts.versions).keys()
    finally:
        opened.close()
