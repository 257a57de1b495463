import ctypes
import shutil
from pathlib import Path

import pytest

from warpfold.kernels.catalog import strategies
from warpfold.kernels.cuda.baselines.toolkit import BuildError, Cccl, build, find_toolkit
from warpfold.kernels.cuda.strategies.registry import baselines
from warpfold.kernels.errors import Unavailable

DEFINES = {"PEER_CUB": "", "OP_SUM": "", "ELEMENT": "float", "RESULT": "float"}

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")


def test_the_peers_are_in_the_catalogue_whether_or_not_they_can_run_here() -> None:
    rows = {row.name: row for row in strategies() if row.backend == "cuda"}
    for name in ("cupy", "torch", "cub", "cub_not_guaranteed", "cub_gpu_to_gpu", "thrust"):
        assert rows[name].summary
        assert ("sum", "float32") in rows[name].claims


def test_what_is_missing_says_so() -> None:
    for baseline in baselines().values():
        assert baseline.missing is None or len(baseline.missing) > 10


def test_cub_and_thrust_claim_what_the_issue_of_every_type_asks_for() -> None:
    for name in ("cub", "thrust"):
        claims = baselines()[name].claims
        assert {op for op, _ in claims} == {"sum", "min", "max", "argmin", "argmax"}
        assert len({dtype for _, dtype in claims}) == 12


def test_newer_cccl_is_preferred() -> None:
    old, new = Cccl((3, 0, 1), Path("/z")), Cccl((3, 6, 0), Path("/a"))
    assert max(old, new) is new
    assert new.release == "3.6.0"


def test_without_a_compiler_it_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpfold.kernels.cuda.baselines.toolkit._nvcc", lambda: None)
    find_toolkit.cache_clear()
    try:
        with pytest.raises(Unavailable, match="nvcc, which this machine does not have"):
            find_toolkit()
    finally:
        find_toolkit.cache_clear()


@needs_nvcc
def test_a_peer_is_built_once(tmp_path: Path) -> None:
    library = build(DEFINES, "sm_90", tmp_path)
    assert library.name.startswith("peer_cub-op_sum-float-float-sm_90-")
    built = library.stat().st_mtime_ns
    assert build(DEFINES, "sm_90", tmp_path) == library
    assert library.stat().st_mtime_ns == built
    loaded = ctypes.CDLL(str(library))
    for name in ("peer_use_device", "peer_workspace", "peer_run", "peer_error"):
        assert hasattr(loaded, name)


@needs_nvcc
def test_a_peer_that_does_not_build_shows_the_compilers_words(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="no_such_type"):
        build({**DEFINES, "ELEMENT": "no_such_type"}, "sm_90", tmp_path)
    assert not list(tmp_path.rglob("*.so"))
