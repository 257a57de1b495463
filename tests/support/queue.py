"""A long queue, made by one statement."""

from sqlalchemy import Connection, text

_WAITING = text("""
    insert into jobs (id, owner_id, kind, priority, needs, timeout_s, spec, rank, small)
    select gen_random_uuid(), :owner_id, (array['reduce', 'sort'])[1 + i % 2], i % 3, (array['any', 'cpu'])[1 + i % 2],
           60, '{}', i % 3, :small
    from generate_series(1, :number) i
""")


def fill(connection: Connection, owner_id: int, number: int, *, small: bool = False) -> None:
    """Let so many more jobs of an owner wait: of two kinds, one of which needs a CPU, and of three ranks in turn."""
    connection.execute(_WAITING, {"owner_id": owner_id, "number": number, "small": small})
