import json
import os
from pathlib import Path

import pytest

from tests.support import processes
from tests.support.service import Service
from tests.support.shell import Shell


def findings(shell: Shell, code: int | None = None) -> dict[str, dict[str, str]]:
    """What the command finds, by part; its exit code is to be `code`, if that is named."""
    done = shell.run("doctor", "--json")
    assert code is None or done.code == code, done
    return {finding["part"]: finding for finding in map(json.loads, done.out.splitlines())}


def test_a_whole_service_is_well(shell: Shell, service: Service) -> None:
    shell.environment |= {
        name: value for name, value in processes.environment(service.settings).items() if name.startswith("WARPFOLD_")
    }
    by_part = findings(shell, code=0)
    for part in ("client", "service", "python", "packages", "postgres", "data root"):
        assert by_part[part]["verdict"] == "ok", by_part[part]
    assert "takes you for ada (admin); 1 live worker" in by_part["service"]["detail"]


def test_what_is_broken_is_named_with_what_to_do(shell: Shell, tmp_path: Path) -> None:
    shell.environment = {
        "WARPFOLD_URL": "http://127.0.0.1:9",
        "WARPFOLD_TOKEN": "wf_x",
        "WARPFOLD_DATABASE_URL": "postgresql://nobody@127.0.0.1:9/none",
        "WARPFOLD_REDIS_URL": "redis://127.0.0.1:9",
        "WARPFOLD_DATA_ROOTS": str(tmp_path / "nowhere"),
    }
    assert shell.run("doctor").code == 1
    broken = {part: finding for part, finding in findings(shell).items() if finding["verdict"] == "broken"}
    assert set(broken) == {"service", "postgres", "redis", "data root"}
    assert all(finding["advice"] for finding in broken.values())
    assert "WARPFOLD_DATABASE_URL" in broken["postgres"]["advice"]


def test_a_setting_that_is_wrong_is_named(shell: Shell) -> None:
    shell.environment["WARPFOLD_LEASE_S"] = "-1"
    assert "WARPFOLD_LEASE_S" in findings(shell)["settings"]["detail"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_to_is_named(shell: Shell) -> None:
    folder = shell.folder / ".warpfold"
    folder.mkdir(mode=0o500)
    assert findings(shell)["data folder"]["verdict"] == "broken"


def test_a_folder_that_others_may_read_is_named(shell: Shell) -> None:
    folder = shell.folder / ".warpfold"
    folder.mkdir()
    folder.chmod(0o755)
    finding = findings(shell)["data folder"]
    assert (finding["verdict"], finding["advice"]) == ("warning", "chmod go-rw .warpfold")
