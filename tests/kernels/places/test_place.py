"""Which URLs name an object of a place, and which are refused, without a word of what may be a secret."""

import pickle

import pytest

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.places.place import Place, Places, is_url

PLACES = Places(
    (
        Place("s3://sales/", secrets={"secret_access_key": "hush"}),
        Place("s3://shared/public/"),
        Place("https://data.example.org/pub/"),
        Place("https://data.example.org/pub/inner/", secrets={"Authorization": "hush"}),
        Place("http://plain.example.org:8080/"),
    )
)


def refused(url: str, *, pattern: bool = False) -> str:
    with pytest.raises(InvalidInput) as caught:
        PLACES.target(url, "source.path", pattern=pattern)
    assert caught.value.field == "source.path"
    return str(caught.value)


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("s3://sales/2026/a b.parquet", "2026/a b.parquet"),
        ("S3://sales/x", "x"),
        ("s3://shared/public/x.npy", "public/x.npy"),
        ("https://data.example.org/pub/x.npy", "pub/x.npy"),
        ("https://DATA.example.org:443/pub/a b.npy", "pub/a%20b.npy"),
        ("http://plain.example.org:8080/x", "x"),
    ],
)
def test_a_url_in_a_place_names_an_object(url: str, key: str) -> None:
    assert PLACES.target(url, "source.path").key == key


def test_the_innermost_place_gives_the_credentials() -> None:
    assert PLACES.target("https://data.example.org/pub/inner/x", "").place.secrets == {"Authorization": "hush"}
    assert not PLACES.target("https://data.example.org/pub/innermost", "").place.secrets


@pytest.mark.parametrize(
    "url",
    [
        "s3://other/x",
        "s3://sales2/x",
        "s3://shared/private/x",
        "s3://shared/publicity",
        "gs://sales/x",
        "https://data.example.org/secret/x",
        "https://data.example.org.evil.org/pub/x",
        "https://data.example.org:8443/pub/x",
        "http://data.example.org/pub/x",
        "https://plain.example.org:8080/x",
        "http://169.254.169.254/latest/meta-data",
    ],
)
def test_what_the_configuration_does_not_list_is_refused(url: str) -> None:
    assert "is outside of the places that this server may read" in refused(url)


@pytest.mark.parametrize(
    "url",
    [
        "s3://AKIA:hush@sales/x",
        "https://ada:hush@data.example.org/pub/x",
        "https://data.example.org%40hush/pub/x",
        "https://data.example.org/pub/x?X-Amz-Signature=hush",
        "https://data.example.org/pub/x#hush",
        "s3://sales/x?versionId=hush",
        "https://data.example.org?hush/pub/x",
    ],
)
def test_credentials_are_refused_and_not_repeated(url: str) -> None:
    message = refused(url)
    assert "credentials" in message
    assert "hush" not in message


@pytest.mark.parametrize(
    "url",
    [
        "https://data.example.org/pub/../secret",
        "https://data.example.org/pub/%2e%2e/secret",
        "https://data.example.org/pub/..%2fsecret",
        "https://data.example.org/pub/.%2E%5csecret",
        "https://data.example.org/pub//x",
        "s3://shared/public/../private/x",
        "s3://shared//public/x",
        "s3://sales/a\\b",
        "s3://sales/a\nb",
        "ftp://data.example.org/pub/x",
        "file:///etc/passwd",
        "s3:///x",
        "https:///pub/x",
        "https://data.example.org:x/pub/x",
        "s3://sales/" + "x" * 5000,
    ],
)
def test_what_leads_elsewhere_is_refused(url: str) -> None:
    refused(url)


def test_a_pattern_names_objects_of_buckets_alone() -> None:
    assert PLACES.target("s3://sales/run-[ab]/*.npy", "", pattern=True).key == "run-[ab]/*.npy"
    assert "credentials" in refused("s3://sales/x?X-Amz-Signature=hush*", pattern=True)
    assert "does not list its files" in refused("https://data.example.org/pub/*.npy", pattern=True)


def test_a_server_without_places_says_so() -> None:
    with pytest.raises(InvalidInput, match="allowed no places"):
        Places().target("s3://sales/x", "source.path")


@pytest.mark.parametrize(
    "location",
    [
        "https://elsewhere.example.org/x",
        "http://data.example.org/pub/x",
        "http://169.254.169.254/pub/x",
        "https://ada:hush@data.example.org/pub/x",
        "s3://sales/x",
        "//data.example.org/pub/x",
        "https://data.example.org/pub/é",
    ],
)
def test_a_redirect_leads_to_places_alone(location: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        PLACES.redirected(location)
    assert "hush" not in str(caught.value)


def test_a_redirect_may_have_a_query_which_is_kept_and_not_shown() -> None:
    target, url = PLACES.redirected("https://data.example.org/pub/x?sig=hush")
    assert url.endswith("?sig=hush")
    assert target.url == "https://data.example.org/pub/x"


def test_what_is_printed_of_places_has_no_secret() -> None:
    assert "hush" not in repr(PLACES)
    assert pickle.loads(pickle.dumps(PLACES)) == PLACES  # noqa: S301 (as it travels to the child)


def test_names_of_files_are_no_urls() -> None:
    assert is_url("s3://bucket/x")
    assert not is_url("data/x:y//z")
    assert not is_url("/data/x.npy")
