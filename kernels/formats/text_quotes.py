"""Where rows of text end: a line end within quotes is a part of its cell.

A cell that begins with a quote ends with the next quote that has no second one behind it (RFC 4180). A quote anywhere
else is a letter as any other, as Python's `csv` and pyarrow have it. A dialect says which byte the quote is. So the
quotes that count, in turns, begin and end quoted cells, and two quotes that stand for one end a quoted cell and begin
it anew.
"""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.formats.dialect import Dialect

_LINE_ENDS = b"\r\n"

Text = bytes | bytearray


class QuotedText:
    """Text that begins with a cell, or `within` the quotes of one, and whose bytes before `stop` are looked at."""

    def __init__(self, text: Text, dialect: Dialect, *, within: bool = False, stop: int | None = None) -> None:
        self._text, self._within = text, within
        self._stop = len(text) if stop is None else stop
        self._counting = _counting(np.frombuffer(text, np.uint8, self._stop), dialect, within=within)

    def first_end(self, end: bytes) -> int:
        """Where the first byte `end` stands that is not within quotes; −1 where there is none."""
        at = self._text.find(end, 0, self._stop)
        while at >= 0 and self._is_within(at):
            behind = self._before(at)  # the number of the quote that ends the cell
            if behind == len(self._counting):
                return -1
            at = self._text.find(end, int(self._counting[behind]), self._stop)
        return at

    def last_end(self, end: bytes) -> int:
        """Where the last byte `end` stands that is not within quotes; −1 where there is none."""
        at = self._text.rfind(end, 0, self._stop)
        while at >= 0 and self._is_within(at):
            before = self._before(at)  # one more than the number of the quote that begins the cell
            at = self._text.rfind(end, 0, int(self._counting[before - 1])) if before else -1
        return at

    def count_of_ends(self, end: bytes) -> int:
        """How many bytes `end` are not within quotes."""
        text = np.frombuffer(self._text, np.uint8, self._stop)
        before = np.searchsorted(self._counting, np.flatnonzero(text == ord(end)))
        return int(np.count_nonzero((before + self._within) % 2 == 0))

    def _before(self, at: int) -> int:
        return int(np.searchsorted(self._counting, at))

    def _is_within(self, at: int) -> bool:
        return (self._before(at) + self._within) % 2 == 1


def ends_within(text: memoryview, dialect: Dialect, *, within: bool) -> bool:
    """Whether text ends within quotes that begins with a cell, or `within` the quotes of one."""
    return (len(_counting(np.frombuffer(text, np.uint8), dialect, within=within)) + within) % 2 == 1


def _counting(text: NDArray[np.uint8], dialect: Dialect, *, within: bool) -> NDArray[np.intp]:
    """Where the quotes stand that begin and end quoted cells, in turns."""
    quotes = np.flatnonzero(text == dialect.quote_byte)
    before = text[quotes - 1]
    begins = (before == ord(dialect.delimiter)) | (before == _LINE_ENDS[0]) | (before == _LINE_ENDS[1]) | (quotes == 0)
    doubled = (before == dialect.quote_byte) & (quotes > 0)
    if (begins | doubled)[int(within) :: 2].all():
        return quotes
    # A quote that is a letter of its cell: which of the others count has to be told one after another.
    counting, ended = [], False
    for at, can_begin, behind_quote in zip(quotes.tolist(), begins.tolist(), doubled.tolist(), strict=True):
        counts = within or can_begin or (behind_quote and ended)
        ended = within
        if counts:
            counting.append(at)
            within = not within
    return np.array(counting, np.intp)


class QuotedStarts:
    """Which parts of a text begin within quotes: each part tells it of the next one. `look` reads the part of a number,
    and returns whether it ends within quotes if it begins outside of quotes, and if it begins within them. Threads that
    ask for the parts in order look at each part once."""

    def __init__(self, look: Callable[[int], tuple[bool, bool]]) -> None:
        self._look, self._lock = look, Lock()
        self._known = [False]
        self._looks = dict[int, Future[tuple[bool, bool]]]()

    def around(self, number: int) -> tuple[bool, bool]:
        """Whether a part begins within quotes, and whether it ends within them. Raises what `look` raises."""
        if number + 1 >= len(self._known):
            self._ends(number)  # first of all, because other threads may wait for it
        while (last := len(self._known) - 1) <= number:
            ends = self._ends(last)
            with self._lock:
                if len(self._known) == last + 1:
                    self._known.append(ends[self._known[last]])
                    self._looks.pop(last, None)
        return self._known[number], self._known[number + 1]

    def _ends(self, number: int) -> tuple[bool, bool]:
        with self._lock:
            if number + 1 < len(self._known):  # another thread has come so far meanwhile
                return self._known[number + 1], self._known[number + 1]
            looked = self._looks.get(number)
            mine = looked is None
            if looked is None:
                looked = self._looks[number] = Future()
        if mine:
            try:
                looked.set_result(self._look(number))
            except BaseException as error:
                with self._lock:
                    del self._looks[number]
                looked.set_exception(error)
                raise
        return looked.result()
