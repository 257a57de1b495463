"""How text is to be read: what stands between cells, which words are nulls, and which columns are words."""

from dataclasses import dataclass

from warpfold.kernels.errors import InvalidInput

NULL_WORDS = ("NA", "N/A", "n/a", "#N/A", "NULL", "null")
"""The words that are nulls in columns of numbers, where nothing else is said. NaN is a number."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """`delimiter` stands between two cells. `null_words` are nulls in every column; None stands for `NULL_WORDS` in
    columns of numbers, times and truth values, and for no word in columns of words. An empty cell is a null in any
    case, and a cell in quotes is none. The columns `words` are words, whatever they hold."""

    delimiter: str = ","
    null_words: tuple[str, ...] | None = None
    words: tuple[str, ...] = ()

    def check_unused(self) -> None:
        """Raise InvalidInput naming a field that is set, and that means nothing to a file that is not text."""
        for field, value in (("null_words", self.null_words), ("words", self.words or None)):
            if value is not None:
                raise InvalidInput(f"is not text, which `{field}` is for: leave `{field}` out", field)

    @property
    def nulls_of_numbers(self) -> tuple[str, ...]:
        """The texts of a cell that are nulls in a column of numbers."""
        return ("", *(NULL_WORDS if self.null_words is None else self.null_words))

    @property
    def nulls_of_words(self) -> tuple[str, ...]:
        """The texts of a cell that are nulls in a column of words."""
        return ("", *(self.null_words or ()))

    @property
    def has_numbers_as_nulls(self) -> bool:
        """Whether a null may be written as a number, such as −999."""
        return any(word[:1] in "+-.0123456789" for word in self.nulls_of_numbers if word)
