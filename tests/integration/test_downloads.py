"""Uploaded arrays are given to those who hold them, to admins and to workers, and to nobody else."""

import base64
import hashlib
from collections.abc import Iterator

import httpx
import pytest

from tests.support.api import Api, running_api
from warpfold.app.config import Settings

TOKEN = "a-secret-that-workers-and-apis-share"
BYTES = bytes(range(256)) * 40


@pytest.fixture(scope="module")
def downloads(shared_api: Api, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    folder = tmp_path_factory.mktemp("datasets")
    own = {"dataset_dir": folder, "worker_token": TOKEN}
    with running_api(shared_api.settings.model_copy(update=own)) as running:
        yield running


@pytest.fixture
def file(downloads: Api) -> Iterator[str]:
    """The path of the file of an array of Ann's."""
    kept = downloads.client().post("/v1/datasets?dtype=uint8", content=BYTES)
    assert kept.is_success, kept.text
    path = f"/v1/datasets/{kept.json()['id']}"
    yield f"{path}/file"
    downloads.client().delete(path)
    downloads.close_clients()


def test_an_owner_downloads_what_was_uploaded(downloads: Api, file: str) -> None:
    answer = downloads.client().get(file)
    assert answer.status_code == 200
    assert answer.content.endswith(BYTES)
    digest = hashlib.sha256(answer.content)
    assert digest.hexdigest() in file
    assert answer.headers["ETag"] == f'"{digest.hexdigest()}"'
    assert answer.headers["Repr-Digest"] == f"sha-256=:{base64.b64encode(digest.digest()).decode()}:"
    again = downloads.client().get(file, headers={"If-None-Match": answer.headers["ETag"]})
    assert again.status_code == 304
    assert again.content == b""


def test_a_download_goes_on_where_it_was_cut(downloads: Api, file: str) -> None:
    client = downloads.client()
    whole = client.get(file).content
    rest = client.get(file, headers={"Range": "bytes=1000-"})
    assert (rest.status_code, rest.content) == (206, whole[1000:])
    assert rest.headers["Content-Range"] == f"bytes 1000-{len(whole) - 1}/{len(whole)}"
    changed = client.get(file, headers={"Range": "bytes=1000-", "If-Range": '"another"'})
    assert (changed.status_code, changed.content) == (200, whole)
    beyond = client.get(file, headers={"Range": f"bytes={len(whole)}-"})
    assert beyond.status_code == 416
    assert beyond.headers["Content-Range"] == f"bytes */{len(whole)}"


def _get(api: Api, path: str, token: str) -> httpx.Response:
    return httpx.get(api.url + path, headers={"Authorization": f"Bearer {token}"})


def test_admins_and_workers_may_download_it_and_no_other_user(downloads: Api, file: str) -> None:
    assert downloads.client("root").get(file).status_code == 200
    refused = downloads.client("bob").get(file)
    assert refused.status_code == 404
    assert "ann" not in refused.json()["detail"]
    assert _get(downloads, file, TOKEN).status_code == 200
    for wrong in (TOKEN[:-1], TOKEN + "x", "wf_guessed"):
        assert _get(downloads, file, wrong).status_code == 401
    assert httpx.get(downloads.url + file).status_code == 401
    assert downloads.client("root").get(f"{file}?part=1").status_code == 422


def test_the_token_of_workers_opens_nothing_else(downloads: Api, file: str) -> None:
    for path in ("/v1/datasets", file.removesuffix("/file"), "/v1/jobs", "/v1/users/me/tokens"):
        assert _get(downloads, path, TOKEN).status_code == 401


def test_without_a_token_of_workers_an_empty_one_is_refused(api: Api) -> None:
    assert api.settings.worker_token == ""
    kept = api.client().post("/v1/datasets?dtype=uint8", content=BYTES).json()["id"]
    answer = httpx.get(f"{api.url}/v1/datasets/{kept}/file", headers={"Authorization": "Bearer"})
    api.client().delete(f"/v1/datasets/{kept}")
    assert answer.status_code == 401


def test_an_array_that_is_not_there_is_not_found(downloads: Api, file: str) -> None:
    assert _get(downloads, f"/v1/datasets/{'0' * 64}/file", TOKEN).status_code == 404
    [path] = downloads.settings.datasets_dir().rglob("*.npy")
    path.unlink()  # it lies with the api of another machine
    missing = _get(downloads, file, TOKEN)
    assert missing.status_code == 404
    assert "not on the machine of this api" in missing.json()["detail"]


@pytest.mark.parametrize("token", ["short", "x" * 31, "with a space" * 4, "ü" * 40])
def test_a_token_of_workers_is_long_and_can_stand_in_a_header(settings: Settings, token: str) -> None:
    with pytest.raises(ValueError, match="worker_token"):
        Settings.model_validate({**settings.model_dump(), "worker_token": token})
