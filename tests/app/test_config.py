import os
from pathlib import Path

import pytest

from warpfold.app.config import load_settings, origins


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
        ("OIDC_ISSUER", "http://id.example.org"),
        ("OIDC_ROLES", "lab=king"),
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


def written(folder: Path, text: str) -> Path:
    path = folder / "warpfold.toml"
    path.write_text(text)
    return path


def test_a_file_of_settings_is_read_where_a_process_starts_and_a_variable_goes_before_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = written(
        tmp_path, f'max_values = 7\ndata_roots = ["{tmp_path}"]\ndataset_urls = ["http://a:1/"]\nurl = "http://b"'
    )
    monkeypatch.chdir(tmp_path)
    settings = load_settings()
    assert (settings.max_values, settings.data_roots) == (7, (tmp_path.resolve(),))
    assert settings.dataset_urls == ("http://a:1",)
    assert origins()["max_values"] == str(path)
    monkeypatch.setenv("WARPFOLD_MAX_VALUES", "8")
    assert load_settings().max_values == 8
    assert (origins()["max_values"], origins()["lease_s"]) == ("WARPFOLD_MAX_VALUES", "default")


def test_a_file_of_settings_is_found_in_the_users_folder_or_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "warpfold").mkdir()
    written(tmp_path / "warpfold", "max_values = 7")
    monkeypatch.chdir(tmp_path)
    assert load_settings().max_values == 7
    monkeypatch.setenv("WARPFOLD_CONFIG", str(written(tmp_path, "lease_s = 9")))
    assert (load_settings().max_values, load_settings().lease_s) == (100_000, 9.0)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("max_valus = 7", "max_valus is no setting; is max_values meant?"),
        ("[server]\nmax_values = 7", "server is no setting"),
        ("max_values = 0", "max_values: Input should be greater than or equal to 1"),
        ("data_roots = 7", "data_roots: Input should be a valid tuple"),
        ("max_values", "cannot be read: "),
        (None, "cannot be read: there is no such file"),
    ],
)
def test_what_is_wrong_in_a_file_of_settings_is_named_with_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, fault: str
) -> None:
    path = tmp_path / "other.toml" if text is None else written(tmp_path, text)
    monkeypatch.setenv("WARPFOLD_CONFIG", str(path))
    with pytest.raises(SystemExit) as end:
        load_settings()
    printed = capsys.readouterr().err
    assert (end.value.code, printed.count("\n")) == (2, 1)
    assert printed.startswith(f"warpfold: {path}")
    assert fault in printed


def test_roles_of_groups_are_a_list_of_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPFOLD_OIDC_ROLES", "gpu admins=admin, a=b=user, *=viewer,")
    assert load_settings().oidc_roles == {"gpu admins": "admin", "a=b": "user", "*": "viewer"}
