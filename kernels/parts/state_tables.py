"""Tables of exact states: a row for each value or group with its keys and its states, so that shards can be added
later.

A table says in the metadata of its Arrow schema which columns are keys, which are states, and which values these are
states of. A reader looks there alone, so that a table may have any other columns, too. `docs/exact-state.md` describes
the format.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import OPS, Op, op_named, terms_of
from warpfold.kernels.ops.operands import result_dtype

VERSION = 1

METADATA = b"warpfold.states"
"""The key in the metadata of a schema."""

_MOST_BYTES = 1 << 20
_MOST_COLUMNS = 256
_DESCRIBES_NONE = "is not a table of states: its schema describes no states"


@dataclass(frozen=True, slots=True)
class StatesOf:
    """The column of values `name`, and the columns of its states: of the sums, and for a variance of the sums of
    squares.

    `dtypes` are those of the elements, or of both factors of a product; `result` is the dtype of the values. `column`
    is the column that was reduced, if it has a name.
    """

    name: str
    op: str
    dtypes: tuple[str, ...]
    result: str
    ddof: int
    states: tuple[str, ...] = ()
    column: str | None = None


@dataclass(frozen=True, slots=True)
class TableOfStates:
    """What the columns of a table are: those of the keys, of the values and their states, and `sizes`, which says how
    many rows each group has.

    `shape` is that of the array that the values are, None of groups; then the keys are the indices on its axes.
    `dropped` is how many rows had a null key, and are in no group.
    """

    keys: tuple[str, ...]
    values: tuple[StatesOf, ...]
    shape: tuple[int, ...] | None = None
    sizes: str | None = None
    dropped: int = 0

    @classmethod
    def of_array(cls, shape: Sequence[int], op: Op, dtypes: Sequence[DType], ddof: int) -> Self:
        """The description of the values of `op` that make an array of `shape`."""
        names = tuple(dtype.name for dtype in dtypes)
        values = StatesOf("value", op.name, names, result_dtype(op, *dtypes), ddof, _kinds(op))
        return cls(tuple(f"axis_{axis}" for axis in range(len(shape))), (values,), tuple(shape))

    @classmethod
    def of_groups(cls, keys: Sequence[str], values: Sequence[StatesOf], dropped: int) -> Self:
        """The description of groups with these keys. The columns of the states, and that of the sizes, get names that
        no other column has."""
        taken = [*keys, *(each.name for each in values)]
        named = []
        for each in values:
            states = [_unused(f"{each.name}_{kind}", taken) for kind in _kinds(OPS[each.op])]
            taken += states
            named.append(replace(each, states=tuple(states)))
        return cls(tuple(keys), tuple(named), sizes=_unused("rows", taken), dropped=dropped)

    def metadata(self) -> dict[bytes, bytes]:
        """The metadata of the table's schema."""
        return {METADATA: json.dumps({"version": VERSION, **asdict(self)}, ensure_ascii=False).encode()}

    @classmethod
    def of_schema(cls, schema: Any) -> Self:
        """The description in a schema of pyarrow. Raises InvalidInput where the schema is not that of a table of
        states, or has another version."""
        text = (schema.metadata or {}).get(METADATA)
        if text is None or len(text) > _MOST_BYTES:
            raise InvalidInput("is not a table of states: its schema says nothing about states", "tables")
        try:
            document = json.loads(text)
            version = document.pop("version")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise InvalidInput(_DESCRIBES_NONE, "tables") from None
        if version != VERSION:
            raise InvalidInput(
                f"is a table of states of version {str(version)[:32]}, and this is version {VERSION}", "tables"
            )
        try:
            table = cls._read(document)
        except (ValueError, TypeError, KeyError, AttributeError):
            raise InvalidInput(_DESCRIBES_NONE, "tables") from None
        table._check(schema)
        return table

    @classmethod
    def _read(cls, document: dict[str, Any]) -> Self:
        values = tuple(
            StatesOf(
                name=str(each["name"]),
                op=op_named(each["op"]).name,
                dtypes=tuple(DTYPES[dtype].name for dtype in each["dtypes"]),
                result=str(each["result"]),
                ddof=_whole(each["ddof"]),
                states=tuple(map(str, each["states"])),
                column=None if each["column"] is None else str(each["column"]),
            )
            for each in document["values"]
        )
        shape = None if document["shape"] is None else tuple(map(_whole, document["shape"]))
        sizes = None if document["sizes"] is None else str(document["sizes"])
        return cls(tuple(map(str, document["keys"])), values, shape, sizes, _whole(document["dropped"]))

    def _check(self, schema: Any) -> None:
        """Raise InvalidInput unless the schema has the columns that are named, and each op its states."""
        for each in self.values:
            op = OPS[each.op]
            first = DTYPES[each.dtypes[0]] if each.dtypes else None
            if not op.adds or len(each.states) != len(terms_of(op)) or len(each.dtypes) != op.sources:
                raise InvalidInput(f"describes {each.name!r} as {each.op}, and lacks the states of that op", "tables")
            if first is None or each.result != result_dtype(op, *(DTYPES[dtype] for dtype in each.dtypes)):
                raise InvalidInput(f"describes {each.name!r} as {each.result}, which {op.name} does not give", "tables")
        named = [*self.keys, *(name for each in self.values for name in each.states)]
        named += [self.sizes] if self.sizes else []
        for name in named:
            if len(schema.get_all_field_indices(name)) != 1:
                raise InvalidInput(f"has no single column {name!r}, which it describes", "tables")
        of_array = self.shape is not None
        odd = not self.values or (of_array and (len(self.values) > 1 or len(self.keys) != len(self.shape or ())))
        odd |= not of_array and not self.keys
        if odd or len(named) > _MOST_COLUMNS or len(set(named)) < len(named):
            raise InvalidInput(_DESCRIBES_NONE, "tables")


def _kinds(op: Op) -> tuple[str, ...]:
    """What the columns of the states of an op are called behind the name of its value."""
    totals = tuple(total.strip("|") for total in op.totals)
    return totals or ("state", "squares")[: len(terms_of(op))]


def _whole(number: Any) -> int:
    if type(number) is not int or number < 0:
        raise ValueError(f"{number!r} is not a count")
    return number


def _unused(name: str, taken: Sequence[str]) -> str:
    number, free = 1, name
    while free in taken:
        number, free = number + 1, f"{name}_{number + 1}"
    return free
