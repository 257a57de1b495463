"""The tables of the queue as a whole: what the latest census counted, and the room that each user has left.

The api answers from them where counting the jobs themselves would cost more the more jobs wait
(docs/decisions/0022-a-census-and-room).
"""

from sqlalchemy import JSON, BigInteger, Column, ForeignKey, Index, SmallInteger, String, Table

from warpfold.app.tables.schema import metadata

census_counts = Table(
    "census_counts",
    metadata,
    Column("topic", String(16), primary_key=True),  # jobs are counted by it: owner, priority, status, reason
    Column("label", String(64), primary_key=True),  # which owner (an id), which priority, and so on
    Column("number", BigInteger, nullable=False),
    Column("oldest", BigInteger),  # the `seq` of the job of an owner that has waited longest
)

# Every 250th job of the queue.
queue_marks = Table(
    "queue_marks",
    metadata,
    Column("place", BigInteger, primary_key=True, autoincrement=False),  # in the queue, from 1
    Column("rank", SmallInteger, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("ahead", JSON, nullable=False),  # the jobs as far as this place: how many of each "kind needs"
)
Index("ix_queue_marks_rank_seq", queue_marks.c.rank, queue_marks.c.seq)

# Each submission takes from the room of its owner. Jobs that leave the queue give nothing back: where the room is used
# up, the owner's jobs are counted, and the room becomes the quota less their number.
queue_room = Table(
    "queue_room",
    metadata,
    Column("owner_id", ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    Column("limit", BigInteger, nullable=False),  # the quota when the jobs were counted; -1: they were not
    Column("room", BigInteger, nullable=False),
)
