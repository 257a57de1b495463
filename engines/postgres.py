"""Exact aggregates of Postgres, in SQL alone: `python -m warpfold.engines.postgres | psql DATABASE` installs them.

The script makes a schema `warpfold` with aggregates of sums, means, variances, norms and dot products, of their states,
and functions of states; its first lines list them. It may run again. `DROP SCHEMA
warpfold CASCADE` removes all of it.
"""

from importlib.resources import files


def script() -> str:
    """The SQL that installs the aggregates, as one transaction."""
    return files(__package__).joinpath("postgres.sql").read_text(encoding="utf-8")


if __name__ == "__main__":
    print(script(), end="")
