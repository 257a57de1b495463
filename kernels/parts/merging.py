"""Merging of tables of exact states: what is asked for, and the tables as they are read."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

from warpfold.kernels.backend import Progress
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.frames import Frame, check_key
from warpfold.kernels.machine.extras import required
from warpfold.kernels.parts.keyed import MOST_GROUPS, GroupTable
from warpfold.kernels.parts.state_tables import TableOfStates


@dataclass(frozen=True, slots=True)
class MergePlan:
    """What to make of the tables. Groups come sorted by their keys, nulls last, or in the order in which the tables
    have them; the values of an array come in C order. A value of fewer than `min_count` elements is missing."""

    sort: bool = True
    min_count: int = 0
    max_groups: int = MOST_GROUPS


@dataclass(frozen=True, slots=True)
class StatesTable:
    """A table of states that can be read: what its columns are, the types of its keys as pyarrow has them, and a
    function that begins to read the named columns in record batches. `field` is the part of the request that names it,
    and `likely` is how many rows there may be."""

    field: str
    described: TableOfStates
    key_types: tuple[Any, ...]
    begin: Callable[[Sequence[str]], Iterator[Any]]
    likely: int

    @classmethod
    def of(cls, frame: Frame, field: str) -> Self:
        """The table whose columns are `frame`. Raises InvalidInput naming `field`."""
        try:
            described = TableOfStates.of_schema(frame.schema)
        except InvalidInput as error:
            raise InvalidInput(str(error), field) from None
        kinds = tuple(frame.schema.field(name).type for name in described.keys)
        for name, kind in zip(described.keys, kinds, strict=True):
            check_key(name, kind, field)
        return cls(field, described, kinds, frame.make, frame.likely)

    def check_like(self, first: "StatesTable") -> None:
        """Raise InvalidInput naming the field of this table unless it has the ops, dtypes and keys of the first one."""
        mine, theirs = self.described, first.described
        parts: list[tuple[str, object, object]] = [
            ("keys", mine.keys, theirs.keys),
            ("values", [each.name for each in mine.values], [each.name for each in theirs.values]),
            ("a shape", mine.shape, theirs.shape),
        ]
        for what, here, wanted in parts:
            if here != wanted:
                raise InvalidInput(f"has {what} {_shown(here)}, and {first.field} {_shown(wanted)}", self.field)
        for name, kind, other in zip(mine.keys, self.key_types, first.key_types, strict=True):
            if not (kind.equals(other) or (is_text(kind) and is_text(other))):
                raise InvalidInput(f"has the key {name!r} as {kind}, and {first.field} as {other}", self.field)
        for own, others in zip(mine.values, theirs.values, strict=True):
            compared: list[tuple[str, object, object]] = [
                ("op", own.op, others.op),
                ("dtype", ", ".join(own.dtypes), ", ".join(others.dtypes)),
                ("ddof", own.ddof, others.ddof),
            ]
            for what, here, wanted in compared:
                if here != wanted:
                    raise InvalidInput(
                        f"has {own.name!r} with the {what} {here}, and {first.field} {wanted}", self.field
                    )


def is_text(kind: Any) -> bool:
    """Whether keys of this type of pyarrow are strings, or a dictionary of strings."""
    types = required("pyarrow", "tables").types
    inner = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(inner) or types.is_large_string(inner) or types.is_string_view(inner))


def _shown(part: Any) -> str:
    return "none" if part is None else f"({', '.join(map(str, part))})"[:200]


@runtime_checkable
class MergingBackend(Protocol):
    """A backend that merges tables of states, too: so far the CPU's."""

    def merge_tables(
        self, tables: Sequence[StatesTable], plan: MergePlan, progress: Progress | None = None
    ) -> GroupTable:
        """Add up the states of equal keys in all tables, and round each sum once; the states stand in the table. Raises
        a KernelError: InvalidInput names the field of a table, or "max_groups"."""
        ...
