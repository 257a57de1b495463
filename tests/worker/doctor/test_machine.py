from pathlib import Path

import pytest
from numba import config

from warpfold.app.config import Settings
from warpfold.kernels.machine.jit import folders_in_use
from warpfold.worker.doctor.finding import Finding, Health
from warpfold.worker.doctor.machine import look_at_machine


def compiled(settings: Settings) -> Finding:
    [finding] = [each for each in look_at_machine(settings) if each.part == "compiled loops"]
    return finding


def test_compiled_functions_are_those_of_this_version_and_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "CACHE_DIR", "")
    settings = Settings(data_dir=tmp_path)
    assert compiled(settings).verdict is Health.ABSENT
    for name in (sorted(folders_in_use())[0], f"cpu_{'0' * 24}"):
        folder = tmp_path / "cache" / "numba" / name
        folder.mkdir(parents=True)
        (folder / "sum-1.nbc").write_bytes(bytes(1 << 20))
        if name.endswith("0" * 24):
            (folder / "max-1.nbc").touch()
    finding = compiled(settings)
    assert finding.verdict is Health.OK
    assert finding.detail.endswith("2.0 MiB, 1 function of this version and 2 of others")
