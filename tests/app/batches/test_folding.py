"""Lists in which a batch is one row: what filters leave, how pages meet, what is counted, and which index answers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
import psycopg
import pytest
from sqlalchemy import Connection

from tests.support.api import Api
from tests.support.batches import batch_of, submitted
from tests.support.query_plans import Explained
from tests.support.servers import fresh_database
from warpfold.app.batches import folding, transitions
from warpfold.app.batches.repository import Batch
from warpfold.app.db import BlockingDatabase
from warpfold.app.jobs import listing, tags
from warpfold.app.jobs.listing import Filter, Tally
from warpfold.contract.states import Status
from warpfold.worker.embedded import EmbeddedPostgres


def rows(api: Api, chosen: Filter) -> list[str]:
    return [str(row.id) for row in api.database.run(folding.page, chosen, 50).rows]


def test_a_batch_is_one_row_where_its_first_job_would_stand(api: Api) -> None:
    before = api.submit()
    batch = batch_of(api, 3)
    after = api.submit()
    assert rows(api, Filter()) == [after, batch["id"], before]
    count = api.database.run(folding.count, Filter())
    assert (count.jobs, count.batches) == (Tally(2, exact=True), Tally(1, exact=True))


def test_a_batch_is_there_if_one_of_its_jobs_fits(api: Api) -> None:
    batch, other = batch_of(api, 3), batch_of(api, 2, "bob")
    api.finish(api.claim(batch["jobs"][1]))
    assert rows(api, Filter(statuses=(Status.SUCCEEDED,))) == [batch["id"]]
    assert rows(api, Filter(statuses=(Status.QUEUED,))) == [other["id"], batch["id"]]
    assert rows(api, Filter(owners=("bob",))) == [other["id"]]
    assert rows(api, Filter(tags=(("number", "2"),))) == [batch["id"]]
    assert rows(api, Filter(tags=(("number", "1"),), statuses=(Status.QUEUED,))) == [other["id"]]
    assert rows(api, Filter(text="number 2")) == [batch["id"]]
    assert rows(api, Filter(kinds=("benchmark",))) == []
    assert rows(api, Filter(until=datetime(2000, 1, 1, tzinfo=UTC))) == []


def test_a_batch_is_found_by_the_words_of_its_name(api: Api, http: httpx.Client) -> None:
    sweep = {"spec": {"kind": "reduce", "source": {"type": "values", "values": [1.0]}}, "over": {"op": ["sum", "max"]}}
    batch = submitted(http, {"sweep": sweep, "name": "Größe of lr-sweeps"})
    batch_of(api, 1)
    assert rows(api, Filter(text="GRÖSSE")) == []
    for words in ("größe", "LR swe", "sweeps"):
        assert rows(api, Filter(text=words)) == [batch["id"]]
    assert rows(api, Filter(text="sweeps", statuses=(Status.QUEUED,))) == [batch["id"]]
    assert rows(api, Filter(text="sweeps", statuses=(Status.FAILED,))) == []
    assert rows(api, Filter(text="sweeps number")) == []


# --- many of them

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
_USERS = "insert into users (name, role) values ('ann', 'user'), ('bob', 'user'), ('eve', 'user')"
# Numbers 1 to 6000: a batch of 1600 jobs and, between them, 400 that came by themselves; then 1000 batches of one, and
# jobs that came by themselves. One job of the large batch failed, and one that came by itself.
_BATCHES = """
    insert into batches (id, owner_id, name, count, created_at)
    select lpad(to_hex(b), 32, '0')::uuid, case when b = 1 then 1 when b <= 11 then 3 else 2 end, 'batch ' || b,
           case when b = 1 then 1600 else 1 end,
           %(begin)s + (case when b = 1 then 1 else 1999 + b end) * interval '10 ms'
    from generate_series(1, 1001) b
"""
_JOBS = """
    insert into jobs (id, owner_id, kind, priority, needs, timeout_s, spec, tags, status, reason, error, batch_id,
                      batch_index, created_at, finished_at)
    select gen_random_uuid(), coalesce(batches.owner_id, 1 + i %% 2),
           case when b is null and i %% 7 = 0 then 'benchmark' else 'reduce' end, 1, 'any', 60, '{}',
           jsonb_build_object('half', case when i > 3000 then 'new' else 'old' end, 'all', 'some words',
                              'run', i::text),
           case when i in (777, 5998) then 'failed' else 'succeeded' end,
           case when i in (777, 5998) then 'internal' end, case when i in (777, 5998) then 'a sentence' end,
           batches.id, i, coalesce(batches.created_at, %(begin)s + i * interval '10 ms'), %(begin)s
    from generate_series(1, 6000) i
    cross join lateral (select case when i <= 2000 then case when i %% 5 > 0 then 1 end
                                    when i <= 3000 then i - 1999 end as b) place
    left join batches on batches.id = lpad(to_hex(b), 32, '0')::uuid
    order by i
"""
_PLACES = """
    update batches set first_seq = span.low, last_seq = span.high
    from (select batch_id, min(seq) as low, max(seq) as high from jobs group by batch_id) as span
    where batches.id = span.batch_id
"""
_IDS = "select id from jobs"
MOST_ROWS = 2000


@pytest.fixture(scope="module")
def many(shared_postgres: EmbeddedPostgres) -> Iterator[str]:
    """Six thousand jobs that ended, many of them in batches."""
    with fresh_database(shared_postgres) as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_USERS)
        connection.execute(_BATCHES, {"begin": BEGIN})
        connection.execute(_JOBS, {"begin": BEGIN})
        connection.execute(_PLACES)
        stored = [row[0] for row in connection.execute(_IDS)]
        with closing(BlockingDatabase(url, application="test")) as database:
            database.run(tags.note, stored)
            assert database.run(transitions.settle, 2000) == 1001
        connection.execute("vacuum analyze")
        yield url


def _at(number: int) -> datetime:
    """When the job of this number was accepted."""
    return BEGIN + number * timedelta(milliseconds=10)


FILTERS: Mapping[str, Callable[[], Filter]] = {
    "everything": Filter,
    "no parts of presets": lambda: Filter(parent=False),
    "a rare state": lambda: Filter(statuses=(Status.FAILED,)),
    "a frequent state": lambda: Filter(statuses=(Status.SUCCEEDED,)),
    "a kind that no batch has": lambda: Filter(kinds=("benchmark",)),
    "an owner of batches alone": lambda: Filter(owners=("eve",)),
    "owner and state": lambda: Filter(owners=("ann",), statuses=(Status.FAILED,)),
    "a tag": lambda: Filter(tags=(("half", "old"),)),
    "a tag of one job of a batch": lambda: Filter(tags=(("run", "1500"), ("half", None))),
    "tag and rare state": lambda: Filter(tags=(("half", "old"),), statuses=(Status.FAILED,)),
    "a name of more tags than are looked into": lambda: Filter(tags=(("run", None),)),
    "words": lambda: Filter(text="old wor"),
    "words that nobody used": lambda: Filter(text="zebra"),
    "since": lambda: Filter(since=_at(2500)),
    "until": lambda: Filter(until=_at(2200)),
    "since and a state": lambda: Filter(since=_at(2), statuses=(Status.FAILED,)),
}


def _pages(database: BlockingDatabase, chosen: Filter, limit: int, *, counted: bool = False) -> Iterator[Sequence[Any]]:
    before: int | None = None
    while True:
        page = database.run(folding.page, chosen, limit, before, counted=counted)
        yield page.rows
        if page.following is None:
            return
        before = page.following


def _expected(database: BlockingDatabase, chosen: Filter) -> list[UUID]:
    """The rows by way of the list of all jobs, one by one."""
    places: dict[UUID, int] = {}
    before: int | None = None
    with database._engine.connect() as connection:
        first = {row[0]: row[1] for row in connection.exec_driver_sql("select id, first_seq from batches")}
    while True:
        page = database.run(listing.page, chosen, 1000, before)
        for job in page.jobs:
            places[job.batch_id or job.id] = first.get(job.batch_id, job.seq)
        if page.following is None:
            return sorted(places, key=places.__getitem__, reverse=True)
        before = page.following


@pytest.mark.parametrize("name", FILTERS)
def test_pages_have_each_job_or_its_batch_once_and_in_order(many: str, name: str) -> None:
    chosen = FILTERS[name]()
    with closing(BlockingDatabase(many, application="test")) as database:
        expected = _expected(database, chosen)
        for counted in (False, True):
            pages = [[row.id for row in page] for page in _pages(database, chosen, 300, counted=counted)]
            assert [row for page in pages for row in page] == expected


def test_pages_meet_where_a_search_was_given_up(many: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "_CHUNKS", (20, 40))
    monkeypatch.setattr(folding, "_CHUNKS", (16, 16))
    monkeypatch.setattr(folding, "_MOST_JOBS_COUNTED", 30)
    monkeypatch.setattr(folding, "_COUNTED_CHUNKS", (31, 50))
    with closing(BlockingDatabase(many, application="test")) as database:
        for chosen in (Filter(tags=(("half", "old"),), statuses=(Status.SUCCEEDED,)), Filter(owners=("eve",))):
            for counted in (False, True):
                pages = [[row.id for row in page] for page in _pages(database, chosen, 30, counted=counted)]
                assert [row for page in pages for row in page] == _expected(database, chosen)


INDEXES: Mapping[str, Sequence[str]] = {
    "everything": ("ix_jobs_alone", "ix_batches_first_seq"),
    "no parts of presets": ("ix_jobs_alone", "ix_batches_first_seq"),
    "a rare state": ("ix_jobs_list",),
    "a kind that no batch has": ("ix_jobs_list",),
    "an owner of batches alone": ("ix_jobs_owner_list", "ix_batches_owner_id"),
    "a tag": ("pk_job_tags",),
    "a tag of one job of a batch": ("pk_job_tags",),
    "tag and rare state": ("ix_jobs_list",),
    "words": ("pk_tag_words", "pk_job_tags"),
}


@pytest.mark.parametrize("name", INDEXES)
def test_a_filter_is_answered_by_its_indexes(many: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "_CHUNKS", (64, 256, 512))
    monkeypatch.setattr(folding, "_MOST_JOBS_COUNTED", 255)
    monkeypatch.setattr(folding, "_COUNTED_CHUNKS", (256, 512))
    chosen = FILTERS[name]()
    with closing(Explained(many, searches=True)) as explained:
        reads = explained.reads(_page, chosen)
        for index in INDEXES[name]:
            assert any(f" {index}" in node for read in reads for node in read.nodes), (index, reads)
        assert all(read.rows <= MOST_ROWS for read in reads), reads


def _page(connection: Connection, chosen: Filter) -> None:
    folding.page(connection, chosen, 50, counted=True)


@pytest.mark.parametrize("name", FILTERS)
def test_a_first_page_counts_as_a_count_by_itself_does(many: str, name: str) -> None:
    chosen = FILTERS[name]()
    with closing(BlockingDatabase(many, application="test")) as database:
        page = database.run(folding.page, chosen, 50, counted=True)
        assert page.tally == database.run(folding.count, chosen)
        assert database.run(folding.page, chosen, 50).tally is None
        following = page.following or 0
        assert database.run(folding.page, chosen, 50, following, counted=True).tally is None


def test_rows_are_counted_as_far_as_that_is_cheap(many: str) -> None:
    with closing(BlockingDatabase(many, application="test")) as database:
        every = database.run(folding.count, Filter())
        assert (every.jobs, every.batches) == (Tally(1000, exact=False), Tally(100, exact=False))
        failed = database.run(folding.count, Filter(statuses=(Status.FAILED,)))
        assert (failed.jobs, failed.batches) == (Tally(1, exact=True), Tally(1, exact=True))


def test_a_page_asks_what_it_needs_to_know_of_a_filter_once(many: str) -> None:
    with closing(Explained(many, searches=True)) as explained:
        statements = [read.statement for read in explained.reads(_page, FILTERS["words"]())]
    assert sum("tag_words" in statement for statement in statements) == 2, "there are two words"


def test_a_full_page_counts_no_further(many: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "_COUNTED_CHUNKS", (100, 10_000))
    monkeypatch.setattr(folding, "_MOST_JOBS_COUNTED", 99)
    monkeypatch.setattr(folding, "_USUAL", 10)
    of_ann = Filter(text="59", owners=("ann",))  # the numbers that begin with 59, of which 5900 to 5999 are the newest
    with closing(BlockingDatabase(many, application="test")) as database:
        for limit, number, exact in ((40, 50, False), (60, 51, True)):
            page = database.run(folding.page, of_ann, limit, counted=True)
            assert page.tally is not None
            assert page.tally.jobs == Tally(number, exact=exact)
            assert len(page.rows) >= min(limit, number)


def test_a_batch_in_a_list_says_how_its_jobs_stand(many: str) -> None:
    with closing(BlockingDatabase(many, application="test")) as database:
        rows = database.run(folding.page, Filter(statuses=(Status.FAILED,)), 10).rows
        [batch] = [row for row in rows if isinstance(row, Batch)]
        assert replace(batch, succeeded=0) == replace(batch, succeeded=0, failed=1, count=1600)
        assert (batch.status, batch.done) == (Status.FAILED, 1600)
