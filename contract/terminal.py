"""Tables for people. In a pipe or a file a table is as wide as its cells; on a terminal that is too narrow a column
takes more lines, or each row becomes a block of lines. Nothing is ever cut, and no name is read as markup."""

import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import zip_longest

from rich.cells import cell_len
from rich.console import Console
from rich.containers import Lines
from rich.text import Text

_APART = 2  # spaces between two columns
_NARROWEST = 16  # of a column that takes more lines


def console() -> Console:
    """Standard output, where names stay as they are: neither `[bold]` nor `:smile:` in them means anything."""
    return Console(highlight=False, markup=False, emoji=False)


def table(
    names: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    right: Sequence[str] = (),
    fold: str | None = None,
    headed: bool = True,
) -> None:
    """Print rows, `headed` by their names; numbers in the columns `right` stand at the right, and where there is too
    little room the column `fold` takes more lines. If that is not enough, each row is a block, a line for each value.
    A cell of None is empty."""
    out, room = console(), _room()
    head = [Text(name, style="bold") for name in names]
    cells = [[text_of(value) for value in row] for row in rows]
    widths = [max(map(_width, column)) for column in zip(*([head] if headed else []), *cells, strict=True)]
    over = 0 if room is None else sum(widths) + _APART * (len(widths) - 1) - room
    if over > 0 and cells:
        place = -1 if fold is None else names.index(fold)
        if fold is None or widths[place] - over < max(cell_len(fold), _NARROWEST):
            _blocks(out, head, cells, room)
            return
        widths[place] -= over
        for row in cells:
            row[place] = Text("\n").join(row[place].wrap(out, widths[place], overflow="fold"))
    for row in [head, *cells] if headed else cells:
        for parts in zip_longest(*(cell.split("\n", allow_blank=True) for cell in row), fillvalue=Text("")):
            line = Text("")
            for name, part, width in zip(names, parts, widths, strict=True):
                rest = " " * (width - cell_len(part.plain))
                line += Text.assemble(rest, part) if name in right else Text.assemble(part, rest)
                line += Text(" " * _APART)
            _print(out, line)


def properties(rows: Iterable[tuple[str, object]]) -> None:
    """Print names with their values, one a line; values of None are left out."""
    lines = [(Text(name, style="bold"), text_of(value)) for name, value in rows if value is not None]
    _properties(console(), lines, max((_width(name) for name, _ in lines), default=0), _room())


def text_of(value: object) -> Text:
    """A value as people read it: numbers with commas and four digits of a fraction, times by the reader's clock."""
    match value:
        case None:
            return Text("")
        case Text():
            return value
        case float():
            return Text(f"{value:.4g}")
        case datetime():
            return Text(f"{value.astimezone():%Y-%m-%d %H:%M:%S}")
        case int() if not isinstance(value, bool):
            return Text(f"{value:,}")
    return Text(str(value))


def _room() -> int | None:
    """How many columns the terminal has; None where the output is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _blocks(out: Console, head: Sequence[Text], rows: Iterable[Sequence[Text]], room: int | None) -> None:
    indent = max(map(_width, head))
    for number, row in enumerate(rows):
        if number:
            _print(out, Text(""))
        _properties(out, [(name, cell) for name, cell in zip(head, row, strict=True) if cell.plain], indent, room)


def _properties(out: Console, rows: Iterable[tuple[Text, Text]], indent: int, room: int | None) -> None:
    before = indent + _APART
    for name, value in rows:
        lines = value.split("\n", allow_blank=True)
        if room is not None:
            lines = Lines(part for line in lines for part in _words(line, max(room - before, _NARROWEST)))
        for number, line in enumerate(lines):
            called = Text("") if number else name
            _print(out, Text.assemble(called, " " * (before - cell_len(called.plain)), line))


def _words(line: Text, width: int) -> Iterable[Text]:
    """`line` in parts of at most `width`. A longer word stays whole: the terminal breaks it, and it is copied as one
    word."""
    if cell_len(line.plain) <= width:
        return (line,)
    parts = textwrap.wrap(line.plain, width, break_long_words=False, break_on_hyphens=False, replace_whitespace=False)
    return map(Text, parts)


def _width(text: Text) -> int:
    return max(cell_len(line) for line in text.plain.split("\n"))


def _print(out: Console, line: Text) -> None:
    line.rstrip()
    out.print(line, soft_wrap=True)  # neither wrapped nor cut
