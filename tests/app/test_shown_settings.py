import json
from pathlib import Path

import pytest

from warpfold.app import shown_settings


def test_every_setting_is_shown_with_its_origin_and_without_its_secrets(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = tmp_path / "token"
    secret.write_text("s3cret" * 8)
    config = tmp_path / "warpfold.toml"
    config.write_text('max_values = 7\nredis_url = "redis://:s3cret@there:1"')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WARPFOLD_WORKER_TOKEN_FILE", str(secret))
    monkeypatch.setenv("WARPFOLD_DATABASE_URL", "postgresql://ann:s3cret@there/x")
    shown_settings.main()
    printed = capsys.readouterr().out
    assert "s3cret" not in printed
    lines = {line["setting"]: (line["value"], line["origin"]) for line in map(json.loads, printed.splitlines())}
    assert lines["database_url"] == ("postgresql://ann:***@there/x", "WARPFOLD_DATABASE_URL")
    assert lines["redis_url"] == ("redis://:***@there:1", str(config))
    assert lines["worker_token"] == ("***", "WARPFOLD_WORKER_TOKEN_FILE")
    assert lines["max_values"] == (7, str(config))
    assert lines["lease_s"] == (15.0, "default")
    assert lines["gpu_seconds_per_day"] == (None, "default")
