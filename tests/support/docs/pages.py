"""The examples of a page: its fenced blocks, and what running them must print.

- `console`: each line after `$ ` is a command, what follows up to the next is its output, errors among it. All of a
  page's commands run in one shell, one after the other.
- `python`: run one after the other in one process, as a notebook is; a `text` block that follows is what was printed.

Ids, times and addresses are compared by kind (`tests.support.shell.plain`); `…` stands for anything on a line, and
alone on a line for any lines. A comment `<!-- not run: why -->` before a block keeps it from being run.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.shell import plain

_FENCE = re.compile(r"^```(\w*)")
_NOT_RUN = re.compile(r"^<!-- not run: (.+) -->$")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its language, its text, and the number of its first line."""

    language: str
    text: str
    line: int


@dataclass(frozen=True)
class Command:
    """A command of a `console` block and what it must print."""

    words: str
    output: str


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of a page that are to be run, and the outputs among them."""
    lines = iter(enumerate(page.read_text().splitlines(), 1))
    skipped = False
    for number, line in lines:
        fence = _FENCE.match(line)
        if fence is None:
            skipped = bool(_NOT_RUN.match(line)) or (skipped and not line.strip())
            continue
        text = []
        for _, inner in lines:
            if inner.startswith("```"):
                break
            text.append(inner)
        if not skipped:
            yield Block(fence[1], "\n".join(text), number + 1)
        skipped = False


def commands(block: Block) -> list[Command]:
    """The commands of a `console` block. A line after `> ` goes on with the command before it, as a shell shows it."""
    commands: list[Command] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            commands.append(Command(line.removeprefix("$ "), ""))
            continue
        assert commands, f"line {block.line}: a console block begins with a command, `$ …`"
        last = commands[-1]
        if line.startswith("> ") and not last.output:
            commands[-1] = Command(f"{last.words}\n{line.removeprefix('> ')}", "")
        else:
            commands[-1] = Command(last.words, f"{last.output}{line}\n")
    return commands


def fits(expected: str, printed: str) -> bool:
    """Whether the printed text is the text of the page."""
    lines = plain(expected.strip()).splitlines()
    pattern = "".join(r"(?:.*\n)*" if line == "…" else re.escape(line).replace("…", ".*") + r"\n" for line in lines)
    return re.fullmatch(pattern, f"{plain(printed.strip())}\n" if lines else plain(printed.strip())) is not None
