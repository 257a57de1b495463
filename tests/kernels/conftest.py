"""Jobs over the files of a folder, as the child of a CPU slot runs them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.leases import lease_on


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the files."""
    return tmp_path_factory.mktemp("data").resolve()


@pytest.fixture(scope="module")
def ran(root: Path) -> Callable[[dict[str, Any]], Any]:
    """Runs the job of a spec, and gives its result."""
    from warpfold.contract.folders import ArtefactFolder, Folders  # which most tests here do not need
    from warpfold.contract.jobs import result_of
    from warpfold.worker.execute import Kernels

    folders = Folders((root,), root, artefacts=ArtefactFolder(root / "artefacts", 1 << 20, 0))
    kernels = Kernels("cpu", "here:cpu", folders, cpu_cache_bytes=8 << 20)

    def result(spec: dict[str, Any]) -> Any:
        done = kernels.run(lease_on(json.dumps(spec)), lambda _: None)
        return result_of(json.dumps(done.result, allow_nan=False))

    return result
