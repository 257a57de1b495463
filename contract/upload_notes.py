"""The notes beside unfinished uploads: their fields, and their paths.

The api writes them (`app/datasets/partial.py`), and a worker that reduces an upload while it comes reads them.
"""

import os
import secrets
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
WRITER_BYTES, BOOT_BYTES = 16, 36
NUMBERS_BYTES = 20 + 1 + 20
STATE_BYTES = NUMBERS_BYTES + 1 + WRITER_BYTES + 1 + BOOT_BYTES + 1
_FINISHED = ".finished"
_NEW = ".new"


@dataclass(frozen=True, slots=True)
class NoteState:
    """How many bytes have come and how many of them are surely on the disk, who writes, in which run of the machine."""

    offset: int = 0
    flushed: int = 0
    writer: str = ""
    boot: str = ""

    def line(self) -> bytes:
        """The state as a note begins with it."""
        numbers = f"{self.offset:020d} {self.flushed:020d}"
        return f"{numbers} {self.writer:{WRITER_BYTES}} {self.boot:{BOOT_BYTES}}\n".encode()

    @classmethod
    def of(cls, descriptor: int) -> "NoteState":
        """The state in an open note. Raises ValueError if the note has no state yet, and OSError."""
        text = os.pread(descriptor, STATE_BYTES, 0).decode("ascii")
        return cls(int(text[:20]), int(text[21:41]), text[42:58].strip(), text[59:].strip())

    @property
    def valid_offset(self) -> int:
        """How many bytes need not be sent again."""
        return self.offset if self.boot == boot() else self.flushed


@cache
def boot() -> str:
    """The name of this run of this machine: its page cache lasts as long."""
    try:
        return _BOOT_ID.read_text().strip()[:BOOT_BYTES]
    except OSError:  # no Linux: only what was flushed survives this process
        return secrets.token_hex(BOOT_BYTES // 2)


def note_folder(datasets: Path) -> Path:
    """The folder of the notes, within that of uploaded arrays."""
    return datasets / "partial"


def incoming_folder(datasets: Path) -> Path:
    """The folder of uploads in progress."""
    return datasets / "incoming"


def finished_mark(note: Path) -> Path:
    """The file that is there once an upload has become a dataset: it holds the id of that."""
    return note.with_name(note.name + _FINISHED)


def unfinished_mark(mark: Path) -> Path:
    """The file in which a mark is written before it gets its name."""
    return mark.with_name(mark.name + _NEW)


def is_finished_mark(path: Path) -> bool:
    """Whether a file beside the notes is a mark, or what a crash left of one."""
    return path.name.removesuffix(_NEW).endswith(_FINISHED)


class Arriving:
    """An upload as a process sees it that may only read it. Its files are looked for under any owner: nobody guesses an
    id of 128 bits, and the api lets only the owner name one."""

    def __init__(self, datasets: Path, upload_id: str) -> None:
        notes = note_folder(datasets)
        owned = {path.name.removesuffix(_FINISHED) for path in notes.glob(f"*-{upload_id}*")}
        name = min(owned, default=f"0-{upload_id}")
        self._note = notes / name
        self.path = incoming_folder(datasets) / name

    def finished(self) -> str | None:
        """The dataset that it has become; None if it has not."""
        try:
            return finished_mark(self._note).read_text() or None
        except FileNotFoundError:
            return None

    def grows_here(self) -> bool:
        """Whether the file grows as its sender's, and on this machine: another one may read ahead of the writer, and
        would keep what it read. Bare elements get a head."""
        try:
            with self._note.open("rb") as note:
                return NoteState.of(note.fileno()).boot == boot() and b'"dtype":null' in note.read()
        except (FileNotFoundError, ValueError):
            return False

    def offset(self) -> int | None:
        """How many bytes have come; None if there is no such upload, or no longer."""
        try:
            with self._note.open("rb") as note:
                state = None
                while state != (state := NoteState.of(note.fileno())):
                    pass  # read again: it may have been written meanwhile
                return state.valid_offset
        except (FileNotFoundError, ValueError):
            return None
