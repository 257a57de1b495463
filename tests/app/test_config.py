import os
from pathlib import Path

import pytest

from warpfold.app.config import load_settings


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WARPFOLD_MAX_VALUES", "7")
    monkeypatch.setenv("WARPFOLD_DATA_ROOTS", f"{tmp_path}{os.pathsep}{tmp_path}/deeper")
    settings = load_settings()
    assert settings.max_values == 7
    assert settings.data_roots == (tmp_path.resolve(), (tmp_path / "deeper").resolve())


def test_without_any_there_are_no_servers_and_no_roots(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("WARPFOLD_"):
            monkeypatch.delenv(name)
    settings = load_settings()
    assert (settings.database_url, settings.redis_url, settings.data_roots) == ("", "", ())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("MAX_BODY_BYTES", "0"), ("LEASE_S", "-1"), ("PREFETCH", "many")),
        *(("DATABASE_URL", "mysql://there/x"), ("REDIS_URL", "there:6379")),
    ],
)
def test_nonsense_is_refused_at_the_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, value: str
) -> None:
    monkeypatch.setenv(f"WARPFOLD_{name}", value)
    with pytest.raises(SystemExit) as end:
        load_settings()
    printed = capsys.readouterr().err
    assert (end.value.code, printed.count("\n")) == (2, 1)
    assert printed.startswith(f"warpfold: WARPFOLD_{name}: ")


def test_a_secret_may_be_in_a_file_and_a_variable_goes_before_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    secret = tmp_path / "database_url"
    secret.write_text("postgresql://from-the-file\n")
    monkeypatch.delenv("WARPFOLD_DATABASE_URL", raising=False)
    monkeypatch.setenv("WARPFOLD_DATABASE_URL_FILE", str(secret))
    assert load_settings().database_url == "postgresql://from-the-file"
    monkeypatch.setenv("WARPFOLD_DATABASE_URL", "postgresql://from-the-variable")
    assert load_settings().database_url == "postgresql://from-the-variable"


def test_a_file_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WARPFOLD_REDIS_URL_FILE", str(tmp_path / "nowhere"))
    with pytest.raises(SystemExit):
        load_settings()
    assert "warpfold: WARPFOLD_REDIS_URL_FILE names a file that cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("WARPFOLD_MAX_VALUS", "WARPFOLD_MAX_VALUES"),
        ("WARPFOLD_DATABASE_URL_FIEL", "WARPFOLD_DATABASE_URL_FILE"),
        ("warpfold_lease", "WARPFOLD_LEASE_S"),
        ("WARPFOLD_ZZZ", None),
    ],
)
def test_a_variable_that_is_no_setting_is_told_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], variable: str, meant: str | None
) -> None:
    monkeypatch.setenv(variable, "7")
    load_settings()
    printed = capsys.readouterr().err
    assert f"warpfold: warning: {variable} is no setting, and has no effect" in printed
    assert ("meant?" in printed) == (meant is not None)
    assert meant is None or f"is {meant} meant?" in printed


@pytest.mark.parametrize(
    "variable",
    [
        *("WARPFOLD_MAX_VALUES", "warpfold_max_values", "WARPFOLD_URL", "WARPFOLD_TOKEN", "WARPFOLD_VERSION"),
        *("WARPFOLD_SERVICE_HOST", "WARPFOLD_PORT", "WARPFOLD_PORT_8080_TCP_ADDR", "WARPFOLD_API_SERVICE_PORT_HTTP"),
        *("NUMBA_CACHE_DIR", "_WARPFOLD_COMPLETE"),
    ],
)
def test_variables_of_others_are_left_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], variable: str
) -> None:
    monkeypatch.setenv(variable, "7")
    load_settings()
    assert "no setting" not in capsys.readouterr().err
