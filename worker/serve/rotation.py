"""Keeps the logs of `warpfold serve` from growing for ever.

A process writes to a descriptor that it inherited, and asks nobody: a supervisor that hangs must not hold it up. So a
log is not handed on but copied and cut, which needs nothing of its writer but that it appends. What is written between
the last look of the copy and the cut, some microseconds, is lost.
"""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import structlog
from structlog.typing import FilteringBoundLogger

_LOOKS = 4

log: FilteringBoundLogger = structlog.get_logger()

KEPT = 3
"""How many older parts of a log stay beside it: name.log.1, the latest, to name.log.3."""


def rotate(logs: Sequence[Path], most_bytes: int) -> None:
    """Begin every log anew that has become longer. Never raises: a disk that is full is no reason to end anything."""
    for path in logs:
        try:
            if path.stat().st_size > most_bytes:
                _rotate(path, most_bytes)
        except FileNotFoundError:
            pass
        except OSError as error:
            log.warning("a log is not rotated", log=str(path), error=str(error))


def _rotate(path: Path, most_bytes: int) -> None:
    for number in range(KEPT - 1, 0, -1):
        if _part(path, number).exists():
            _part(path, number).replace(_part(path, number + 1))  # the oldest goes, and makes room on a full disk
    try:
        _copy(path, _part(path, 1), 2 * most_bytes)
    except OSError:
        _part(path, 1).unlink(missing_ok=True)
        if path.stat().st_size <= 2 * most_bytes:
            raise  # better next time
        log.warning("the older lines of a log are given up: there is no room to keep them", log=str(path))
    os.truncate(path, 0)


def _copy(path: Path, part: Path, most_bytes: int) -> None:
    """The end of a log: of what grew while nobody looked, only so much."""
    part.unlink(missing_ok=True)
    part.touch(mode=0o600)
    with path.open("rb") as lines, part.open("wb") as kept:
        if (beyond := path.stat().st_size - most_bytes) > 0:
            lines.seek(beyond)
            lines.readline()  # the rest of one
        for _ in range(_LOOKS):  # for what is written meanwhile
            shutil.copyfileobj(lines, kept, 1 << 20)
            kept.flush()


def _part(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")
