"""Kernel profiles as the child of a CPU slot runs them: what the compiler knows."""

import json
from pathlib import Path

import pytest

from tests.support.leases import lease_on
from warpfold.contract.folders import Folders
from warpfold.contract.kinds.profile import ProfileResult
from warpfold.worker.execute import Kernels
from warpfold.worker.messages import News, Progress


@pytest.fixture(scope="module")
def cpu(tmp_path_factory: pytest.TempPathFactory) -> Kernels:
    return Kernels("cpu", "here:cpu", Folders((), Path(tmp_path_factory.mktemp("datasets"))), cpu_cache_bytes=8 << 20)


def profiled(cpu: Kernels, heard: list[News], **spec: object) -> ProfileResult:
    asked = {"kind": "profile", "sizes": [1000, 2000], **spec}
    return ProfileResult.model_validate(cpu.run(lease_on(json.dumps(asked), queued_ms=1.0), heard.append).result)


def test_without_a_gpu_registers_and_memory_are_those_of_the_chosen_architecture(cpu: Kernels) -> None:
    heard: list[News] = []
    result = profiled(cpu, heard, strategies=["exact", "two_pass"], arch="sm_80")
    assert (result.arch, result.backend, result.measured) == ("sm_80", "cpu", 2)
    assert result.note is not None
    assert "compiled for sm_80" in result.note
    exact, two_pass = result.points
    assert [kernel.name.partition("<")[0] for kernel in exact.kernels] == ["exact"]
    assert [kernel.name.partition("<")[0] for kernel in two_pass.kernels] == ["two_pass", "two_pass_fold"]
    for kernel in (*exact.kernels, *two_pass.kernels):
        assert 0 < kernel.registers <= 255
        assert (kernel.spill_stores, kernel.spill_loads) == (0, 0)
        assert kernel.threads is not None
        assert (kernel.blocks, kernel.occupancy_percent, kernel.waves, kernel.counters) == (None,) * 4
    assert exact.kernels[0].dynamic_shared
    assert "nvrtc" in result.provenance.libraries
    steps = [(news.done, news.total) for news in heard if isinstance(news, Progress)]
    assert steps == [(0, 2), (1, 2), (2, 2)]  # once for all sizes


def test_what_is_not_ours_not_claimed_or_too_new_is_skipped_with_the_reason(cpu: Kernels) -> None:
    result = profiled(cpu, [], strategies=["cub", "single_pass", "cluster"], ops=["sum", "var"], arch="sm_75")
    reasons = {(point.strategy, point.op): point.reason for point in result.points}
    assert "is a peer" in str(reasons["cub", "sum"])
    assert "does not compute var" in str(reasons["single_pass", "var"])
    assert "needs sm_90 or newer, not sm_75" in str(reasons["cluster", "sum"])
    assert reasons["single_pass", "sum"] is None
    assert (result.measured, result.skipped) == (1, 5)
