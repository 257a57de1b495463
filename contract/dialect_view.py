"""How a text was read, as a result says it."""

from typing import TYPE_CHECKING

from pydantic import Field

from warpfold.contract.frozen import Frozen

if TYPE_CHECKING:
    from warpfold.kernels.formats.dialect import Dialect


class DialectView(Frozen):
    """How a text was read."""

    delimiter: str = Field(description="What stands between two cells.")
    quote: str = Field(description="What stands around a cell that is quoted; empty where nothing does.")
    decimal: str = Field(description="What stands before the fraction of a number.")
    thousands: str = Field(description="What stands between groups of three digits; empty where nothing does.")
    encoding: str = Field(description="What the text is in.")
    comment: str = Field(description="What begins a line that is a comment; empty where nothing does.")
    header: bool = Field(description="Whether the first row had the names of the columns.")

    sheet: str = Field("", exclude_if=lambda sheet: not sheet, description="Of a workbook, the sheet that was read.")

    @classmethod
    def of(cls, dialect: "Dialect") -> "DialectView":
        return cls(**{name: getattr(dialect, name) for name in cls.model_fields})

    @property
    def words(self) -> str:
        """What is not as in most files, in words; empty where everything is."""
        marks = {"delimiter": ",", "quote": '"', "decimal": ".", "thousands": "", "encoding": "utf-8", "comment": ""}
        odd = [f"{name} {getattr(self, name)!r}" for name, usual in marks.items() if getattr(self, name) != usual]
        odd += [f"sheet {self.sheet!r}"] if self.sheet else []
        return ", ".join([*odd, *([] if self.header else ["no header"])])
