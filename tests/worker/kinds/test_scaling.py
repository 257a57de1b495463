"""Scaling studies as the child of a slot runs them, on the CPU."""

import json
from pathlib import Path

import pytest

from tests.support.leases import lease_on
from warpfold.contract.folders import Folders
from warpfold.contract.kinds.scaling import ScalingResult
from warpfold.kernels.machine.cores import usable_cores
from warpfold.worker.execute import Kernels
from warpfold.worker.messages import News, Progress

STUDY = {
    "kind": "scaling",
    "sizes": [10_000],
    "messages": [64],
    "ranks": [1, 2],
    "modes": ["one_process"],
    "algorithms": ["ring"],
    "samples": 3,
    "seed": 11,
}


@pytest.fixture(scope="module")
def cpu(tmp_path_factory: pytest.TempPathFactory) -> Kernels:
    return Kernels("cpu", "here:cpu", Folders((), Path(tmp_path_factory.mktemp("datasets"))), cpu_cache_bytes=8 << 20)


def test_a_study_says_what_stood_in_for_gpus_and_tells_its_progress(cpu: Kernels) -> None:
    heard: list[News] = []
    success = cpu.run(lease_on(json.dumps(STUDY), queued_ms=12.5), heard.append)
    result = ScalingResult.model_validate(success.result)
    assert result.backend == "cpu"
    assert result.note is not None
    assert "no GPU took part" in result.note
    assert result.available == usable_cores()
    assert len(result.points) + len(result.messages) == 2 + 2 + 1
    assert result.measured + result.skipped == 5
    assert result.provenance.seed == 11
    assert result.timings.queued_ms == 12.5
    steps = [(news.done, news.total, news.unit) for news in heard if isinstance(news, Progress)]
    assert steps == [(k, 5, "points") for k in range(6)]


def test_exact_points_have_the_same_bits_whatever_ran_them(cpu: Kernels) -> None:
    success = cpu.run(lease_on(json.dumps(STUDY)), lambda news: None)
    points = [point for point in ScalingResult.model_validate(success.result).points if point.outcome == "measured"]
    exact = [point for point in points if point.method == "exact"]
    assert len({point.hex for point in exact}) == 1
    assert all(point.same_bits for point in exact)
