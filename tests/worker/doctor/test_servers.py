from pathlib import Path

import pytest

from tests.support.dataset_server import dataset_server
from warpfold.app.config import Settings
from warpfold.worker.doctor.finding import Health
from warpfold.worker.doctor.servers import look_at_servers

TOKEN = "a-secret-that-workers-and-apis-share"


@pytest.mark.parametrize(
    ("expected", "verdict", "words"),
    [(TOKEN, Health.OK, "gives uploaded arrays"), ("other" * 8, Health.BROKEN, "refuses this worker")],
)
def test_an_api_is_asked_whether_it_gives_arrays_to_this_worker(
    settings: Settings, expected: str, verdict: Health, words: str
) -> None:
    with dataset_server(token=expected) as server:
        own = settings.model_copy(update={"dataset_urls": (server.url,), "worker_token": TOKEN})
        [finding] = [each for each in look_at_servers(own) if each.part == "datasets"]
    assert finding.verdict is verdict
    assert words in finding.detail


def test_an_api_that_does_not_answer_is_named(settings: Settings) -> None:
    own = settings.model_copy(update={"dataset_urls": ("http://127.0.0.1:9",), "worker_token": TOKEN})
    [finding] = [each for each in look_at_servers(own) if each.part == "datasets"]
    assert finding.verdict is Health.BROKEN
    assert "http://127.0.0.1:9 does not answer" in finding.detail
    assert TOKEN not in finding.detail


def test_the_embedded_postgres_of_a_service_that_is_stopped_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "database_url").write_text("postgresql://postgres@/postgres?host=/nowhere")
    postgres, _ = look_at_servers(Settings(data_dir=tmp_path))
    assert (postgres.verdict, postgres.advice) == (Health.ABSENT, "`warpfold serve` starts it")
