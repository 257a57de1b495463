"""What `warpfold restore` refuses, and what it leaves as it was. tests/integration/test_serve.py restores a backup."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock
from typer.testing import CliRunner

from tests.support.servers import folder
from warpfold.app import logs
from warpfold.worker.serve import restore


@pytest.fixture
def data_dir(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(logs, "configure", lambda **_: None)  # of the process of the tests
    monkeypatch.delenv("WARPFOLD_DATABASE_URL", raising=False)
    with folder() as root:
        yield root / "warpfold"


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    (tmp_path / "database.dump").write_bytes(b"PGDMP but nothing more")
    return tmp_path


def refusal(*words: str | Path) -> str:
    done = CliRunner().invoke(restore.cli, [*map(str, words)])
    assert done.exit_code == 1, done.output
    assert done.stderr.startswith("warpfold restore: ")
    return done.stderr


def test_nothing_is_restored_while_the_service_runs(data_dir: Path, backup: Path) -> None:
    data_dir.mkdir()
    with FileLock(data_dir / "serve.lock"):
        assert f"the service in {data_dir} runs; stop it first" in refusal(backup, "--data-dir", data_dir)
    assert not (data_dir / "postgres").exists()


def test_nothing_is_restored_over_a_database_unasked(data_dir: Path, backup: Path) -> None:
    (data_dir / "postgres").mkdir(parents=True)
    assert "has a database already; with --replace it is put aside" in refusal(backup, "--data-dir", data_dir)


def test_what_is_no_backup_is_named(data_dir: Path, tmp_path: Path) -> None:
    assert f"{tmp_path} is no backup: it has no database.dump" in refusal(tmp_path, "--data-dir", data_dir)


def test_a_database_that_is_not_embedded_is_left_alone(
    data_dir: Path, backup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARPFOLD_DATABASE_URL", "postgresql://127.0.0.1:9/none")
    assert "not embedded; use deploy/restore.sh" in refusal(backup, "--data-dir", data_dir)


def test_a_dump_that_cannot_be_restored_leaves_the_database_of_before(data_dir: Path, backup: Path) -> None:
    (data_dir / "postgres").mkdir(parents=True)
    (data_dir / "postgres" / "of-before").touch()
    assert "the dump cannot be restored: " in refusal(backup, "--data-dir", data_dir, "--replace")
    assert [path.name for path in data_dir.glob("postgres*")] == ["postgres"]
    assert [path.name for path in (data_dir / "postgres").iterdir()] == ["of-before"]
