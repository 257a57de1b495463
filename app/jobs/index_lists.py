"""Lists of jobs that an index has in their order, newest first: the SQL of each, and how a page reads it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import ARRAY, BigInteger, Boolean, ColumnElement, Text, TextClause, Uuid, bindparam, column, text
from sqlalchemy.sql.selectable import TextualSelect
from sqlalchemy.types import TypeEngine

from warpfold.app.jobs.lookups import LARGEST

_MOST_HEADS = 40_000
"""Entries of an index that a step may read before it puts them into one order."""

# The newest `most` jobs before `before` and not before `low`, of each list that is to be read, in one order.
IN_ORDER = """
    select seq from jobs where seq < :before and seq >= :low order by seq desc limit :most
"""
# By the order of the whole index, not of `seq` alone: where most jobs are of one state and kind, a plan could look for
# the few others among all jobs in the order of `seq`.
OF_STATES = """
    select head.seq
    from unnest(:statuses) as s(status) cross join unnest(:kinds) as k(kind)
    cross join lateral (
        select seq from jobs
        where status = s.status and kind = k.kind and seq < :before and seq >= :low
        order by status desc, kind desc, seq desc limit :most
    ) as head
"""
OF_OWNERS = """
    select head.seq
    from unnest(:owners) as o(id) cross join unnest(:statuses) as s(status) cross join unnest(:kinds) as k(kind)
    cross join lateral (
        select seq from jobs
        where owner_id = o.id and status = s.status and kind = k.kind and seq < :before and seq >= :low
        order by owner_id desc, status desc, kind desc, seq desc limit :most
    ) as head
"""
OF_TAGS = """
    select head.seq
    from unnest(:tag_ids) as t(id) cross join lateral (
        select seq from job_tags
        where tag_id = t.id and seq < :before and seq >= :low
        order by seq desc limit :most
    ) as head
"""
MERGED = " order by head.seq desc limit :most"
MERGED_ONCE = " group by head.seq" + MERGED
"""A job may have several of the tags."""
OF_PARENT = """
    select seq from jobs where parent_id = :parent and seq < :before and seq >= :low order by seq desc limit :most
"""
OF_BATCH = """
    select seq from jobs where batch_id = :batch and seq < :before and seq >= :low order by seq desc limit :most
"""
OF_IDS = """
    select seq from jobs
    where id >= :first and id <= :last and seq < :before and seq >= :low order by seq desc limit :most
"""
ALONE = """
    select seq from jobs where batch_id is null and seq < :before and seq >= :low order by seq desc limit :most
"""
# The jobs that a user sees, as `visible` of `app.auth.visibility` says of one of them.
OF_VIEWER = """
    select head.seq from (
        select own.seq
        from unnest(:statuses) as s(status) cross join unnest(:kinds) as k(kind)
        cross join lateral (
            select seq from jobs
            where owner_id = :viewer and status = s.status and kind = k.kind and seq < :before and seq >= :low
            order by status desc, kind desc, seq desc limit :most
        ) as own
        union all
        (select seq from jobs where shared and seq < :before and seq >= :low order by seq desc limit :most)
        union all
        (select seq from jobs where shared is null and :old and seq < :before and seq >= :low
         order by seq desc limit :most)
        union all
        select named.seq from job_shares cross join lateral (
            select seq from jobs where id = job_shares.job_id and seq < :before and seq >= :low
            union all
            (select seq from jobs where parent_id = job_shares.job_id and seq < :before and seq >= :low
             order by seq desc limit :most)
        ) as named
        where job_shares.user_id = :viewer
        union all
        select named.seq from batch_shares cross join lateral (
            (select seq from jobs where batch_id = batch_shares.batch_id and seq < :before and seq >= :low
             order by seq desc limit :most)
            union all
            select part.seq from jobs as preset join jobs as part on part.parent_id = preset.id
            where preset.batch_id = batch_shares.batch_id and part.seq < :before and part.seq >= :low
        ) as named
        where batch_shares.user_id = :viewer
    ) as head
"""
_TYPES: Mapping[str, TypeEngine[Any]] = {
    "statuses": ARRAY(Text),
    "kinds": ARRAY(Text),
    "owners": ARRAY(BigInteger),
    "viewer": BigInteger(),
    "old": Boolean(),
    "tag_ids": ARRAY(BigInteger),
    "first": Uuid(),
    "last": Uuid(),
    "parent": Uuid(),
    "batch": Uuid(),
    "before": BigInteger(),
    "low": BigInteger(),
    "most": BigInteger(),
}


@cache
def _marked(sql: str, mark: str) -> TextClause:
    """The SQL with a mark at the names of its parameters."""
    return text(re.sub(r":(\w+)", rf":\1{mark}", sql))


@dataclass(frozen=True, slots=True)
class IndexList:
    """A list of jobs that an index has in order: the SQL of its newest jobs, the parameters of that SQL, how many lists
    of the index it merges and how, and the condition that each of its jobs meets."""

    sql: str
    names: Mapping[str, object]
    heads: int = 1
    ensures: tuple[ColumnElement[bool], ...] = ()
    merged: str = ""

    def newest(self, most: int, low: int, before: int, mark: str = "") -> TextualSelect:
        """The newest jobs of the list in a range, as the `seq` of each. A `mark` at the names of the parameters keeps
        them apart from the parameters of another list in the same statement."""
        return self._bound(self.sql + self.merged, {"most": most, "low": low, "before": before}, mark)

    def within(self, first: str, last: str) -> TextualSelect:
        """The jobs of the list from `first` to `last`, two columns of the query around this one. They have no order,
        so that a query for any one of them need not wait for all."""
        sql = self.sql.replace(":low", first).replace(":before", f"{last} + 1")
        return self._bound(sql, {"most": LARGEST})

    def _bound(self, sql: str, values: Mapping[str, object], mark: str = "") -> TextualSelect:
        names = {**self.names, **values}
        bound = (bindparam(name + mark, value, type_=_TYPES[name]) for name, value in names.items())
        return _marked(sql, mark).bindparams(*bound).columns(column("seq", BigInteger))

    @property
    def everything(self) -> bool:
        """Whether it has all jobs: no index answers the filter."""
        return self.sql is IN_ORDER

    def at_once(self, most: int) -> int:
        """How many of its jobs may be put into order at once, if it is to be `most`."""
        return max(1, min(most, _MOST_HEADS // self.heads))
