import shutil
from pathlib import Path

import pytest

from warpfold.kernels.cuda.profile.counters import METRICS, count, parse
from warpfold.kernels.cuda.profile.records import Counters
from warpfold.kernels.errors import Unavailable

HEAD = '"ID","Kernel Name",' + ",".join(f'"{name}"' for name in METRICS)
UNITS = '"","","ns","%","","%"'


def pretended(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """An ncu that does what the script says."""
    ncu = folder / "ncu"
    ncu.write_text(f"#!{shutil.which('sh')}\n{script}\n")
    ncu.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def test_every_kernel_is_a_line_in_our_units(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lines = (
        "==PROF== Connected",
        HEAD,
        UNITS,
        '"0","exact","1,250","92.5","32","24.75"',
        '"1","fold","2000","1","16","n/a"',
    )
    pretended(tmp_path, monkeypatch, "\n".join(f"echo '{line}'" for line in lines))
    counters = count(0, "exact", "sum", "float32", 1000)
    assert counters == (Counters(1.25, 92.5, 100.0, 24.75), Counters(2.0, 1.0, 50.0, None))


def test_nothing_counted_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="saw no kernel"):
        parse(f"{HEAD}\n{UNITS}\n")
    with pytest.raises(Unavailable, match="saw no kernel"):
        parse("==WARNING== No kernels were profiled.")


def test_without_ncu_the_reason_is_that(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="no ncu"):
        count(0, "exact", "sum", "float32", 1000)


def test_what_ncu_refuses_is_said_in_its_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pretended(tmp_path, monkeypatch, "echo '==ERROR== ERR_NVGPUCTRPERM: no permission'; exit 1")
    with pytest.raises(Unavailable, match="code 1 and says: ==ERROR== ERR_NVGPUCTRPERM"):
        count(0, "exact", "sum", "float32", 1000)
