"""`warpfold migrate` brings the database that WARPFOLD_DATABASE_URL names to the newest schema."""

import argparse
import sys

from sqlalchemy.exc import OperationalError

from warpfold import migrations
from warpfold.app.config import load_settings
from warpfold.app.db import first_line


def main() -> int:
    """Migrate, and return the exit code, which is 0 if the schema is the newest."""
    argparse.ArgumentParser(
        prog="warpfold migrate",
        description="Bring the schema of the database that WARPFOLD_DATABASE_URL names up to date.",
    ).parse_args()
    url = load_settings().database_url
    if not url:
        print("warpfold migrate: set WARPFOLD_DATABASE_URL to the service's database", file=sys.stderr)
        return 1
    try:
        migrations.upgrade(url)
    except OperationalError as error:
        print(f"warpfold migrate: the database cannot be used: {first_line(error)}", file=sys.stderr)
        return 1
    except migrations.UnknownSchema as error:
        print(f"warpfold migrate: {error}", file=sys.stderr)
        return 1
    print("The schema is up to date.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
