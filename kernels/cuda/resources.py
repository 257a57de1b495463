"""The committed table of what every kernel takes of a multiprocessor, and changes against it.

`resources.csv` has a line a kernel and a column an architecture. Its first cell names the NVRTC that it was made with,
because another version allots registers otherwise: then only spills are compared. A cell is "registers/shared", of a
kernel that spills "registers/shared/spills": registers a thread, bytes of shared memory a block (the static part),
bytes spilled a thread. It is empty where the architecture cannot run the kernel.
"""

import csv
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from warpfold.kernels.cuda.compile import ARCHITECTURES, Resources

TABLE = Path(__file__).parent / "resources.csv"

Key = tuple[str, str]
"""(kernel, architecture)."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Registers a thread, bytes of shared memory a block, bytes stored and loaded by spills a thread."""

    registers: int
    shared: int
    spills: int = 0

    @classmethod
    def of(cls, row: Resources) -> Self:
        return cls(row.registers, row.shared, row.spill_stores + row.spill_loads)

    @classmethod
    def parse(cls, cell: str) -> Self:
        return cls(*map(int, cell.split("/")))

    def __str__(self) -> str:
        return f"{self.registers}/{self.shared}" + f"/{self.spills}" * bool(self.spills)


@dataclass(frozen=True, slots=True)
class Table:
    """The usage of every kernel by (kernel, architecture), as the NVRTC of a version ("13.4") compiled it."""

    nvrtc: str
    usages: Mapping[Key, Usage]


@dataclass(frozen=True, slots=True)
class Change:
    """A kernel that takes other resources than the table says. `before` is None where the table lacks it, `after` where
    the kernel is gone."""

    key: Key
    before: Usage | None
    after: Usage | None

    @property
    def spills(self) -> bool:
        """Whether the kernel spills more than the table allows."""
        return self.after is not None and self.after.spills > (0 if self.before is None else self.before.spills)

    def __str__(self) -> str:
        kernel, arch = self.key
        before, after = ("nothing" if usage is None else str(usage) for usage in (self.before, self.after))
        return f"{arch} {kernel}: {before} → {after}" + " SPILLS" * self.spills


def read_table(path: Path = TABLE) -> Table:
    """The table in `path`; an empty one if there is no such file."""
    if not path.exists():
        return Table("", {})
    with path.open(newline="", encoding="utf-8") as file:
        (head, *archs), *lines = csv.reader(file)
    usages = {
        (kernel, arch): Usage.parse(cell)
        for kernel, *cells in lines
        for arch, cell in zip(archs, cells, strict=True)
        if cell
    }
    return Table(head.removeprefix("NVRTC "), usages)


def write_table(table: Table, path: Path = TABLE) -> None:
    """Kernels in the order in which they come in the table."""
    kernels = dict.fromkeys(kernel for kernel, _ in table.usages)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([f"NVRTC {table.nvrtc}", *ARCHITECTURES])
        for kernel in kernels:
            writer.writerow([kernel, *(str(table.usages.get((kernel, arch), "")) for arch in ARCHITECTURES)])


def changes(table: Table, nvrtc: str, compiled: Mapping[Key, Usage], known: Collection[Key]) -> list[Change]:
    """Where `found`, a part of all the `known` kernels as this NVRTC compiles them, differs from the table, and what
    the table has that is not known. With another NVRTC than the table's only what spills more."""
    seen = [Change(key, table.usages.get(key), usage) for key, usage in compiled.items()]
    if nvrtc != table.nvrtc:
        return [change for change in seen if change.spills]
    gone = [Change(key, usage, None) for key, usage in table.usages.items() if key not in known]
    return [change for change in seen if change.before != change.after] + gone


def updated(
    table: Table, nvrtc: str, compiled: Mapping[Key, Usage], known: Collection[Key], needed: Collection[Key]
) -> Table:
    """The table with the kernels that were compiled and without those that are not `known`, in the order of `known`.

    Raises ValueError if something that the checks compile, the `needed`, would be missing."""
    merged = {**table.usages, **compiled} if nvrtc == table.nvrtc else compiled
    missing = [key for key in needed if key not in merged]
    if missing:
        raise ValueError(f"the table would lack {len(missing)} kernels, such as {missing[0]}: compile with --arch ci")
    return Table(nvrtc, {key: merged[key] for key in known if key in merged})
