"""What `warpfold backup` saves and refuses. tests/integration/test_serve.py saves a service and restores it."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from warpfold.app import logs
from warpfold.worker.serve import backup


@pytest.fixture
def data_dir(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(logs, "configure", lambda **_: None)  # of the process of the tests
    monkeypatch.delenv("WARPFOLD_DATABASE_URL", raising=False)
    return tmp_path / "warpfold"


def refusal(*words: str | Path) -> str:
    done = CliRunner().invoke(backup.cli, [*map(str, words)])
    assert done.exit_code == 1, done.output
    assert done.stderr.startswith("warpfold backup: ")
    return done.stderr


def test_a_folder_without_a_service_is_named(data_dir: Path, tmp_path: Path) -> None:
    assert f"there is no service in {data_dir}; --data-dir" in refusal(tmp_path / "saved", "--data-dir", data_dir)
    assert not (tmp_path / "saved").exists()


def test_a_database_that_is_not_embedded_is_left_alone(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPFOLD_DATABASE_URL", "postgresql://127.0.0.1:9/none")
    assert "not embedded; use deploy/backup.sh" in refusal(data_dir, "--data-dir", data_dir)


def test_files_with_a_place_are_saved_and_those_of_the_last_backup_are_linked(tmp_path: Path) -> None:
    place = tmp_path / "datasets"
    for name in ("0a/one.npy", "incoming/half.npy", "0a/notes.json", "0a/deep/er.npy"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(name)
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    assert backup.save(place, "datasets", first, None) == 1
    (place / "0b").mkdir()
    (place / "0b" / "two.npy").write_text("two")
    assert backup.save(place, "datasets", second, first) == 2
    saved = {str(path.relative_to(second)): path for path in second.rglob("*.*")}
    assert sorted(saved) == ["datasets/0a/one.npy", "datasets/0b/two.npy"]
    assert saved["datasets/0a/one.npy"].samefile(first / "datasets" / "0a" / "one.npy")
    assert not saved["datasets/0b/two.npy"].samefile(place / "0b" / "two.npy")
