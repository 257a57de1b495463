"""What the health checks of containers say."""

import socket
import subprocess
import sys
from pathlib import Path

from tests.support import processes, warm
from tests.support.api import served
from warpfold.app.config import Settings
from warpfold.app.db import BlockingDatabase
from warpfold.app.jobs import workers
from warpfold.app.jobs.workers import WorkerInfo
from warpfold.worker.leadership import Leadership


def alive(settings: Settings, log: Path, *words: str) -> tuple[int, str]:
    return warm.run(("warpfold.worker.alive", *words), processes.environment(settings), log)


def test_an_api_that_answers_is_alive(settings: Settings, log: Path) -> None:
    with served(settings) as url:
        assert alive(settings, log, "api", "--url", url) == (0, "")
    code, printed = alive(settings, log, "api", "--url", url)
    assert (code, printed.startswith(f"warpfold alive: no answer from {url}")) == (1, True)


def test_a_dispatcher_is_alive_where_one_leads(settings: Settings, log: Path) -> None:
    assert alive(settings, log, "dispatcher") == (1, "warpfold alive: no dispatcher leads\n")
    with Leadership(settings.database_url, "test dispatcher", 10.0) as session:
        assert session.won()
        assert alive(settings, log, "dispatcher") == (0, "")


def test_a_worker_is_alive_while_it_beats(settings: Settings, database: BlockingDatabase, log: Path) -> None:
    host = socket.gethostname()[:64]
    info = WorkerInfo(f"{host}:cpu", "cpu", "cpu", host, 1, "0", None)
    assert alive(settings, log, "worker")[0] == 1
    database.run(workers.report, info, "idle", None, 60.0)
    assert alive(settings, log, "worker") == (0, "")
    database.run(workers.report, info, "stopped", None, 0.0)
    assert alive(settings, log, "worker") == (1, f"warpfold alive: no worker of {host} has reported in time\n")
    database.close()


def test_without_postgres_nobody_is_to_be_restarted(settings: Settings) -> None:
    away = settings.model_copy(update={"database_url": "postgresql://127.0.0.1:9/none"})
    words = [sys.executable, "-m", "warpfold.worker.alive", "dispatcher"]  # once as a container does it
    done = subprocess.run(words, env=processes.environment(away), check=False, timeout=60)
    assert done.returncode == 0
