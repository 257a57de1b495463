"""Lists of jobs in which a batch is one row: the jobs that came by themselves, and the batches that have a job which
fits, newest first.

A batch stands where its first job would, so that both come in one order and pages are cut by one key. The two are read
apart, each in the order of an index: ten thousand jobs of a batch cost as much as one. Whether a batch has a job that
fits is a question to the indexes of lists, between the first and the last job of the batch. As with all lists, the work
of a page is bounded, and a page may end early (`app.jobs.listing`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Connection,
    Integer,
    Select,
    Subquery,
    bindparam,
    column,
    false,
    func,
    select,
    text,
    true,
    tuple_,
)

from warpfold.app.auth.visibility import THE_SERVICE, visible
from warpfold.app.batches import repository
from warpfold.app.batches.repository import Batch
from warpfold.app.jobs import listing
from warpfold.app.jobs.listing import Filter, Search, Tally
from warpfold.app.jobs.lookups import PageLookups, range_of
from warpfold.app.jobs.store import Job
from warpfold.app.jobs.tags import words_of
from warpfold.app.tables.batches import batches
from warpfold.app.tables.jobs import jobs
from warpfold.app.tables.users import users

_CHUNKS = (64, 192)
"""How many batches a page looks at, in steps."""
_COUNTED_CHUNKS = (1001, 512, 1536)
"""How many jobs that came by themselves a page looks at that counts them, in steps. Once the page is full there is no
further step: the count is then at least so many."""
_USUAL = 50
"""How many rows a page of the dashboard has."""
_MOST_PROBES = 20_000
"""How many lists of an index a step may look into. A batch without an index for the filter counts as a thousand."""
_UNINDEXED = 1000
_MOST_COUNTED = 100
_MOST_JOBS_COUNTED = 1000
_FEW = 256
"""Where so few jobs of batches fit, the batches are found by way of them."""
_TURNED = timedelta(seconds=30)
"""The most by which the order of the batches and the order of their times may differ."""


@dataclass(frozen=True, slots=True)
class FoldedTally:
    """How many rows a filter leaves."""

    jobs: Tally
    batches: Tally


@dataclass(frozen=True, slots=True)
class FoldedPage:
    """A page of rows. The next page has the rows before `following`, which is None on the last page. A first page that
    was counted knows how many rows all pages have; on other pages `tally` is None."""

    rows: Sequence[Job | Batch]
    following: int | None
    tally: FoldedTally | None


@dataclass(frozen=True, slots=True)
class _Questions:
    """The condition on a batch: it has a job that fits the filter or, if its name has all `words` of the filter, a job
    that fits the rest. None stands for no condition."""

    fits: ColumnElement[bool] | None
    fits_rest: ColumnElement[bool] | None
    words: Sequence[str]
    probes: int


def page(
    connection: Connection, chosen: Filter, limit: int, before: int | None = None, *, counted: bool = False
) -> FoldedPage:
    """Up to `limit` rows, newest first, that come after `before`. `chosen.batch` is not looked at. A page with fewer
    rows is not always the last: see `following`. With `counted` the first page looks for as many rows as are counted,
    which costs less than to search for the page and then once more for the count."""
    counted = counted and before is None
    lookups = PageLookups(connection)
    if counted:
        enough = max(limit, _USUAL) + 1
        numbers, looked_to = _alone(lookups, chosen, max(limit, _MOST_JOBS_COUNTED) + 1, None, enough=enough)
        places, batches_looked_to = _batches(lookups, chosen, max(limit, _MOST_COUNTED) + 1, None)
    else:
        numbers, looked_to = _alone(lookups, chosen, limit + 1, before)
        places, batches_looked_to = _batches(lookups, chosen, limit + 1, before)
    of_jobs = listing.tally_of(numbers, looked_to, _MOST_JOBS_COUNTED)
    tally = FoldedTally(of_jobs, listing.tally_of(places, batches_looked_to, _MOST_COUNTED)) if counted else None
    # Where one of both was given up, the other must not go on: a later page would have to go back.
    ends = [end for end in (looked_to, batches_looked_to) if end is not None]
    end = max(ends, default=None)
    order = sorted((*numbers, *places), reverse=True)
    if end is not None:
        order = [number for number in order if number >= end]
    following = order[limit - 1] if len(order) > limit else end
    shown = order[:limit]
    rows: dict[int, Job | Batch] = {}
    for job in listing.listed(connection, [number for number in shown if number not in places]):
        rows[job.seq] = job
    of_ids = {places[number]: number for number in shown if number in places}
    for batch in repository.listed(connection, list(of_ids)):
        rows[of_ids[batch.id]] = batch
    return FoldedPage([rows[number] for number in shown if number in rows], following, tally)


def count(connection: Connection, chosen: Filter) -> FoldedTally:
    """How many rows the filter leaves, as far as that is cheap."""
    lookups = PageLookups(connection)
    of_jobs = listing.tally_of(
        *_alone(lookups, chosen, _MOST_JOBS_COUNTED + 1, None, enough=_USUAL + 1), _MOST_JOBS_COUNTED
    )
    of_batches = listing.tally_of(*_batches(lookups, chosen, _MOST_COUNTED + 1, None), _MOST_COUNTED)
    return FoldedTally(of_jobs, of_batches)


def _alone(
    lookups: PageLookups, chosen: Filter, limit: int, before: int | None, *, enough: int | None = None
) -> tuple[Sequence[int], int | None]:
    """The `seq` of up to `limit` jobs that came by themselves; and where the search was given up, that down to which it
    has looked. With `enough` they are counted: from so many on only as far as one step goes."""
    search = listing.search_for(lookups, replace(chosen, batch=False))
    chunks = None if enough is None else _COUNTED_CHUNKS
    return ((), None) if search is None else listing.look(lookups, search, limit, before, chunks, enough=enough)


def _batches(
    lookups: PageLookups, chosen: Filter, limit: int, before: int | None
) -> tuple[dict[int, UUID], int | None]:
    """Up to `limit` batches by the `seq` of their first jobs; and where the search was given up, that down to which it
    has looked."""
    low, high = lookups.ask(range_of, chosen.since, chosen.until)
    if low >= high:
        return {}, None
    before = high if before is None else min(before, high)
    of_few = _of_few(lookups, chosen)
    by_place = {} if of_few is None else {place: batch for place, batch in of_few.items() if place < before}
    if of_few is not None and not chosen.text:
        return {place: by_place[place] for place in sorted(by_place, reverse=True)[:limit]}, None
    named, looked_to = _newest_that_fit(lookups, chosen, limit, before, names_only=of_few is not None)
    return by_place | named, looked_to


def _of_few(lookups: PageLookups, chosen: Filter) -> dict[int, UUID] | None:
    """The batches whose jobs fit, by way of these jobs; None where these are many."""
    if _of_a_job(chosen) == Filter():
        return None
    search = listing.search_for(lookups, replace(chosen, parent=None, batch=None))
    if search is None:
        return {}
    in_batches = replace(search, conditions=(*search.conditions, jobs.c.batch_id.is_not(None)))
    fitting, looked_to = listing.look(lookups, in_batches, _FEW + 1, None, (2 * _FEW,))
    if len(fitting) > _FEW or looked_to is not None:
        return None
    of_them = select(jobs.c.batch_id).where(jobs.c.seq == func.any(bindparam("fitting", type_=ARRAY(BigInteger))))
    brought = select(batches.c.id, batches.c.first_seq).where(
        batches.c.id.in_(of_them), visible(batches, chosen.viewer)
    )
    rows = lookups.connection.execute(brought, {"fitting": fitting}) if fitting else ()
    return {row.first_seq: row.id for row in rows}


def _newest_that_fit(
    lookups: PageLookups, chosen: Filter, limit: int, before: int, *, names_only: bool
) -> tuple[dict[int, UUID], int | None]:
    """Do what `_batches` does for one batch after the other. With `names_only` only names of batches are looked at."""
    newest = _newest(chosen)
    questions = _questions(lookups, chosen, newest, before, names_only=names_only)
    if questions is None:
        return {}, None
    asked = [true() if fits is None else fits for fits in (questions.fits, questions.fits_rest)]
    step = select(newest, asked[0].label("fits"), asked[1].label("fits_rest")).order_by(newest.c.first_seq.desc())
    by_place: dict[int, UUID] = {}
    for chunk in _CHUNKS:
        most = max(16, min(max(chunk, limit), _MOST_PROBES // questions.probes))
        rows = lookups.connection.execute(step, {"before": before, "most": most}).all()
        for row in rows:
            if chosen.since is not None and row.created_at < chosen.since - _TURNED:
                return by_place, None
            if not _in_time(row.created_at, chosen):
                continue
            if row.fits or (row.fits_rest and _has_words(row.name, questions.words)):
                by_place[row.first_seq] = row.id
            if len(by_place) == limit:
                return by_place, None
        if len(rows) < most:
            return by_place, None
        before = rows[-1].first_seq
    return by_place, before


def _newest(chosen: Filter) -> Subquery:
    """The newest batches, of the owners that the filter names."""
    columns = (batches.c.id, batches.c.name, batches.c.created_at, batches.c.first_seq, batches.c.last_seq)
    before, most = bindparam("before", type_=BigInteger), bindparam("most", type_=Integer)
    newest = select(*columns).where(batches.c.first_seq < before, visible(batches, chosen.viewer))
    if chosen.owners:
        # A range of the index of owners: with `owner_id =` a plan may read the batches of all others on the way.
        place = tuple_(batches.c.owner_id, batches.c.first_seq)
        own = select(*columns).where(place < tuple_(users.c.id, before), place >= tuple_(users.c.id, 0))
        own = own.where(visible(batches, chosen.viewer))
        own = own.order_by(batches.c.owner_id.desc(), batches.c.first_seq.desc()).limit(most)
        of_each = own.correlate(users).lateral("own")
        newest = select(of_each).select_from(users.join(of_each, true())).where(users.c.name.in_(chosen.owners))
        return newest.order_by(of_each.c.first_seq.desc()).limit(most).subquery("newest")
    return newest.order_by(batches.c.first_seq.desc()).limit(most).subquery("newest")


def _of_a_job(chosen: Filter) -> Filter:
    """The part of a filter that two jobs of one batch may answer differently. They are shared with the batch."""
    return replace(chosen, owners=(), parent=None, batch=None, since=None, until=None, viewer=THE_SERVICE)


def _questions(
    lookups: PageLookups, chosen: Filter, newest: Subquery, before: int, *, names_only: bool
) -> _Questions | None:
    """The condition on a batch; None where no batch can fit."""
    of_a_job = _of_a_job(chosen)
    rest = replace(of_a_job, text=None)
    search = None if names_only else listing.search_for(lookups, of_a_job)
    without_text = listing.search_for(lookups, rest)
    if without_text is None:
        return None
    fits_rest, probes = _has_job(lookups, rest, without_text, newest, before)
    if not chosen.text:
        return _Questions(fits_rest, None, (), probes)
    words = [word.lower() for word in words_of(chosen.text)]
    if search is None:  # the name of a batch may still have the word
        return _Questions(false(), fits_rest, words, probes)
    fits, more = _has_job(lookups, of_a_job, search, newest, before)
    return _Questions(fits, fits_rest, words, probes + more)


def _has_job(
    lookups: PageLookups, chosen: Filter, search: Search, newest: Subquery, before: int
) -> tuple[ColumnElement[bool] | None, int]:
    """Whether a batch of `newest` has a job that fits, and into how many lists of an index that looks; None if every
    job fits."""
    if chosen == Filter():
        return None, 1
    source = listing.rarest(lookups, search, before)
    if source.everything:
        # No index answers the filter: it is applied to each job of the batch.
        candidate = text("select seq from jobs where batch_id = newest.id").columns(column("seq", BigInteger))
        probes = _UNINDEXED
    else:
        candidate = source.within("newest.first_seq", "newest.last_seq")
        probes = source.heads
    candidates = candidate.subquery("candidate")
    fitting: Select[tuple[int]] = select(jobs.c.seq).where(
        jobs.c.seq == candidates.c.seq, jobs.c.batch_id == newest.c.id, *search.beside(source)
    )
    # A probe for each candidate, in their order, up to the first that fits.
    each = fitting.offset(0).correlate(candidates, newest).lateral("each")
    return select(each.c.seq).select_from(candidates.join(each, true())).correlate(newest).exists(), probes


def _in_time(created_at: datetime, chosen: Filter) -> bool:
    early = chosen.since is not None and created_at < chosen.since
    return not early and (chosen.until is None or created_at < chosen.until)


def _has_words(name: str, words: Sequence[str]) -> bool:
    """Whether each of `words`, of which there is one, begins a word of a batch's name."""
    of_name = [word.lower() for word in words_of(name)]
    return bool(words) and all(any(own.startswith(word) for own in of_name) for word in words)
