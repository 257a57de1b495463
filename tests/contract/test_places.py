"""The administrator's file of places."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from warpfold.app.config import Settings
from warpfold.contract.places import places_in

S3 = {"url": "s3://sales", "access_key_id": "AKIA", "secret_access_key": "hush"}


def written(folder: Path, *places: dict[str, Any]) -> Path:
    path = folder / "places.json"
    path.write_text(json.dumps({"place": places}))
    return path


def refused(path: Path) -> str:
    with pytest.raises(ValueError, match="file of places") as caught:
        places_in(path)
    message = str(caught.value)
    assert "hush" not in message
    assert "\n" not in message
    return message


def test_toml_and_json_say_the_same(tmp_path: Path) -> None:
    toml = tmp_path / "places.toml"
    toml.write_text('[[place]]\nurl = "s3://sales"\naccess_key_id = "AKIA"\nsecret_access_key = "hush"\n')
    assert places_in(toml) == places_in(written(tmp_path, S3))
    (place,) = places_in(toml).listed
    assert (place.url, place.secrets) == ("s3://sales/", {"access_key_id": "AKIA", "secret_access_key": "hush"})


def test_a_secret_may_be_in_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("hush\n")
    entry = {"url": "az://inputs/2026", "account": "acme", "account_key_file": "key"}
    (place,) = places_in(written(tmp_path, entry)).listed
    assert (place.url, place.account, place.secrets) == ("az://inputs/2026/", "acme", {"account_key": "hush"})


def test_a_web_server_gets_a_header(tmp_path: Path) -> None:
    with_token = {"url": "https://data.example.org/pub/", "bearer_token": "hush"}
    with_name = {"url": "http://10.0.0.7:8000", "private": True, "username": "ada", "password": "hush"}
    first, second = places_in(written(tmp_path, with_token, with_name)).listed
    assert first.secrets == {"Authorization": "Bearer hush"}
    assert second.secrets == {"Authorization": "Basic " + base64.b64encode(b"ada:hush").decode()}
    assert (second.url, second.private) == ("http://10.0.0.7:8000/", True)


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({**S3, "secret_acess_key": "hush"}, "place.0.secret_acess_key"),
        ({"url": "s3://sales"}, "a bucket needs access_key_id and secret_access_key"),
        ({**S3, "anonymous": True}, "or else anonymous"),
        ({"url": "s3://sales", "access_key_id": "hush"}, "a bucket needs"),
        ({"url": "gs://sales", "account_key": "hush"}, "account_key is not for gs"),
        ({"url": "az://sales", "anonymous": True}, "needs an `account`"),
        ({"url": "https://h/", "username": "hush"}, "a username and a password"),
        ({"url": "https://ada:hush@h/"}, "credentials"),
        ({"url": "https://h/?sig=hush"}, "no query"),
        ({"url": "ftp://h/"}, "begins with"),
        ({**S3, "endpoint": "minio:9000"}, "endpoint"),
        ({**S3, "private": "perhaps hush"}, "place.0.private"),
    ],
)
def test_what_is_wrong_is_told_without_its_value(tmp_path: Path, entry: dict[str, Any], why: str) -> None:
    assert why in refused(written(tmp_path, entry))


def test_a_file_that_is_none_is_told(tmp_path: Path) -> None:
    assert "cannot be read" in refused(tmp_path / "none.toml")
    (tmp_path / "a.toml").write_text('secret_access_key = "hush')
    assert "is not TOML" in refused(tmp_path / "a.toml")
    (tmp_path / "a.json").write_text('{"hush"')
    assert "is not JSON" in refused(tmp_path / "a.json")
    (tmp_path / "long.toml").write_text("#" * (1 << 21))
    assert "more than" in refused(tmp_path / "long.toml")


def test_settings_read_it_and_show_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPFOLD_PLACES", str(written(tmp_path, S3)))
    settings = Settings()
    assert settings.folders().places.listed[0].secrets["secret_access_key"] == "hush"
    assert "hush" not in repr(settings)
    assert "hush" not in settings.model_dump_json()
    monkeypatch.setenv("WARPFOLD_PLACES", "")
    assert not Settings().folders().places.listed
    monkeypatch.setenv("WARPFOLD_PLACES", str(tmp_path / "none"))
    with pytest.raises(ValueError, match="cannot be read"):
        Settings()
