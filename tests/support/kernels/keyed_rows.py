"""Rows for groups, cut where a test wants them cut."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from warpfold.kernels.parts.keyed import Cells, KeyedPart, KeyedRows, KeyedSource


def in_parts(source: KeyedSource, rows: int) -> KeyedSource:
    """The same rows in shorter parts."""

    def cut(part: KeyedPart, start: int, stop: int) -> KeyedRows:
        whole, at = part.read(), slice(start - part.start, stop - part.start)
        columns = (
            Cells(cells.elements[at], None if cells.missing is None else cells.missing[at]) for cells in whole.columns
        )
        return KeyedRows(start, tuple(key[at] for key in whole.keys), tuple(columns))

    def begin() -> Iterator[KeyedPart]:
        for part in source.begin():
            for start in range(part.start, part.stop, rows):
                stop = min(start + rows, part.stop)
                yield KeyedPart(start, stop, partial(cut, part, start, stop))

    return replace(source, begin=begin, whole=None)
