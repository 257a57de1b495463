"""Tags as lists are searched by them: which jobs have a tag, newest first, and which tags have a word.

A tag is known by a hash of its name and value, and the name of a job of a preset counts as the value of a tag without a
name. `job_tags` lists the jobs of each tag in the order of all lists, so that a page reads the newest of them and no
more. `tag_words` finds the tags of a name, and those with a word that begins in a certain way. A search checks each job
that it finds against the filter again: so neither a superfluous row of either table nor two tags with one hash changes
an answer.
"""

import hashlib
import re
from collections.abc import Collection, Sequence
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Connection,
    Integer,
    Text,
    TextClause,
    Uuid,
    bindparam,
    column,
    func,
    literal,
    or_,
    select,
    text,
)

from warpfold.app.tables.jobs import jobs

NOT_OF_A_WORD = r"[\x01-/:-@[-`{-\x7f]"
"""The characters between words: of ASCII all but letters and digits, and no other, in every locale of Postgres."""

_BETWEEN = re.compile(r"[\x00-/:-@\[-`{-\x7f]+")
_MOST_TAGS = 500
"""A question that more tags fit is not answered by way of the tags."""

# The tags of some jobs: seq, name, value and hash.
_TAGS_OF = r"""
    with asked as (
        select unnest(:ids) as id union all select id from jobs where batch_id = :batch_id
    ), tagged as (
        select each.* from asked cross join lateral (
            select seq, name, tags from jobs where id = asked.id offset 0
        ) as each
        union all
        select each.* from asked cross join lateral (
            select seq, name, tags from jobs where parent_id = asked.id offset 0
        ) as each
    ), tag as (
        select seq, tag.key as name, tag.value,
               ('x' || encode(substring(sha256(convert_to(tag.key || '\:' || tag.value, 'UTF8')) for 8), 'hex')
               )\:\:bit(64)\:\:bigint as id
        from tagged cross join lateral jsonb_each_text(tags) as tag
        union all
        select seq, '', name,
               ('x' || encode(substring(sha256(convert_to('\:' || name, 'UTF8')) for 8), 'hex'))\:\:bit(64)\:\:bigint
        from tagged where name is not null
    )
"""
BEGINNING = ("", -(1 << 63))
"""Before the first row of `tag_words`."""

_OF = (bindparam("ids", type_=ARRAY(Uuid)), bindparam("batch_id", None, type_=Uuid))
# In one order, so that two submissions with new words cannot deadlock.
_NOTE: TextClause = text(
    _TAGS_OF  # noqa: S608 - both halves stand here
    + r"""
    , known as (
        select distinct id, name, value from tag
    ), words as (
        insert into tag_words (word, tag_id)
        select word, id from (
            select '\:' || name as word, id from known where name <> ''
            union
            select word, id from known
            cross join lateral regexp_split_to_table(lower(name || ' ' || value), :between) as word
            where word <> ''
        ) as new
        order by word, id
        on conflict do nothing
    )
    insert into job_tags (tag_id, seq) select distinct id, seq from tag on conflict do nothing
    """
).bindparams(*_OF, bindparam("between", NOT_OF_A_WORD + "+", type_=Text))
_FORGET: TextClause = text(
    _TAGS_OF + "delete from job_tags using tag where job_tags.tag_id = tag.id and job_tags.seq = tag.seq"  # noqa: S608
).bindparams(*_OF)
_NAMED: TextClause = text("select tag_id from tag_words where word = :word limit :most").bindparams(
    bindparam("most", type_=Integer)
)
# Words are in the order of their bytes ("C"): those that begin with a prefix lie between the prefix and the prefix with
# the last character behind it.
_WITH_WORD: TextClause = text(r"""
    select tag_id from tag_words where word >= lower(:word) and word < lower(:word) || U&'\+10FFFF' limit :most
""").bindparams(bindparam("word", type_=Text), bindparam("most", type_=Integer))
_LOCK = text("lock table tag_words in share row exclusive mode nowait")
_SWEEP: TextClause = text("""
    with portion as materialized (
        select word, tag_id from tag_words where (word, tag_id) > (:word, :tag_id) order by word, tag_id limit :at_most
    ), swept as (
        delete from tag_words using portion
        where tag_words.word = portion.word and tag_words.tag_id = portion.tag_id
          and not exists (select 1 from job_tags where job_tags.tag_id = portion.tag_id)
    )
    select word, tag_id from portion order by word desc, tag_id desc limit 1
""")


def note(connection: Connection, ids: Collection[UUID]) -> None:
    """Note the tags and the names of jobs that this transaction stored, and of their children."""
    connection.execute(_NOTE, {"ids": list(ids)})


def note_batch(connection: Connection, batch_id: UUID) -> None:
    """Note the tags and the names of all jobs of a batch that this transaction stored."""
    connection.execute(_NOTE, {"ids": [], "batch_id": batch_id})


def forget(connection: Connection, ids: Collection[UUID]) -> None:
    """Take jobs, and their children, out of the lists of their tags before they are deleted."""
    connection.execute(_FORGET, {"ids": list(ids)})


def sweep(connection: Connection, after: tuple[str, int], at_most: int) -> tuple[str, int] | None:
    """Forget which words a tag has that no job has any more, of up to `at_most` rows that follow `after` in the order
    of the table. Returns where to go on; None at the end.

    A submission that uses such a tag again is either seen here or comes after this: the table is locked. Raises
    OperationalError where that would have to wait for a submission.
    """
    connection.execute(_LOCK)
    word, tag_id = after
    row = connection.execute(_SWEEP, {"word": word, "tag_id": tag_id, "at_most": at_most}).one_or_none()
    return None if row is None else (row.word, row.tag_id)


def tag_id(name: str, value: str) -> int:
    """The hash that a tag is known by."""
    return int.from_bytes(hashlib.sha256(f"{name}:{value}".encode()).digest()[:8], "big", signed=True)


def words_of(searched: str) -> Sequence[str]:
    """The words of a text that somebody looks for."""
    return [word for word in _BETWEEN.split(searched) if word]


def has_word(word: str) -> ColumnElement[bool]:
    """Whether a word of the name or of a tag of a job begins with `word`, which is one of `words_of`."""
    begins = literal(f"(^|{NOT_OF_A_WORD})", Text).concat(func.lower(literal(word, Text)))
    tag = func.jsonb_each_text(jobs.c.tags).table_valued(column("key", Text), column("value", Text), name="tag")
    in_tags = select(tag.c.key).where(func.lower(tag.c.key + " " + tag.c.value).regexp_match(begins)).exists()
    return or_(in_tags, func.lower(jobs.c.name).regexp_match(begins))


def tags_named(connection: Connection, name: str) -> Sequence[int] | None:
    """The tags with a name; None if they are too many."""
    return _few(connection, _NAMED, f":{name}")


def tags_with_word(connection: Connection, word: str) -> Sequence[int] | None:
    """The tags in whose name or value a word begins with `word`; None if they are too many."""
    return _few(connection, _WITH_WORD, word)


def _few(connection: Connection, statement: TextClause, word: str) -> Sequence[int] | None:
    ids = connection.execute(statement, {"word": word, "most": _MOST_TAGS + 1}).scalars().all()
    return None if len(ids) > _MOST_TAGS else sorted(set(ids))
