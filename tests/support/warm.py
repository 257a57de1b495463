"""Processes of the service that start in hundredths of a second: forks of a nursery that has imported the service.

`python -m …` imports for one to two seconds of computing, at each start. What a fork runs afterwards is the same: the
module as `__main__`, with its arguments and its environment. The children that it spawns are forks, too
(`tests/support/warm_children.py`).
"""

import os
import runpy
import sys
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path

from tests.support.preloaded import preload
from tests.support.warm_children import warm_children
from warpfold.worker.forks import Order
from warpfold.worker.nursery import Forked, Nursery

_ROOT = Path(__file__).parents[2]


@cache
def nursery() -> Nursery:
    """The nursery of the tests' own process, which begins with the first call."""
    # Linux ends a nursery with the thread that started it. This one lasts.
    return ThreadPoolExecutor(1, "nursery").submit(new_nursery).result()


def new_nursery() -> Nursery:
    """A nursery that has imported the service and the tests' support."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(_ROOT)  # where `tests` is found
    try:
        return Nursery(preload, afresh=True)
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def fork(module: Sequence[str], environment: Mapping[str, str], output: Path | int) -> Forked:
    """A process that runs `python -m module …`. Its output is appended to a file, or goes to a descriptor."""
    order = Order(" ".join(module), partial(_run, tuple(module), Path.cwd()), (1, 2), dict(environment))
    if isinstance(output, int):
        return nursery().start(order, (output, output))
    with output.open("ab") as file:
        return nursery().start(order, (file.fileno(), file.fileno()))


def run(module: Sequence[str], environment: Mapping[str, str], log: Path, within_s: float = 60.0) -> tuple[int, str]:
    """The exit code of `python -m module …`, and what it prints, by way of the new file `log`."""
    log.unlink(missing_ok=True)
    return fork(module, environment, log).wait(within_s), log.read_text()


def _run(module: Sequence[str], folder: Path) -> None:
    """Body of the fork: what `python -m module …` does."""
    os.chdir(folder)
    sys.argv = list(module)
    warnings.filterwarnings("ignore", ".* found in sys.modules after import of package")  # as it is meant here
    with warm_children(new_nursery):
        runpy.run_module(module[0], run_name="__main__", alter_sys=True)
