"""Lists of jobs: the jobs that a filter leaves, newest first, paged by key, never by offset, and counted where that is
cheap. An index has the jobs of each filter in the order of the list: those of states, kinds and owners on `jobs`, those
of tags and words on `job_tags`. Where several filters meet, the jobs of the rarer one are read, and each of them is
checked against the others. Such a search looks at a few thousand jobs a page at most: a page may end early, or be
empty, and still name the next one. So the work of a page is bounded for all filters and any number of jobs on record.
"""

from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Literal
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Connection,
    bindparam,
    func,
    literal,
    select,
    true,
    union_all,
)

from warpfold.app.auth.visibility import THE_SERVICE, Viewer, visible
from warpfold.app.jobs import tags
from warpfold.app.jobs.index_lists import (
    ALONE,
    IN_ORDER,
    MERGED,
    MERGED_ONCE,
    OF_BATCH,
    OF_IDS,
    OF_OWNERS,
    OF_PARENT,
    OF_STATES,
    OF_TAGS,
    OF_VIEWER,
    IndexList,
)
from warpfold.app.jobs.lookups import PageLookups, range_of
from warpfold.app.jobs.store import COLUMNS, OWNED, Job, brief_spec, job_of, light_result
from warpfold.app.jobs.workers import places
from warpfold.app.tables.jobs import jobs
from warpfold.app.tables.users import users
from warpfold.contract.id_beginning import range_of_ids
from warpfold.contract.jobs import KINDS
from warpfold.contract.states import Status

_CHUNKS = (64, 512, 2560)
"""How many jobs a page looks at, in steps: most pages are full after the first. All three take some 20 ms."""
_COUNTED_CHUNKS = (1001, 2048)
"""The chunks of jobs that are counted: a statement about many of them costs less than several about few."""
_PROBED = 256
"""Where several filters meet, the one whose newest so many jobs reach back farthest is the rarest."""


@dataclass(frozen=True, slots=True)
class Filter:
    """The jobs that a list has; a field that is empty or None does not restrict it.

    A job has an id that begins with `beginning`, one of `statuses`, of `kinds` and of `owners`, all of `tags`, which
    are (name, value) pairs with a value None for any, and all words of `text` at the beginning of a word of its tags or
    its name. `parent` is a preset, or False for jobs that are not part of one, and `batch` the batch that brought the
    jobs, or False for jobs that came by themselves. A job was accepted at `since` or later, and before `until`; and
    `viewer` sees it.
    """

    beginning: str | None = None
    statuses: tuple[Status, ...] = ()
    kinds: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    tags: tuple[tuple[str, str | None], ...] = ()
    text: str | None = None
    parent: UUID | Literal[False] | None = None
    batch: UUID | Literal[False] | None = None
    since: datetime | None = None
    until: datetime | None = None
    viewer: Viewer = THE_SERVICE


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a list. `following` is the `seq` that the next page comes before; None on the last page."""

    jobs: Sequence[Job]
    following: int | None


@dataclass(frozen=True, slots=True)
class Tally:
    """How many jobs a filter leaves: exactly `number`, or at least so many."""

    number: int
    exact: bool


_ROW = (jobs.c.id, *(column for column in COLUMNS if column.name not in ("id", "result")))
_ROWS = (
    select(brief_spec, light_result, *_ROW)
    .select_from(OWNED)
    .where(jobs.c.seq == func.any(bindparam("found", type_=ARRAY(BigInteger))))
    .order_by(jobs.c.seq.desc())
)

_OWNERS = select(users.c.id).where(users.c.name.in_(bindparam("names", expanding=True)))

_NEWEST = select(func.max(jobs.c.seq)).scalar_subquery()


@dataclass(frozen=True, slots=True)
class Search:
    """How the jobs of a filter are searched: lists that each hold all of these jobs, the conditions that each job must
    meet besides, and the range of `seq` in which the jobs lie."""

    lists: tuple[IndexList, ...]
    conditions: tuple[ColumnElement[bool], ...]
    low: int
    high: int

    def beside(self, source: IndexList) -> Sequence[ColumnElement[bool]]:
        """The conditions to check on each job of `source`, which is one of the lists."""
        others = (other.ensures for other in self.lists if other is not source)
        return [*self.conditions, *chain.from_iterable(others)]


def page(connection: Connection, chosen: Filter, limit: int, before_seq: int | None = None) -> Page:
    """Up to `limit` jobs, newest first, older than `before_seq`; bulky specs in brief, and without the results of
    studies. A page with fewer is not always the last: see `following`."""
    lookups = PageLookups(connection)
    search = search_for(lookups, chosen)
    if search is None:
        return Page((), None)
    seqs, looked_to = look(lookups, search, limit + 1, before_seq)
    following = seqs[limit - 1] if len(seqs) > limit else looked_to
    return Page(listed(connection, seqs[:limit]), following)


def count(connection: Connection, chosen: Filter, most: int = 1000) -> Tally:
    """How many jobs the filter leaves, up to `most`, and no more than a page may look at."""
    lookups = PageLookups(connection)
    search = search_for(lookups, chosen)
    if search is None:
        return Tally(0, exact=True)
    return tally_of(*look(lookups, search, most + 1, None, _COUNTED_CHUNKS), most)


def tally_of(seqs: Sized, looked_to: int | None, most: int) -> Tally:
    """How many rows a search for more than `most` has left, which was given up at `looked_to`."""
    return Tally(min(len(seqs), most), exact=len(seqs) <= most and looked_to is None)


def search_for(lookups: PageLookups, chosen: Filter) -> Search | None:
    """The search of a filter; None where no job can fit it."""
    low, high = lookups.ask(range_of, chosen.since, chosen.until)
    lists: list[IndexList] = []
    conditions: list[ColumnElement[bool]] = [*_of_rows(chosen)]
    if chosen.beginning is not None:
        lists.append(_of_ids(chosen.beginning))
    if chosen.statuses or chosen.kinds or chosen.owners:
        of_states = _of_states(lookups, chosen)
        if of_states is None:
            return None
        lists.append(of_states)
    asked_of_tags = [_of_tag(lookups, name, value) for name, value in chosen.tags]
    asked_of_tags += [(lookups.ask(tags.tags_with_word, word), tags.has_word(word)) for word in _words(chosen)]
    for tag_ids, condition in asked_of_tags:
        conditions.append(condition)
        if tag_ids is not None:
            lists.append(IndexList(OF_TAGS, {"tag_ids": tag_ids}, len(tag_ids), merged=MERGED_ONCE))
    if chosen.parent:
        lists.append(IndexList(OF_PARENT, {"parent": chosen.parent}, 1, (jobs.c.parent_id == chosen.parent,)))
    elif chosen.parent is False:
        conditions.append(jobs.c.parent_id.is_(None))
    if chosen.batch is False:
        lists.append(IndexList(ALONE, {}, 1, (jobs.c.batch_id.is_(None),)))
    elif chosen.batch is not None:
        lists.append(IndexList(OF_BATCH, {"batch": chosen.batch}, 1, (jobs.c.batch_id == chosen.batch,)))
    if not chosen.viewer.sees_all:
        lists.append(_of_viewer(chosen.viewer))
    if low >= high or any(not each.heads for each in lists):
        return None
    return Search(tuple(lists) or (IndexList(IN_ORDER, {}),), tuple(conditions), low, high)


def _of_rows(chosen: Filter) -> Iterator[ColumnElement[bool]]:
    """The conditions for which no list is made."""
    if chosen.since is not None:
        yield jobs.c.created_at >= chosen.since
    if chosen.until is not None:
        yield jobs.c.created_at < chosen.until


def _of_viewer(viewer: Viewer) -> IndexList:
    """The jobs that a user sees. It is the rule as a list, so that a page of it asks the rule of no row."""
    names = {
        "statuses": [status.value for status in Status],
        "kinds": list(KINDS),
        "viewer": viewer.user_id,
        "old": viewer.old_jobs,
    }
    return IndexList(OF_VIEWER, names, len(Status) * len(KINDS), (visible(jobs, viewer),), MERGED_ONCE)


def _of_ids(beginning: str) -> IndexList:
    """The jobs whose ids begin so; without heads where no id begins so."""
    ids = range_of_ids(beginning)
    if ids is None:
        return IndexList(OF_IDS, {}, 0)
    return IndexList(OF_IDS, {"first": ids[0], "last": ids[1]}, 1, (jobs.c.id.between(*ids),))


def _of_states(lookups: PageLookups, chosen: Filter) -> IndexList | None:
    """The list of the filter's states, kinds and owners; None where there is no such owner."""
    names: dict[str, object] = {
        "statuses": [status.value for status in chosen.statuses or Status],
        "kinds": list(chosen.kinds or KINDS),
    }
    heads = len(chosen.statuses or Status) * len(chosen.kinds or KINDS)
    ensures = [jobs.c.status.in_(chosen.statuses)] if chosen.statuses else []
    if chosen.kinds:
        ensures.append(jobs.c.kind.in_(chosen.kinds))
    if not chosen.owners:
        return IndexList(OF_STATES, names, heads, tuple(ensures), MERGED)
    owners = lookups.ask(_owners, chosen.owners)
    ensures.append(jobs.c.owner_id.in_(owners))
    if not owners:
        return None
    return IndexList(OF_OWNERS, {**names, "owners": owners}, heads * len(owners), tuple(ensures), MERGED)


def _owners(connection: Connection, names: Sequence[str]) -> Sequence[int]:
    return connection.execute(_OWNERS, {"names": list(names)}).scalars().all()


def _of_tag(lookups: PageLookups, name: str, value: str | None) -> tuple[Sequence[int] | None, ColumnElement[bool]]:
    """The tags that fit, None where they are too many, and the condition that they put on a job."""
    if value is None:
        return lookups.ask(tags.tags_named, name), jobs.c.tags.has_key(name)
    return [tags.tag_id(name, value)], jobs.c.tags.contains({name: value})


def _words(chosen: Filter) -> Sequence[str]:
    return tags.words_of(chosen.text or "")


def look(
    lookups: PageLookups,
    search: Search,
    limit: int,
    before_seq: int | None,
    chunks: Sequence[int] | None = None,
    *,
    enough: int | None = None,
) -> tuple[list[int], int | None]:
    """The `seq` of up to `limit` jobs, newest first; and where the search was given up, that down to which it has
    looked. `chunks` says how many jobs each step looks at, if not as many as those of a page. A step that has `enough`
    jobs is the last."""
    connection = lookups.connection
    before = search.high if before_seq is None else min(before_seq, search.high)
    # Most pages are full after a short look at any list, which costs less than to ask which one is the rarest.
    source = search.lists[0] if chunks is None else rarest(lookups, search, before)
    if not search.beside(source) and limit <= source.at_once(limit):
        return list(connection.execute(source.newest(limit, search.low, before)).scalars()), None
    seqs: list[int] = []
    for number, chunk in enumerate(chunks or _CHUNKS):
        if number == 1 and chunks is None:
            source = rarest(lookups, search, before)
        conditions = search.beside(source)
        most = source.at_once(max(chunk, limit))
        candidate = source.newest(most, search.low, before).cte("candidate")
        looked = select(func.min(candidate.c.seq).label("lowest"), func.count().label("looked_at")).subquery("looked")
        # A probe of the index for each: in a join of these few with all jobs the plan might read all jobs.
        probe = select(jobs.c.seq).where(jobs.c.seq == candidate.c.seq, *conditions).offset(0)
        each = probe.correlate(candidate).lateral("each")
        newest = select(each.c.seq).select_from(candidate.join(each, true())).order_by(each.c.seq.desc())
        fitting = newest.limit(limit - len(seqs)).subquery("fitting")
        step = select(looked, fitting).select_from(looked.outerjoin(fitting, true())).order_by(fitting.c.seq.desc())
        rows = connection.execute(step).all()
        seqs += [row.seq for row in rows if row.seq is not None]
        if len(seqs) >= limit or rows[0].looked_at < most:
            return seqs, None
        before = rows[0].lowest
        if enough is not None and len(seqs) >= enough:
            break
    return seqs, before


def rarest(lookups: PageLookups, search: Search, before: int) -> IndexList:
    """The list with the fewest jobs to pass over: a list of few jobs, or of few recent ones."""
    if len(search.lists) == 1:
        return search.lists[0]
    name = (before, search.low, *((each.sql, repr(each.names)) for each in search.lists))
    return search.lists[lookups.once(name, lambda: _rarest(lookups.connection, search, before))]


def _rarest(connection: Connection, search: Search, before: int) -> int:
    probes = []
    for place, source in enumerate(search.lists):
        probe = source.newest(source.at_once(_PROBED), search.low, before, f"_{place}").subquery(f"probe_{place}")
        probes.append(select(literal(place).label("place"), func.count(), func.min(probe.c.seq), _NEWEST))
    density: dict[int, float] = {}
    for place, number, lowest, newest in connection.execute(union_all(*probes)):
        top = min(before, (newest or 0) + 1)
        full = number == search.lists[place].at_once(_PROBED)
        density[place] = number / max(1, top - (lowest if full else search.low))
    return min(density, key=lambda place: (density[place], place))


def listed(connection: Connection, seqs: Sequence[int]) -> Sequence[Job]:
    """The jobs of these numbers; waiting jobs have the reason why they wait, and not yet
    their places in the queue."""
    rows = connection.execute(_ROWS, {"found": seqs}).mappings().all() if seqs else ()
    listed = [job_of(row) for row in rows]
    slots = places(connection) if any(job.waiter for job in listed) else ()
    return [job.seeing(slots) if job.status is Status.QUEUED else job for job in listed]
