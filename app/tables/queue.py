"""The tables of the queue as a whole: what the latest census counted, and the room that each user has left.

The api answers from them where counting the jobs themselves would cost more the more jobs wait
(docs/decisions/0022-a-census-and-room).
"""

from sqlalchemy import BigInteger, Boolean, Column, Double, ForeignKey, SmallInteger, String, Table

from warpfold.app.tables.schema import metadata

census_counts = Table(
    "census_counts",
    metadata,
    Column("topic", String(16), primary_key=True),  # jobs are counted by it: priority, status, reason
    Column("label", String(64), primary_key=True),  # which priority, which status, and so on
    Column("number", BigInteger, nullable=False),
)

# The jobs that wait for a slot and were not handed over, in lanes of jobs that are alike.
queue_lanes = Table(
    "queue_lanes",
    metadata,
    Column("owner_id", BigInteger, primary_key=True, autoincrement=False),
    Column("rank", SmallInteger, primary_key=True, autoincrement=False),
    Column("needs", String(16), primary_key=True),
    Column("kind", String(32), primary_key=True),
    Column("small", Boolean, primary_key=True),
    Column("lies", String(16), primary_key=True),  # where the elements lie, if that predicts a time
    Column("number", BigInteger, nullable=False),
    Column("bytes", Double, nullable=False),  # of all whose size is known
    Column("unsized", BigInteger, nullable=False),  # how many there are whose size is not known
    Column("oldest", BigInteger, nullable=False),  # the first and the last `seq`
    Column("newest", BigInteger, nullable=False),
)

# Each submission takes from the room of its owner. Jobs that leave the queue give nothing back: where the room is used
# up, the owner's jobs are counted, and the room becomes the quota less their number.
queue_room = Table(
    "queue_room",
    metadata,
    Column("owner_id", ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    Column("limit", BigInteger, nullable=False),  # the quota when the jobs were counted; -1: they were not
    Column("room", BigInteger, nullable=False),
)
