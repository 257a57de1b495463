"""How the processes of `make test` share the tests: by whole files, from two lists.

A file stays whole, because what its fixtures make (a table of a million rows, a built site) is made once then. A folder
stays whole where its fixtures are those of a package and take seconds, or where its files compile the same functions.

Many tests wait for processes, and many others compute. If all processes of pytest took the same list, cores would idle
while everybody waits, and would be fought for afterwards. So half of the processes begin with the tests that wait, and
the other half with those that compute; whoever has nothing left in its own list helps with the other. In both lists the
long files come first, so that no process is left alone with one at the end.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

WHOLE = ("tests/browser/", "tests/kernels/accuracy/")
WAITING = (
    "tests/browser/",
    "tests/integration/test_faults.py",
    "tests/integration/test_serve.py",
    "tests/integration/test_presets.py",
    "tests/integration/test_memory.py",
    "tests/docs/test_pages.py",  # whose programs would compile, too, what test_ahead.py does not have compiled yet
    "tests/integration/",
    "tests/docs/",
    "tests/client/demo/",
    "tests/worker/test_endings.py",
    "tests/worker/test_slot.py",
    "tests/drills/",
    "tests/worker/",
    "tests/deploy/",
    "tests/migrations/",
    "tests/client/",
)
"""What starts processes and waits for them; the longest first."""
COMPUTING = (
    "tests/kernels/cpu/test_ahead.py",  # compiles what the tests of all other folders load
    "tests/app/http/test_openapi.py",
    "tests/kernels/test_aggregates.py",
    "tests/kernels/cuda/grouped/test_reducing.py",
    "tests/plans/test_queue.py",
    "tests/app/test_db.py",
    "tests/kernels/cuda/include/",
    "tests/app/server/test_protocol.py",
    "tests/app/auth/test_visibility.py",
    "tests/kernels/cuda/",
    "tests/kernels/scaling/test_run.py",
    "tests/plans/",
    "tests/engines/",
    "tests/kernels/formats/test_text.py",
    "tests/kernels/lowering/test_long_integers.py",
    "tests/kernels/cpu/grouped/test_reducing.py",
    "tests/kernels/parts/test_over_devices.py",
    "tests/benchmarks/",
    "tests/app/batches/",
    "tests/registries/test_ways.py",
)
"""What computes, in the process of pytest or in a database; the longest first. Every other file is one of these."""


def import_share(folders: Iterable[Path], number: int, processes: int) -> None:
    """Import every so many-th file of tests in `folders`. pytest keeps on disk what it makes of a file at its first
    import: in a clean clone each process would make that of all files, for 5 s of computing."""
    root = Path(__file__).parents[2]
    files = sorted(file for folder in folders for file in folder.rglob("test_*.py"))
    for file in files[number::processes]:
        with suppress(Exception, pytest.skip.Exception):  # the collection meets it again, and says so
            import_module(".".join(file.relative_to(root).with_suffix("").parts))


def in_order(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The tests that wait, then those that compute, each in the order of its list; within a row as they were
    collected."""
    return sorted(items, key=lambda item: rank(item.nodeid))


def rank(node: str) -> tuple[bool, int]:
    """Whether a test computes, and the place of its file or folder in its list."""
    computes = not node.startswith(WAITING)
    rows = COMPUTING if computes else WAITING
    return computes, next((rank for rank, start in enumerate(rows) if node.startswith(start)), len(rows))


class WholeFiles(LoadFileScheduling):  # type: ignore[misc]
    """Gives a process that has nothing left the next file, or the next folder of `WHOLE`: every second process of those
    that compute, the others of those that wait."""

    def __init__(self, config: pytest.Config, log: object) -> None:
        config.option.loadscopereorder = False  # by the number of tests, which says nothing of how long they take
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return next((folder for folder in WHOLE if file.startswith(folder)), file)

    def _assign_work_unit(self, node: WorkerController) -> None:
        computes = self.nodes.index(node) % 2 == 1
        following = next((scope for scope in self.workqueue if rank(scope)[0] == computes), None)
        if following is not None:
            self.workqueue.move_to_end(following, last=False)
        super()._assign_work_unit(node)
