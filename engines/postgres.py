"""Exact aggregates of Postgres, in SQL alone: `python -m warpfold.engines.postgres | psql DATABASE` installs them.

The script makes a schema `warpfold` with the aggregates `warpfold_sum`, `warpfold_mean`, `warpfold_state` and
`warpfold_merge` and the functions `warpfold_state_sum` and `warpfold_state_mean`. It may run again. `DROP SCHEMA
warpfold CASCADE` removes all of it.
"""

from importlib.resources import files


def script() -> str:
    """The SQL that installs the aggregates, as one transaction."""
    return files(__package__).joinpath("postgres.sql").read_text(encoding="utf-8")


if __name__ == "__main__":
    print(script(), end="")
