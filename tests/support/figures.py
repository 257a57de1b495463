"""How long things took in a drill. `WARPFOLD_DRILL_FIGURES=file pytest tests/drills` writes them down, a line each."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Figures:
    """Seconds by what was measured. They are written down and never judged: a drill must not depend on the load."""

    def __init__(self, file: Path | None) -> None:
        self._file = file

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        """Note how long the block takes."""
        started = time.monotonic()
        yield
        self.note(what, time.monotonic() - started)

    def note(self, what: str, seconds: float) -> None:
        if self._file is not None:
            with self._file.open("a") as file:
                file.write(json.dumps({"what": what, "seconds": round(seconds, 2)}) + "\n")


def wanted() -> Figures:
    """Figures that go where the environment says, or nowhere."""
    name = os.environ.get("WARPFOLD_DRILL_FIGURES")
    return Figures(Path(name) if name else None)
