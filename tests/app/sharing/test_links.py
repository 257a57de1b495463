import re

import httpx
import pytest
from sqlalchemy import text

from tests.support.api import NO_TLS, Api
from tests.support.window import Window
from warpfold.app.sharing import links


@pytest.fixture
def job(api: Api) -> str:
    """A private job of ann that has ended."""
    job_id = api.submit("ann")
    api.finish(api.claim(job_id))
    assert api.client("ann").put(f"/v1/jobs/{job_id}/sharing", json={}).is_success
    return job_id


def made(api: Api, job_id: str, user: str = "ann", **body: object) -> dict[str, object]:
    answer = api.client(user).post(f"/v1/jobs/{job_id}/links", json=body)
    assert (answer.status_code, answer.headers["Cache-Control"]) == (201, "no-store"), answer.text
    link: dict[str, object] = answer.json()
    return link


def opened(api: Api, path: object, method: str = "GET") -> httpx.Response:
    """What somebody without a token gets."""
    return httpx.request(method, f"{api.url}{path}", headers={"Accept": "text/html"}, verify=NO_TLS)


def test_whoever_has_the_link_sees_the_report_and_nothing_else(api: Api, job: str) -> None:
    other = api.submit("ann")
    link = made(api, job)
    answer = opened(api, link["path"])
    assert answer.status_code == 200
    assert job in answer.text
    assert other not in answer.text
    report = api.client("ann").get(f"/v1/reports/{job}", headers={"Accept": "text/html"})
    assert answer.text == report.text
    assert (answer.headers["Referrer-Policy"], answer.headers["X-Robots-Tag"]) == ("no-referrer", "noindex")
    assert answer.headers["Cache-Control"] == "private, no-store"
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert "set-cookie" not in answer.headers
    for path in (f"/jobs/{job}", f"/v1/jobs/{job}", f"/v1/reports/{job}", f"{link['path']}/x"):
        assert opened(api, path).status_code in (303, 401, 404)
    secret = str(link["path"]).rpartition("/")[2]
    bearer = {"Authorization": f"Bearer {secret}"}
    assert httpx.get(f"{api.url}/v1/jobs/{job}", headers=bearer, verify=NO_TLS).status_code == 401
    assert opened(api, link["path"], "POST").status_code == 405


def test_a_link_ends_when_it_expires_is_removed_or_its_job_goes(api: Api, job: str) -> None:
    ann = api.client("ann")
    removed, expired, gone = (made(api, job, expires_in_days=2) for _ in range(3))
    assert ann.delete(f"/v1/jobs/{job}/links/{removed['id']}").status_code == 204
    assert ann.delete(f"/v1/jobs/{job}/links/{removed['id']}").status_code == 404
    over = f"update job_links set expires_at = now() where id = {expired['id']}"  # noqa: S608
    api.database.run(lambda connection: connection.execute(text(over)))
    assert [opened(api, link["path"]).status_code for link in (removed, expired, gone)] == [404, 404, 200]
    assert [link["id"] for link in ann.get(f"/v1/jobs/{job}/links").json()["items"]] == [gone["id"]]
    api.database.run(lambda connection: connection.execute(text("delete from jobs")))
    assert opened(api, gone["path"]).status_code == 404
    assert opened(api, "/shared/wl_unknown").status_code == opened(api, "/shared/x").status_code == 404


def test_only_the_hash_is_kept_and_the_audit_log_knows_who_made_it(api: Api, job: str) -> None:
    link = made(api, job, "root", expires_in_days=1)
    api.client("ann").delete(f"/v1/jobs/{job}/links/{link['id']}")
    again = made(api, job)
    secret = str(again["path"]).rpartition("/")[2]
    row = api.database.run(lambda connection: connection.execute(text("select * from job_links")).one())
    assert secret not in repr(row)
    assert str(again["path"]) not in api.client("ann").get(f"/v1/jobs/{job}/links").text
    items = api.client("root").get("/v1/audit", params={"thing": job, "limit": 3}).json()["items"]
    assert [(item["actor"], item["action"], item["owner"]) for item in items] == [
        ("ann", "make_link", "ann"),
        ("ann", "remove_link", "ann"),
        ("root", "make_link", "ann"),
    ]


@pytest.mark.parametrize("days", [0, -1, 367, "7", None])
def test_a_link_has_an_end(api: Api, job: str, days: object) -> None:
    refused = api.client("ann").post(f"/v1/jobs/{job}/links", json={"expires_in_days": days})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "expires_in_days")


def test_a_job_has_only_so_many_links(api: Api, job: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "MOST_LINKS", 2)
    for _ in range(2):
        made(api, job)
    assert api.client("ann").post(f"/v1/jobs/{job}/links", json={}).status_code == 409


def test_a_link_to_a_job_that_runs_says_so(api: Api) -> None:
    job = api.submit("ann")
    answer = opened(api, made(api, job)["path"])
    assert (answer.status_code, "has not ended" in answer.text, job in answer.text) == (200, True, False)


def test_the_page_of_a_job_makes_lists_and_removes_links(api: Api, job: str) -> None:
    with Window(api) as ann, Window(api) as bob:
        ann.sign_in("ann")
        bob.sign_in("bob")
        assert f'hx-get="/jobs/{job}/links"' in ann.get(f"/jobs/{job}").text
        shown = ann.post(f"/jobs/{job}/links", data={"days": "2"}).text
        [address] = re.findall(r"http://\S+/shared/wl_[\w-]{43}", shown)
        assert httpx.get(address, verify=NO_TLS).status_code == 200
        listed = ann.get(f"/jobs/{job}/links").text
        assert "/shared/" not in listed
        [link] = re.findall(rf'action="/jobs/{job}/links/(\d+)/remove"', listed)
        assert bob.post(f"/jobs/{job}/links").status_code == 404
        assert bob.post(f"/jobs/{job}/links/{link}/remove").status_code == 404
        assert "alert" in ann.post(f"/jobs/{job}/links", data={"days": "soon"}).text
        assert ann.post(f"/jobs/{job}/links/{link}/remove").status_code == 200
        assert httpx.get(address, verify=NO_TLS).status_code == 404
