"""The fields and groups that a form consists of."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Shape(StrEnum):
    """The way in which a value is typed and read back."""

    CHOICE = "choice"  # one of several
    MANY = "many"  # several of several
    FLAG = "flag"
    INTEGER = "integer"
    NUMBER = "number"
    TEXT = "text"
    INTEGERS = "integers"  # several, apart by commas or spaces
    NUMBERS = "numbers"  # the same, numbers or words for numbers: the elements of an array
    TEXTS = "texts"
    NAMES = "names"  # several, apart by commas, or a list as JSON has it
    EITHER = "either"  # yes, no, or left out
    PAIRS = "pairs"  # name=value, one a line
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Field:
    """An input of the form. `name` is dotted, as the api's errors name the field."""

    name: str
    shape: Shape
    help: str = ""
    options: Sequence[str] = ()
    labels: Sequence[str] = ()  # the labels of the options, where they differ from the values
    required: bool = False
    default: object = None
    reshapes: bool = False  # a change of this field changes which fields the form has

    @property
    def label(self) -> str:
        """The last part of the name, in words."""
        return self.name.rpartition(".")[2].replace("_", " ").removesuffix(" s")

    @property
    def id(self) -> str:
        """The id in HTML, which has no dots."""
        return "f-" + self.name.replace(".", "-")


@dataclass(frozen=True, slots=True)
class Group:
    """Fields of an object within the spec, of which few people change those in `more`. An empty object is left out
    unless it is `required`. `file` says that the object names a file, which can be looked into; `picked` is the tag
    that chose the object of a union. The `rows` of a list are groups, of which the empty ones are left out."""

    name: str
    fields: "Sequence[Field | Group]"
    more: "Sequence[Field | Group]" = ()
    required: bool = True
    file: bool = False
    picked: str = ""
    rows: bool = False

    @property
    def label(self) -> str:
        return self.name.rpartition(".")[2].replace("_", " ")


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a kind of job: `main` has the fields that everybody looks at, `more` those that few people change."""

    kind: str
    summary: str
    main: Sequence[Field | Group]
    more: Sequence[Field | Group]

    def flat(self) -> list[Field]:
        """All fields, including the fields of groups."""
        return _flat([*self.main, *self.more])


def _flat(parts: Sequence[Field | Group]) -> list[Field]:
    fields: list[Field] = []
    for part in parts:
        fields += [part] if isinstance(part, Field) else _flat([*part.fields, *part.more])
    return fields
