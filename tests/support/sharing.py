"""How the processes of `make test` share the tests: by whole files, and those first that take long.

A file stays whole, because what its fixtures make (a table of a million rows, a built site) is made once then. A folder
stays whole where its fixtures are those of a package and take seconds, or where its files compile the same functions.
What takes long comes first, so that no process is left alone with it at the end.
"""

from collections.abc import Sequence

import pytest
from xdist.scheduler import LoadFileScheduling

WHOLE = ("tests/browser/", "tests/kernels/accuracy/")
FIRST = (
    "tests/kernels/cpu/test_ahead.py",  # compiles what the tests of all other folders load
    "tests/browser/",
    "tests/app/http/test_openapi.py",
    "tests/docs/",
    "tests/integration/",
    "tests/plans/",
    "tests/drills/",
    "tests/deploy/",
    "tests/benchmarks/",
    "tests/client/",
    "tests/worker/",
    "tests/engines/",
    "tests/kernels/scaling/",
    "tests/app/",
)


def in_order(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The tests in the order in which processes are to take them; within each row of `FIRST` as they were collected."""
    return sorted(items, key=lambda item: _rank(item.nodeid))


def _rank(node: str) -> int:
    return next((rank for rank, start in enumerate(FIRST) if node.startswith(start)), len(FIRST))


class WholeFiles(LoadFileScheduling):  # type: ignore[misc]
    """Gives a process that has nothing left the next file, or the next folder of `WHOLE`."""

    def __init__(self, config: pytest.Config, log: object) -> None:
        config.option.loadscopereorder = False  # by the number of tests, which says nothing of how long they take
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return next((folder for folder in WHOLE if file.startswith(folder)), file)
