from pathlib import Path

import pytest

from warpfold.app.config import Settings
from warpfold.worker.doctor.finding import Health
from warpfold.worker.doctor.settings import look_at_settings


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)  # where there is no file of settings


def test_the_defaults_go_together() -> None:
    assert [finding.verdict for finding in look_at_settings(Settings())] == [Health.OK]


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ({"lease_s": 1.0}, "so that busy workers lose their jobs"),
        ({"lead_s": 1.0}, "is replaced after 1 s"),
        ({"dataset_quota_bytes": 1}, "no user has room"),
        ({"max_batch_bytes": 1024}, "a batch may have fewer bytes than a job"),
        ({"dataset_urls": ("http://there:1",)}, "to no worker without a token"),
        ({"slot_memory_bytes": 1 << 60}, "more memory than the machine has"),
    ],
)
def test_choices_that_do_not_go_together_are_named_with_a_remedy(chosen: dict[str, object], words: str) -> None:
    _, finding = look_at_settings(Settings().model_copy(update=chosen))
    assert finding.verdict is Health.WARNING
    assert words in finding.detail
    assert "WARPFOLD_" in finding.advice


def test_a_file_with_a_password_that_others_may_read_is_named(tmp_path: Path) -> None:
    file = tmp_path / "warpfold.toml"
    file.write_text('redis_url = "redis://:s3cret@there:1"')
    file.chmod(0o644)
    whole, finding = look_at_settings(Settings())
    assert f"in {file}" in whole.detail
    assert (finding.verdict, finding.advice) == (Health.BROKEN, f"chmod 600 {file}")
    file.chmod(0o600)
    assert len([*look_at_settings(Settings())]) == 1
