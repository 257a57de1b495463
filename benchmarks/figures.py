"""Compares figures of the service with their targets: it measures them on a service of their own, and prints them."""

import json
import os
import platform
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from warpfold.client.demo.service import Service, running_service

_PACKAGES = ("warpfold", "rq", "redis", "sqlalchemy", "psycopg", "fastapi", "uvicorn")


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured figure and its target."""

    name: str
    measured: str
    target: str
    met: bool


@contextmanager
def environment(**variables: str) -> Iterator[None]:
    """Give these variables to processes that are started within the block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def measured_service(within: Path | None = None) -> Iterator[tuple[Service, Path]]:
    """Run `warpfold serve --slots cpu` in a temporary folder, `within` another if that is given; gives the service and
    its data folder."""
    with tempfile.TemporaryDirectory(prefix="warpfold-bench-", dir=within) as name:
        root = Path(name)
        (root / "data").mkdir()
        with running_service(root, "--slots", "cpu") as service:
            yield service, (root / "warpfold").resolve()


def provenance() -> dict[str, str]:
    """The machine, the versions and the date of a run."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{psutil.cpu_count()} cores, {psutil.virtual_memory().total / 2**30:.0f} GiB, {platform.machine()}",
        "python": platform.python_version(),
        **{name: version(name) for name in _PACKAGES},
    }


def report(title: str, figures: Sequence[Figure], out: Path | None) -> int:
    """Print the figures, write them to `out` if it is given, and return 0 if every target is met."""
    facts = provenance()
    table = Table(title=title, caption=", ".join(f"{key} {value}" for key, value in facts.items()))
    for heading in ("figure", "measured", "target", ""):
        table.add_column(heading)
    for figure in figures:
        table.add_row(
            figure.name, figure.measured, figure.target, "" if not figure.target else "met" if figure.met else "NOT MET"
        )
    Console().print(table)
    if out is not None:
        written = {"provenance": facts, "figures": [asdict(figure) for figure in figures]}
        out.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0 if all(figure.met for figure in figures) else 1
