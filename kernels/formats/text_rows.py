"""Rows of text in blocks: what tables of cells and JSON lines share."""

from abc import abstractmethod
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any

from warpfold.kernels.formats.dialect import Dialect
from warpfold.kernels.formats.text_blocks import Block, Lines, TextLines
from warpfold.kernels.formats.text_types import TextColumns, TextTypes
from warpfold.kernels.machine.cores import usable_cores


class TextRows:
    """A file whose lines are rows. `names` are those of its columns, and `dialects` say how it is written."""

    names: Sequence[str]

    compares_words: bool = True
    """Whether a filter compares integers with words, as they are written."""

    def __init__(self, lines: TextLines, dialects: list[Dialect]) -> None:
        self.lines, self.dialects = lines, dialects

    @abstractmethod
    def types(self, columns: Sequence[str] | None = None) -> TextTypes:
        """The types of the named columns or of all, which the beginning of the file tells."""

    @abstractmethod
    def why_refused(self, types: TextTypes, name: str) -> str | None:
        """Why a column that has numbers is not reduced, where one of its words is the reason."""

    @abstractmethod
    def key_types(self, columns: Sequence[str]) -> Mapping[str, Any]:
        """The types by which columns are keys."""

    @abstractmethod
    def exact(self, number: int, lines: Lines, columns: TextColumns, plain: Any) -> Iterator[Any]:
        """Record batches of the columns in the block with this number; `plain` has its words where it is plain."""

    def plain(self, number: int, lines: Lines, columns: TextColumns) -> Any:
        """The columns in the block with this number, where compiled functions read it."""
        return None

    def batches(self, columns: TextColumns) -> Iterator[Any]:
        """Record batches of the columns, of the whole file in order. Threads parse the next blocks meanwhile. Raises as
        `exact`."""
        threads = usable_cores()
        with ThreadPoolExecutor(threads, "decode") as pool:
            waiting: deque[Future[list[Any]]] = deque()
            try:
                for number, block in enumerate(self.lines.blocks()):
                    waiting.append(pool.submit(self._listed, number, block, columns))
                    if len(waiting) > threads:
                        yield from waiting.popleft().result()
                while waiting:
                    yield from waiting.popleft().result()
            finally:
                for later in waiting:
                    later.cancel()

    def _listed(self, number: int, block: Block, columns: TextColumns) -> list[Any]:
        lines = block()
        return list(self.exact(number, lines, columns, self.plain(number, lines, columns)))

    def rows_before(self, number: int) -> int:
        """How many rows stand before the block with this number."""
        return sum(self.rows_in(block()) for block in islice(self.lines.blocks(), number))

    def rows_in(self, lines: Lines) -> int:
        """How many rows a block has."""
        return bytes(lines.text).count(b"\n")
