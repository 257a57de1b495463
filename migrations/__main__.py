"""`warpfold migrate`: bring the database that WARPFOLD_DATABASE_URL names to the newest schema."""

import argparse
import sys

import migrations
from app.config import load_settings


def main() -> int:
    """0 once the schema is the newest."""
    argparse.ArgumentParser(
        prog="warpfold migrate",
        description="Bring the schema of the database that WARPFOLD_DATABASE_URL names up to date.",
    ).parse_args()
    url = load_settings().database_url
    if not url:
        print("warpfold migrate: set WARPFOLD_DATABASE_URL to the service's database", file=sys.stderr)
        return 1
    migrations.upgrade(url)
    print("The schema is up to date.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
