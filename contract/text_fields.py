"""The options that all files share, and those of text: what stands between its cells, how its numbers are written, and
what its words are."""

from typing import TYPE_CHECKING, Annotated, BinaryIO, Literal, Self

from pydantic import Field, StrictBool, StrictInt, StringConstraints, model_validator

from warpfold.contract.frozen import Frozen
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.dialect import NULL_WORDS, TextOptions
from warpfold.kernels.formats.signature import delimiter_of

if TYPE_CHECKING:
    from warpfold.kernels.sources.sequential import Elements

MOST_WORDS = 100
Word = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r'^[^\x00\r\n"]+$')]
InFile = Annotated[str, StringConstraints(min_length=1, max_length=1024, pattern=r"^[^\x00]+$")]
NullPolicyName = Literal["omit", "raise", "propagate"]


class FileOptions(Frozen):
    """The options that all files share."""

    null_policy: NullPolicyName = Field(
        "omit",
        description="The treatment of nulls: `omit` leaves them out, `raise` fails the job, and `propagate` makes each "
        "value null that has a null among its elements. The result counts nulls that were left out or "
        "propagated. NaN is no null.",
    )

    def refusing_nulls(self) -> Self:
        return self.model_copy(update={"null_policy": "raise"})

    def in_place(self) -> Self:
        return self if self.propagates_nulls else self.refusing_nulls()

    @property
    def propagates_nulls(self) -> bool:
        return self.null_policy == "propagate"

    def described(self) -> str:
        """The options that are not left at their defaults, in words that follow a file's name."""
        options = self.model_dump(
            exclude_defaults=True, exclude={"type", "path", "paths", "uploads", "glob", "id", "name"}
        )
        return "".join(f", {name} {value}" for name, value in options.items())

    def open_in(self, file: BinaryIO, name: str) -> "Elements":
        """The elements in `file`, which is called `name` and must stay open while they are read. Raises InvalidInput
        and Unavailable."""
        raise NotImplementedError


class TextFields(FileOptions):
    """The options of text, beside those of all files. What is left out is told by the text itself."""

    text: Literal["csv", "tsv"] | None = Field(
        None,
        description="For text only: the separator of the columns, a comma or a tab. If it is left out, `delimiter` "
        "says it, or the file's name: .tsv and .tab have tabs. Of other names the text itself tells.",
    )
    delimiter: (
        Annotated[
            str, StringConstraints(min_length=1, max_length=1, pattern=r'^[^0-9A-Za-z\x00\r\n".+\-\x7f-\U0010ffff]$')
        ]
        | None
    ) = Field(
        None,
        description="For text only: the character between two cells, such as a semicolon. If it is left out, the text "
        "tells which of , ; tab and | it is, or is refused where several may be.",
    )
    quote: Literal['"', "'", ""] | None = Field(
        None, description="For text only: the character around quoted cells; empty where no cell is quoted."
    )
    decimal: Literal[".", ","] | None = Field(
        None,
        description="For text only: the character before the fraction of a number. If it is left out, the text tells. "
        "A column in which all of its first words can be read in two ways, such as 1,234, is refused then.",
    )
    thousands: Literal["", ",", ".", " ", "'", "_"] | None = Field(
        None,
        description="For text only: the character between groups of three digits; empty where nothing is there. A "
        "space stands for spaces that keep a number on its line, too.",
    )
    encoding: Literal["utf-8", "utf-16", "utf-16-le", "utf-16-be", "latin-1", "cp1252"] | None = Field(
        None,
        description="For text only: what the text is in. If it is left out, it is UTF-16 if it begins with the mark of "
        "UTF-16, and else UTF-8.",
    )
    comment: Annotated[str, StringConstraints(max_length=2, pattern=r"^[!#$%&*/;@~]*$")] | None = Field(
        None,
        description="For text only: what begins a line that is a comment; empty where nothing does. If it is left out, "
        "it is # where the text begins with such lines.",
    )
    header: StrictBool | None = Field(
        None,
        description="For text and .xlsx: whether the first row has the names of the columns; without them they are "
        "called column_1, column_2, …. If it is left out, the text tells, or is refused where the first row may be "
        "names or values.",
    )
    null_words: tuple[Word, ...] | None = Field(
        None,
        max_length=MOST_WORDS,
        description="For text and .xlsx: the words that are nulls, in every column. If they are left out, "
        f"{', '.join(NULL_WORDS[:-1])} and {NULL_WORDS[-1]} are nulls in columns of numbers, times and truth values, "
        "and no word is a null in columns of words. An empty cell is a null in any case, and a cell in quotes is none.",
    )
    words: tuple[InFile, ...] = Field(
        (),
        max_length=MOST_WORDS,
        description="For text and .xlsx: the columns that are words, whatever they hold, as keys of groups and in "
        "filters. The key 1 is no integer then, and 1.0 is another key.",
    )

    sheet: Annotated[StrictInt, Field(ge=1)] | InFile | None = Field(
        None,
        description="For .xlsx only: the sheet, by its name or by its number from 1. If it is left out, it is the "
        "first one; the result says which was read.",
    )

    @model_validator(mode="after")
    def _of_different_marks(self) -> Self:
        if self.decimal is not None and self.decimal == self.thousands:
            raise InvalidInput("is the mark before fractions, too", "thousands")
        delimiter = self._delimiter("")
        if delimiter is not None and delimiter in (self.quote, (self.comment or "")[:1]):
            raise InvalidInput("stands around cells or begins comments, too", "delimiter")
        return self

    @property
    def is_text(self) -> bool:
        """Whether an option says that a file is text."""
        return self.text is not None or self.delimiter is not None

    def text_options(self, name: str) -> TextOptions:
        """How the file called `name` is to be read, if it is text."""
        return TextOptions(
            **{field: getattr(self, field) for field in OF_TEXT if field != "text"},
            of_name=self._delimiter(name),
        )

    def _delimiter(self, name: str) -> str | None:
        if self.delimiter is not None or self.text is None:
            return self.delimiter or delimiter_of(name)
        return "\t" if self.text == "tsv" else ","


OF_TEXT = tuple(TextFields.__annotations__)
"""The options of text."""
