from datetime import UTC, datetime

import httpx
import pytest

from warpfold.app.auth.visibility import THE_SERVICE
from warpfold.app.jobs.query import JobQuery


def test_values_that_are_repeated_and_times_without_an_offset_are_taken_as_they_are_meant() -> None:
    query = {"status": ("queued", "queued"), "owner": ("ann", "ben", "ann"), "tag": ("a", "b:c:d"), "parent": "none"}
    chosen = JobQuery.model_validate({**query, "since": "2026-11-21"}).chosen(THE_SERVICE)
    assert (chosen.statuses, chosen.owners) == (("queued",), ("ann", "ben"))
    assert chosen.tags == (("a", None), ("b", "c:d"))
    assert chosen.parent is False
    assert chosen.since == datetime(2026, 11, 21, tzinfo=UTC)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("status=queued&status=lost", "status"),
        ("kind=reduce&kind=none", "kind"),
        ("&".join(f"owner=u{i}" for i in range(17)), "owner"),
        ("text=%20-%20", "text"),
        ("text=" + "+".join("abcdefghi"), "text"),
        ("text=%00", "text"),
        ("since=yesterday", "since"),
        ("until=25:00", "until"),
        ("until=0.5", "until"),
        ("until=1763700000", "until"),
        ("count=maybe", "count"),
        ("statuses=queued", "statuses"),
    ],
)
def test_a_filter_that_cannot_be_is_named(http: httpx.Client, query: str, field: str) -> None:
    answer = http.get(f"/v1/jobs?{query}")
    assert answer.status_code == 422, answer.text
    assert [error["field"] for error in answer.json()["errors"]] == [field]
