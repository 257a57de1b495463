from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from warpfold.app import setting_types
from warpfold.app.setting_types import ListOfFolders, ListOfUrls


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("PostgresUrl", "postgresql+psycopg://there/x"),
        ("RedisUrl", "unix:///run/redis.sock?db=0"),
        ("SchedulerAddress", "tls://host:8786"),
        ("SharedSecret", "s" * 32),
    ],
)
def test_a_text_of_its_form_is_taken_as_it_is_and_so_is_none(name: str, text: str) -> None:
    kind: TypeAdapter[str] = TypeAdapter(getattr(setting_types, name))
    assert [kind.validate_python(each) for each in (text, "")] == [text, ""]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("PostgresUrl", "mysql://there/x", "must begin with postgresql://"),
        ("RedisUrl", "there:6379", "must begin with redis://"),
        ("SchedulerAddress", "host:8786", "must be the address of a Dask scheduler"),
        ("SchedulerAddress", "tcp://host", "must be the address of a Dask scheduler"),
        ("SharedSecret", "s" * 31, "must have 32 characters"),
        ("SharedSecret", "s" * 31 + " s", "no space"),
        ("ListOfUrls", "http://a:8080 ftp://b", "'ftp://b' is not such a URL"),
        ("ListOfUrls", "http://user@a:8080", "must be URLs of apis"),
    ],
)
def test_another_text_is_refused_with_what_is_wanted(name: str, text: str, words: str) -> None:
    kind: TypeAdapter[Any] = TypeAdapter(getattr(setting_types, name))
    with pytest.raises(ValidationError, match=words):
        kind.validate_python(text)


def test_lists_are_taken_apart_and_made_alike(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    urls: TypeAdapter[ListOfUrls] = TypeAdapter(ListOfUrls)
    assert urls.validate_python("http://a:8080/  https://b") == ("http://a:8080", "https://b")
    folders: TypeAdapter[ListOfFolders] = TypeAdapter(ListOfFolders)
    assert folders.validate_python("x::y/../z") == (tmp_path / "x", tmp_path / "z")


def test_a_file_of_places_is_read_when_it_is_named(tmp_path: Path) -> None:
    kind: TypeAdapter[Path | None] = TypeAdapter(setting_types.FileOfPlaces)
    assert [kind.validate_python(each) for each in (None, "")] == [None, None]
    with pytest.raises(ValueError, match="cannot be read"):
        kind.validate_python(tmp_path / "nowhere.toml")
