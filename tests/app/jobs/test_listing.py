"""Lists of jobs: what filters leave, how pages meet, what is counted, and which index answers."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
import psycopg
import pytest
from sqlalchemy import Connection, select

from tests.support.api import RESULT, THREE_VALUES, Api
from tests.support.query_plans import Explained
from tests.support.servers import fresh_database
from warpfold.app.auth.visibility import Viewer, visible
from warpfold.app.db import BlockingDatabase, conninfo
from warpfold.app.jobs import listing, tags, transitions
from warpfold.app.jobs.listing import Filter
from warpfold.app.jobs.views import JobPage
from warpfold.app.tables.jobs import jobs
from warpfold.app.tables.users import users
from warpfold.contract.states import Status
from warpfold.worker.embedded import EmbeddedPostgres


def ids(response: httpx.Response) -> list[str]:
    assert response.status_code == 200, response.text
    JobPage.model_validate_json(response.content)
    return [job["id"] for job in response.json()["items"]]


def refused(response: httpx.Response) -> list[str]:
    """The fields that a problem names."""
    assert response.status_code == 422, response.text
    return [error["field"] for error in response.json()["errors"]]


def test_several_states_kinds_and_owners_are_each_one_of_them(api: Api, http: httpx.Client) -> None:
    queued, running, done = api.submit(), api.submit(), api.submit("bob")
    api.claim(running)
    api.finish(api.claim(done))
    study = http.post("/v1/jobs", json={"kind": "benchmark", "strategies": ["exact"], "sizes": [1000]}).json()["id"]
    assert ids(http.get("/v1/jobs?status=queued&status=succeeded")) == [study, done, queued]
    assert ids(http.get("/v1/jobs?status=queued&status=queued")) == [study, queued]
    assert ids(http.get("/v1/jobs?kind=benchmark&kind=accuracy")) == [study]
    assert ids(http.get("/v1/jobs?owner=bob&owner=carl")) == [done]
    assert ids(http.get("/v1/jobs?owner=bob&owner=ann&status=running&status=succeeded")) == [done, running]


def test_a_job_is_found_by_the_beginning_of_its_id_however_many_came_later(api: Api, http: httpx.Client) -> None:
    first = api.submit()
    others = [api.submit() for _ in range(3)]
    for length in (4, 8, 9, 13, 36):
        listed = ids(http.get("/v1/jobs", params={"id": first[:length]}))
        assert first in listed
        assert all(job.startswith(first[:length]) for job in listed)
    assert ids(http.get("/v1/jobs", params={"id": first.upper()})) == [first]
    assert ids(http.get("/v1/jobs", params={"id": first, "status": "failed"})) == []
    assert http.get("/v1/jobs", params={"id": others[0], "count": True}).json()["count"]["number"] == 1


def test_what_no_id_begins_with_is_refused_or_finds_nothing(api: Api, http: httpx.Client) -> None:
    api.submit()
    for text in ("5f0", "zzzz", "5f0cbe4b-91c5-4fd2-8b3e-0a6d0f9c7a11-0", "5f0%"):
        assert refused(http.get("/v1/jobs", params={"id": text})) == ["id"]
    assert ids(http.get("/v1/jobs", params={"id": "5f0c-be4b"})) == []


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("sweep", [1, 0]),
        ("Swe", [1, 0]),
        ("eep", []),
        ("rate 0.1", [1]),
        ("lr-sweep", [1, 0]),
        ("sweep missing", []),
        ("größe", [2]),
        ("gr", [2]),
        ("100%_", [2]),
        ("note", [2]),
    ],
)
def test_text_finds_words_of_tags_by_their_beginnings(
    api: Api, http: httpx.Client, text: str, wanted: list[int]
) -> None:
    of = [{"run": "lr-sweep-7"}, {"run": "LR Sweep", "rate": "0.1"}, {"note": "Größe: 100%_"}]
    jobs = [api.submit(tags=tags) for tags in of]
    assert ids(http.get("/v1/jobs", params={"text": text})) == [jobs[index] for index in wanted]


def test_text_finds_the_jobs_of_a_preset_by_their_names(api: Api, http: httpx.Client) -> None:
    api.submit()
    preset = http.post("/v1/jobs", json={"kind": "preset", "preset": "p34-reduction"}).json()
    [child, *_] = preset["children"]
    word = child["name"].split()[0].split("_")[0].split("-")[0]
    listed = ids(http.get("/v1/jobs", params={"text": word}))
    assert child["id"] in listed
    assert preset["id"] not in listed


def test_jobs_are_found_by_the_time_of_their_acceptance(api: Api, http: httpx.Client) -> None:
    jobs = [api.submit(tags={"at": str(index)}) for index in range(3)]
    times = [http.get(f"/v1/jobs/{job}").json()["created_at"] for job in jobs]

    def between(**bounds: str) -> list[str]:
        return ids(http.get("/v1/jobs", params=bounds))

    assert between(since=times[1]) == [jobs[2], jobs[1]]
    assert between(until=times[1]) == [jobs[0]]
    assert between(since=times[1], until=times[2]) == [jobs[1]]
    assert between(since=times[1], tag="at:2", status="queued") == [jobs[2]]
    assert between(since="2100-01-01") == []
    assert between(until="2000-01-01") == []
    naive = datetime.fromisoformat(times[1]).astimezone(UTC).replace(tzinfo=None).isoformat()
    assert between(since=naive) == [jobs[2], jobs[1]]


def test_a_time_holds_for_a_job_whose_number_came_before_its_turn(own_api: Api) -> None:
    """Two submissions that overlap may have their times in one order and their numbers in the other."""
    early, late, last = (UUID(own_api.submit()) for _ in range(3))
    now = datetime.now(UTC)
    with psycopg.connect(own_api.settings.database_url, autocommit=True) as connection:
        for job, seconds in ((early, 20), (late, 0), (last, 600)):
            moved = now + timedelta(seconds=seconds)
            connection.execute("update jobs set created_at = %s where id = %s", (moved, job))

    def listed_between(since: datetime | None = None, until: datetime | None = None) -> list[UUID]:
        return [job.id for job in own_api.database.run(listing.page, Filter(since=since, until=until), 10).jobs]

    assert listed_between(since=now + timedelta(seconds=10)) == [last, early]
    assert listed_between(until=now + timedelta(seconds=10)) == [late]
    assert listed_between(since=now, until=now + timedelta(seconds=30)) == [late, early]


def test_a_list_is_counted_when_that_is_asked_for(api: Api, http: httpx.Client) -> None:
    for index in range(3):
        api.submit(tags={"half": str(index % 2)})
    assert "count" not in http.get("/v1/jobs").json()
    assert http.get("/v1/jobs?count=true&limit=1").json()["count"] == {"number": 3, "exact": True}
    assert http.get("/v1/jobs?count=true&tag=half:0&status=queued").json()["count"] == {"number": 2, "exact": True}
    assert http.get("/v1/jobs?count=true&tag=none").json()["count"] == {"number": 0, "exact": True}


def test_jobs_past_their_time_leave_the_lists_of_their_tags(own_api: Api) -> None:
    old = own_api.submit(tags={"gone": "soon", "kept": "on"})
    own_api.submit(tags={"kept": "on"})
    own_api.finish(own_api.claim(old))
    database = own_api.database
    assert database.run(transitions.remove_old, timedelta(0)) == 1
    with psycopg.connect(own_api.settings.database_url, autocommit=True) as connection:
        assert connection.execute("select count(*) from job_tags").fetchone() == (1,)
        assert database.run(tags.sweep, tags.BEGINNING, 2) is not None
        after: tuple[str, int] | None = tags.BEGINNING
        while after is not None:
            after = database.run(tags.sweep, after, 2)
        words = {row[0] for row in connection.execute("select word from tag_words")}
    assert words == {":kept", "kept", "on"}


# --- work that is bounded

ROWS, MOST_ROWS = 6000, 2000
_USERS = "insert into users (name, role) values ('ann', 'user'), ('bob', 'user')"
# Ann has the newest half. Every job but the oldest succeeded. Reductions are odd, and benchmarks even.
_JOBS = """
    insert into jobs (id, owner_id, kind, priority, needs, timeout_s, spec, tags, status, created_at, finished_at)
    select gen_random_uuid(), case when i > %(rows)s / 2 then 1 else 2 end,
           case i %% 2 when 0 then 'benchmark' else 'reduce' end, 1, 'any', 60, '{}',
           jsonb_build_object('half', case when i > %(rows)s / 2 then 'new' else 'old' end, 'all', 'some words',
                              'run', i::text, 'parity', (i %% 2)::text),
           case when i = 1 then 'failed' else 'succeeded' end, now() - (%(rows)s - i) * interval '1 minute', now()
    from generate_series(1, %(rows)s) i
"""
_IDS = "select id from jobs"


@pytest.fixture(scope="module")
def many(shared_postgres: EmbeddedPostgres) -> Iterator[str]:
    """Six thousand jobs that ended."""
    with fresh_database(shared_postgres) as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_USERS)
        connection.execute(_JOBS, {"rows": ROWS})
        stored = [row[0] for row in connection.execute(_IDS)]
        database = BlockingDatabase(url, application="test")
        database.run(tags.note, stored)
        database.close()
        connection.execute("vacuum analyze")
        yield url


def _an_hour() -> dict[str, Any]:
    now = datetime.now(UTC)
    return {"since": now - timedelta(hours=50), "until": now - timedelta(hours=49)}


INDEXES: Mapping[str, tuple[Callable[[], Filter], str]] = {
    "everything": (Filter, "uq_jobs_seq"),
    "several states": (lambda: Filter(statuses=(Status.FAILED, Status.SUCCEEDED)), "ix_jobs_list"),
    "a state that no job has": (lambda: Filter(statuses=(Status.CANCELLED,)), "ix_jobs_list"),
    "several kinds": (lambda: Filter(kinds=("scaling", "reduce")), "ix_jobs_list"),
    "state and kind": (lambda: Filter(statuses=(Status.FAILED,), kinds=("reduce",)), "ix_jobs_list"),
    "several owners": (lambda: Filter(owners=("ann", "bob")), "ix_jobs_owner_list"),
    "owner and state": (lambda: Filter(owners=("bob",), statuses=(Status.FAILED,)), "ix_jobs_owner_list"),
    "a tag": (lambda: Filter(tags=(("half", "old"),)), "pk_job_tags"),
    "the name of a tag": (lambda: Filter(tags=(("all", None),)), "pk_tag_words"),
    "a tag and an owner who never used it": (lambda: Filter(tags=(("half", "old"),), owners=("ann",)), "pk_job_tags"),
    "a tag and a kind that never met": (lambda: Filter(tags=(("parity", "0"),), kinds=("reduce",)), "uq_jobs_seq"),
    "a tag and a rare state": (lambda: Filter(tags=(("half", "old"),), statuses=(Status.FAILED,)), "ix_jobs_list"),
    "words": (lambda: Filter(text="wor"), "pk_tag_words"),
    "words of a tag": (lambda: Filter(text="old"), "pk_job_tags"),
    "an hour": (lambda: Filter(**_an_hour()), "ix_jobs_created_at"),
    "an hour of a state": (lambda: Filter(statuses=(Status.SUCCEEDED,), **_an_hour()), "ix_jobs_created_at"),
    "a batch": (lambda: Filter(batch=UUID(int=1)), "ix_jobs_batch_id_seq"),
    "a preset": (lambda: Filter(parent=UUID(int=1)), "ix_jobs_parent_id"),
}


@pytest.mark.parametrize("name", INDEXES)
def test_a_filter_is_answered_by_its_index(many: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "_CHUNKS", (64, 256, 512))
    monkeypatch.setattr(listing, "_COUNTED_CHUNKS", (301, 512))
    make, index = INDEXES[name]
    with closing(Explained(many, searches=True)) as explained:
        for work in (_page, _count):
            reads = explained.reads(work, make())
            assert any(node.endswith(f" {index}") for read in reads for node in read.nodes), reads
            assert all(read.rows <= MOST_ROWS for read in reads), reads


def _page(connection: Connection, chosen: Filter) -> None:
    listing.page(connection, chosen, 50)


def _count(connection: Connection, chosen: Filter) -> None:
    listing.count(connection, chosen, 300)


def test_pages_of_a_search_that_finds_little_still_come_to_its_end(many: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "_CHUNKS", (50, 200, 400))
    with closing(BlockingDatabase(many, application="test")) as database:
        listed, empty = [], 0
        rare = Filter(tags=(("all", "some words"), ("parity", "1")), text="wor", statuses=tuple(Status), until=_later())
        for chosen in (Filter(tags=(("parity", "0"),), kinds=("reduce",)), rare):
            page = database.run(listing.page, chosen, 100)
            while page.following is not None:
                empty += not page.jobs
                listed += [job.seq for job in page.jobs]
                page = database.run(listing.page, chosen, 100, page.following)
            listed += [job.seq for job in page.jobs]
        assert empty > 1
        assert listed == sorted(set(listed), reverse=True)
        assert len(listed) == ROWS // 2


def test_a_count_that_would_look_at_too_much_says_at_least(many: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "_COUNTED_CHUNKS", (101, 200, 400))
    with closing(BlockingDatabase(many, application="test")) as database:
        never = Filter(tags=(("parity", "0"),), kinds=("reduce",))
        assert database.run(listing.count, never, 100) == listing.Tally(0, exact=False)
        assert database.run(listing.count, Filter(tags=(("half", "new"),)), 100) == listing.Tally(100, exact=False)
        assert database.run(listing.count, Filter(statuses=(Status.FAILED,))) == listing.Tally(1, exact=True)


def _later() -> datetime:
    return datetime.now(UTC) + timedelta(hours=1)


@pytest.mark.parametrize("old_jobs", [True, False])
def test_the_list_of_a_user_is_the_rule_of_who_sees_what(api: Api, http: httpx.Client, old_jobs: bool) -> None:
    """Each way to be seen, or not: shared or old, one's own, named oneself, of a named preset, of a named batch."""
    made = [api.submit() for _ in range(12)] + [api.submit("bob") for _ in range(3)]
    batches = [http.post("/v1/batches", json={"specs": [dict(THREE_VALUES)] * 2}).json()["id"] for _ in range(2)]
    of_bob = select(users.c.id).where(users.c.name == "bob")
    bob = api.database.run(lambda connection: connection.execute(of_bob).scalar_one())
    with psycopg.connect(conninfo(api.settings.database_url)) as connection:
        connection.execute("update jobs set shared = case seq % 3 when 0 then true when 1 then false end")
        connection.execute("update jobs set parent_id = %s where id = any(%s)", (made[0], made[1:4]))
        preset = "update jobs set parent_id = (select id from jobs where batch_id = %s limit 1) where id = any(%s)"
        connection.execute(preset, (batches[0], made[4:7]))
        for job in (made[0], made[7], made[12]):
            connection.execute("insert into job_shares (job_id, user_id) values (%s, %s)", (job, bob))
        connection.execute("insert into batch_shares (batch_id, user_id) values (%s, %s)", (batches[0], bob))
    viewer = Viewer(bob, sees_all=False, old_jobs=old_jobs)
    by_rule = select(jobs.c.seq).where(visible(jobs, viewer)).order_by(jobs.c.seq.desc())
    wanted = api.database.run(lambda connection: connection.execute(by_rule).scalars().all())
    page = api.database.run(listing.page, Filter(viewer=viewer), 50)
    assert [job.seq for job in page.jobs] == wanted
    assert 8 < len(wanted) < 19


def test_no_jobs_are_an_empty_page(http: httpx.Client) -> None:
    assert http.get("/v1/jobs").json() == {"items": [], "next_cursor": None}


def test_pages_are_newest_first_and_meet_without_gap_or_overlap(api: Api, http: httpx.Client) -> None:
    jobs = [api.submit() for _ in range(7)]
    seen: list[str] = []
    cursor = None
    sizes = []
    while True:
        response = http.get("/v1/jobs", params={"limit": 3} | ({} if cursor is None else {"cursor": cursor}))
        seen += ids(response)
        sizes.append(len(response.json()["items"]))
        cursor = response.json()["next_cursor"]
        if cursor is None:
            break
    assert seen == jobs[::-1]
    assert sizes == [3, 3, 1]


def test_jobs_that_arrive_meanwhile_do_not_shift_a_page(api: Api, http: httpx.Client) -> None:
    jobs = [api.submit() for _ in range(4)]
    first = http.get("/v1/jobs?limit=2")
    api.submit()
    second = http.get("/v1/jobs", params={"limit": 2, "cursor": first.json()["next_cursor"]})
    assert ids(first) + ids(second) == jobs[::-1]


def test_a_full_last_page_has_no_next(api: Api, http: httpx.Client) -> None:
    api.submit()
    api.submit()
    assert http.get("/v1/jobs?limit=2").json()["next_cursor"] is None


def test_filters_by_status_kind_and_owner(api: Api, http: httpx.Client) -> None:
    queued, running, done = api.submit(), api.submit(), api.submit("bob")
    api.claim(running)
    api.finish(api.claim(done))
    assert ids(http.get("/v1/jobs?status=queued")) == [queued]
    assert ids(http.get("/v1/jobs?status=running")) == [running]
    assert ids(http.get("/v1/jobs?status=succeeded")) == [done]
    assert ids(http.get("/v1/jobs?status=failed")) == []
    assert ids(http.get("/v1/jobs?owner=bob")) == [done]
    assert ids(http.get("/v1/jobs?owner=carl")) == []
    assert ids(http.get("/v1/jobs?owner=ann&status=running&kind=reduce")) == [running]
    assert ids(http.get("/v1/jobs?kind=benchmark")) == []


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("tag=course", [1, 0]),
        ("tag=course:p05", [0]),
        ("tag=course:p06", [1]),
        ("tag=course:", []),
        ("tag=course&tag=run:a:b", [1]),
        ("tag=empty:", [2]),
        ("tag=nothing", []),
    ],
)
def test_filters_by_tags(api: Api, http: httpx.Client, query: str, wanted: list[int]) -> None:
    tags = [{"course": "p05"}, {"course": "p06", "run": "a:b"}, {"empty": ""}]
    jobs = [api.submit(tags=tags_of_job) for tags_of_job in tags]
    assert ids(http.get(f"/v1/jobs?{query}")) == [jobs[index] for index in wanted]


def test_many_values_are_listed_in_brief_and_shown_whole(api: Api, http: httpx.Client) -> None:
    values = [float(i) for i in range(1000)]
    job_id = api.submit(source={"type": "values", "values": values, "dtype": "float64"})
    listed = http.get("/v1/jobs").json()["items"][0]["spec"]["source"]
    assert listed == {"type": "values", "dtype": "float64", "count": 1000, "first": values[:16]}
    assert http.get(f"/v1/jobs/{job_id}").json()["spec"]["source"]["values"] == values


def test_the_queue_is_in_order_of_priority_and_age(api: Api, http: httpx.Client) -> None:
    names = ["normal", "low", "high", "normal", "high"]
    jobs = [api.submit(priority=name) for name in names]
    expected = dict(zip(jobs, [3, 5, 1, 4, 2], strict=True))
    listed = {job["id"]: job["queue_position"] for job in http.get("/v1/jobs").json()["items"]}
    alone = {job_id: http.get(f"/v1/jobs/{job_id}").json()["queue_position"] for job_id in jobs}
    assert listed == expected
    assert alone == expected


def test_only_queued_jobs_have_a_place_in_the_queue(api: Api, http: httpx.Client) -> None:
    running = api.submit()
    api.claim(running)
    waiting = api.submit()
    listed = {job["id"]: job["queue_position"] for job in http.get("/v1/jobs").json()["items"]}
    assert listed == {running: None, waiting: 1}


def test_results_of_reductions_are_in_the_list(api: Api, http: httpx.Client) -> None:
    api.finish(api.claim(api.submit()))
    assert http.get("/v1/jobs").json()["items"][0]["result"] == RESULT


def test_results_of_studies_are_left_out_of_the_list_and_shown_whole(api: Api, http: httpx.Client) -> None:
    spec = {"kind": "benchmark", "strategies": ["exact"], "sizes": [1000]}
    study = http.post("/v1/jobs", json=spec).json()["id"]
    api.finish(api.claim(study))
    [listed] = http.get("/v1/jobs").json()["items"]
    assert (listed["status"], listed["result"]) == ("succeeded", None)
    assert http.get(f"/v1/jobs/{study}").json()["result"] == RESULT
