"""Children of multiprocessing's method `spawn` that start in hundredths of a second: forks of a nursery.

The helper of an api, the ranks of a study and the workers of a Dask cluster are spawned: a new interpreter imports for
a second of computing, and the tests start some hundred of them. Within `warm_children` a nursery (`worker.nursery`)
forks them instead. What a child runs is the same, with the arguments, files and environment that it would get.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing import util
from pathlib import Path
from typing import Any

from warpfold.worker.forks import Order
from warpfold.worker.nursery import Nursery

NAME = "spawned-child"
"""The name of a child in its command line."""

_STANDARD = (0, 1, 2)
_spawn: Callable[..., int] = util.spawnv_passfds


@contextmanager
def warm_children(nursery: Callable[[], Nursery]) -> Iterator[None]:
    """Within the block multiprocessing's method `spawn` forks the children of this process, and of its forks. `nursery`
    makes the nursery of a process when its first child is wanted."""
    nurseries: dict[int, Nursery] = {}

    def spawn(path: str, arguments: Sequence[Any], files: Sequence[int]) -> int:
        if "--multiprocessing-fork" not in arguments:  # a tracker of resources
            return _spawn(path, arguments, files)
        own = nurseries.get(os.getpid()) or nurseries.setdefault(os.getpid(), nursery())
        code = str(arguments[arguments.index("-c") + 1])
        numbers = (*_STANDARD, *files)
        child = own.start(Order(NAME, partial(_run, code, Path.cwd()), numbers, dict(os.environ)), numbers)
        child.close()
        return child.pid

    _set_spawn(spawn)
    try:
        yield
    finally:
        _set_spawn(_spawn)


@contextmanager
def real_children() -> Iterator[None]:
    """Within the block the method `spawn` starts interpreters, whatever is set outside of it."""
    before = util.spawnv_passfds
    _set_spawn(_spawn)
    try:
        yield
    finally:
        _set_spawn(before)


def _set_spawn(function: Callable[..., int]) -> None:
    util.spawnv_passfds = function


def _run(code: str, folder: Path) -> None:
    """Body of a child: what a new interpreter does that runs the code."""
    os.chdir(folder)
    util._finalizer_registry.clear()  # type: ignore[attr-defined]
    util._run_after_forkers()  # type: ignore[attr-defined]
    sys.argv = ["-c", "--multiprocessing-fork"]
    exec(code, {"__name__": "__main__"})  # noqa: S102 (what multiprocessing would have an interpreter run)
