"""Chunks of an array that are not in its file: readers give the array's fill value in their place, and the result says
so. A chunk may be absent because it was never written, or because it was lost, and a file does not tell which."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from warpfold.kernels.errors import InvalidInput


class WhereAbsent(StrEnum):
    """What to do where a chunk is absent."""

    FILL = "fill"  # its elements are the fill value; the result says how many chunks are absent
    RAISE = "raise"  # fail with invalid_input


@dataclass(slots=True)
class AbsentChunks:
    """The chunks of the array at `path` that were found to be absent: `total` chunks have selected elements, and `fill`
    is the value in place of an absent one, None where there is none. `file` names one of several files. Several threads
    may add to it."""

    path: str
    total: int
    fill: str | None
    policy: WhereAbsent = WhereAbsent.FILL
    names: set[str] = field(default_factory=set)
    counted: int = 0
    file: str = ""

    def note(self, names: Iterable[str], count: int = 0) -> None:
        """Note chunks that are absent by their names, or at least their number. Raises InvalidInput where no value
        stands in their place, and naming "missing_chunks" where they are refused."""
        self.names.update(names)
        self.counted = max(self.counted, count, len(self.names))
        if self.counted and (self.fill is None or self.policy is WhereAbsent.RAISE):
            name = f"its chunk {min(self.names)!r}" if self.names else f"{self.counted:,} of its {self.total:,} chunks"
            if self.fill is None:
                raise InvalidInput(f"holds {self.path!r} without {name}, and no fill value says what was there")
            raise InvalidInput(f"holds {self.path!r} without {name}, and missing_chunks is raise", "missing_chunks")

    def joined(self, other: Self) -> Self:
        """The absent chunks of two readings of the same array."""
        names = self.names | other.names
        counted = max(self.counted, other.counted, len(names))
        return type(self)(self.path, self.total, self.fill, self.policy, names, counted, self.file)


def notice_of(absences: Iterable[AbsentChunks]) -> str | None:
    """A phrase about all chunks that are absent; None where none is. Arrays of several files that bear one name are
    counted together."""
    arrays: dict[tuple[str, str, str | None], AbsentChunks] = {}
    for each in absences:
        array = (each.file, each.path, each.fill)
        arrays[array] = arrays[array].joined(each) if array in arrays else each
    counts: dict[tuple[str, str | None], tuple[int, int]] = {}
    for (_, path, fill), each in arrays.items():
        counted, total = counts.get((path, fill), (0, 0))
        counts[path, fill] = counted + each.counted, total + each.total
    sentences = [
        f"{counted:,} of {total:,} chunks{f' of {path!r}' if path else ''} absent, read as fill value {fill}"
        for (path, fill), (counted, total) in counts.items()
        if counted
    ]
    return "; ".join(sentences) or None
