"""What sharing changes, and what it does not."""

from typing import Any

import pytest

from tests.support.api import THREE_VALUES, Api, running_api
from tests.support.private_things import PrivateThings, let_all_in, made


def test_a_batch_is_private_with_its_jobs_and_shared_with_them(shared: Api, things: PrivateThings) -> None:
    array = {"type": "dataset", "id": things.dataset_id}
    specs = [dict(THREE_VALUES), {"kind": "reduce", "source": array}]
    accepted = shared.client("ann").post("/v1/batches", json={"specs": specs}).json()
    paths = [f"/v1/batches/{accepted['id']}", *(f"/v1/jobs/{job}" for job in accepted["jobs"])]
    cyd, ann = shared.client("cyd"), shared.client("ann")
    assert {cyd.get(path).status_code for path in paths} == {404}
    for sharing in ({"users": ["cyd"]}, {"everyone": True}):
        ann.put(f"{paths[0]}/sharing", json=sharing)
        assert {cyd.get(path).status_code for path in paths} == {200}
        ann.put(f"{paths[0]}/sharing", json={})
        assert {cyd.get(path).status_code for path in paths} == {404}


def test_the_jobs_of_a_preset_are_shared_with_it(shared: Api) -> None:
    ann, cyd = shared.client("ann"), shared.client("cyd")
    preset = ann.post("/v1/jobs", json={"kind": "preset", "preset": "p05-three-numbers", "backend": "cpu"})
    assert preset.status_code == 202, preset.text
    paths = [f"/v1/jobs/{job['id']}" for job in (preset.json(), *preset.json()["children"])]
    ann.put(f"{paths[0]}/sharing", json={})
    assert {cyd.get(path).status_code for path in paths} == {404}
    ann.put(f"{paths[0]}/sharing", json={"users": ["cyd"]})
    assert {cyd.get(path).status_code for path in paths} == {200}


def test_a_stream_ends_when_its_job_is_no_longer_shared(shared: Api) -> None:
    job = shared.submit("ann")
    with shared.client("cyd").stream("GET", f"/v1/jobs/{job}/events") as answer:
        lines = answer.iter_lines()
        assert any("submitted" in line for line in lines)
        shared.client("ann").put(f"/v1/jobs/{job}/sharing", json={})
        shared.finish(shared.claim(job))
        assert not any("succeeded" in line for line in lines)


def test_users_who_are_named_must_be_there(shared: Api, things: PrivateThings) -> None:
    path = f"/v1/datasets/{things.dataset_id}/sharing"
    refused = shared.client("ann").put(path, json={"users": ["bob", "nobody"]})
    assert refused.json()["errors"] == [{"field": "users.1", "message": "there is no user of this name"}]
    assert shared.client("ann").get(path).json() == {"everyone": False, "users": ["bob"]}


@pytest.mark.parametrize(
    ("share_old", "seen"), [("nothing", (404, 404)), ("jobs", (404, 200)), ("everything", (200, 200))]
)
def test_what_is_older_than_sharing_is_seen_as_the_setting_says(
    shared: Api, things: PrivateThings, share_old: str, seen: tuple[int, int]
) -> None:
    old = made(shared)
    paths = f"/v1/datasets/{old.dataset_id}", f"/v1/jobs/{old.job_id}"

    def forget(connection: Any) -> None:
        for table in ("datasets", "jobs"):
            connection.exec_driver_sql(f"update {table} set shared = null")  # noqa: S608

    shared.database.run(forget)
    with running_api(shared.settings.model_copy(update={"share_old": share_old})) as api:
        let_all_in(api)
        assert tuple(api.client("cyd").get(path).status_code for path in paths) == seen
        assert {api.client("ann").get(path).status_code for path in paths} == {200}
