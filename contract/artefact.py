"""Stored artefacts: results that are too large to stand in a job, and are kept in files beside it."""

from typing import Literal

from pydantic import ConfigDict, Field, StrictStr
from pydantic.config import JsonDict

from warpfold.contract.frozen import Frozen
from warpfold.contract.json_value import JsonValue

PREVIEWED = 100
"""Rows of an artefact that stand in the result."""

MOST_STORED = 1 << 30
"""Values that a reduction may have, so that they are stored."""

ArtefactFormat = Literal["npy", "arrow", "parquet", "csv"]
PartName = Literal["values", "missing", "counts", "states", "table"]

_EXAMPLE: JsonDict = {
    "href": "/v1/jobs/bad2cde1-a387-4c34-b05b-cb4651e4f880/artefact",
    "formats": ["npy", "arrow", "parquet", "csv"],
    "shape": [20000],
    "dtype": "float64",
    "columns": [
        {"name": "axis_0", "dtype": "int64"},
        {"name": "value", "dtype": "float64"},
        {"name": "count", "dtype": "int64"},
    ],
    "rows": 20000,
    "bytes": 160128,
    "sha256": "6ae7a5f22ac4dbdcf606a179a2b62bdd93055e5a37993d04e0a47864e12858aa",
    "parts": [
        {
            "name": "values",
            "format": "npy",
            "dtype": "<f8",
            "bytes": 160128,
            "sha256": "6ae7a5f22ac4dbdcf606a179a2b62bdd93055e5a37993d04e0a47864e12858aa",
        }
    ],
    "count_each": 3,
    "preview_columns": ["axis_0", "value", "hex", "count"],
    "preview": [[0, 2.0, "0x1.0000000000000p+1", 3], [1, 7.0, "0x1.c000000000000p+2", 3]],
}


class ArtefactPart(Frozen):
    """A stored file of an artefact."""

    name: PartName = Field(
        description="The name of the file: `values` of an array; `missing`, which is true where a value is missing; "
        "`counts`, the number of elements of each value; `states`, the exact state of each value; or `table`."
    )
    format: Literal["npy", "arrow"]
    dtype: str | None = Field(description="The dtype as a .npy file names it; null for a table.")
    bytes: int
    sha256: str = Field(description="The SHA-256 of the file in hexadecimal digits.")


class ArtefactColumn(Frozen):
    """A column of an artefact as Arrow, Parquet and CSV have it."""

    name: str
    dtype: str


class Artefact(Frozen):
    """The stored part of a result, and where it can be downloaded.

    For an array, `format=npy` gives the stored file. Where a value is missing, the file has NaN, 0 or an empty text,
    and the part `missing` is true. Integers beyond 64 bits are stored as decimal text. The other formats are tables
    with a row for each value.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    href: str = Field(description="The path of the download; `format` chooses the format, and `part` a stored file.")
    formats: tuple[ArtefactFormat, ...] = Field(description="The formats of the download.")
    shape: tuple[int, ...] = Field(description="The lengths of the axes of an array, or the number of rows of a table.")
    dtype: str | None = Field(
        description='The dtype of the values; "integer" is an integer of any size. Null for a table.'
    )
    columns: tuple[ArtefactColumn, ...] = Field(description="The columns as Arrow, Parquet and CSV have them.")
    rows: int
    bytes: int = Field(description="The size of all stored files, which counts towards the owner's quota.")
    sha256: str = Field(description="The SHA-256 of the first part: of the values, or of the table.")
    parts: tuple[ArtefactPart, ...] = Field(description="The stored files.")
    count_each: int | None = Field(
        description="The number of elements that each value was computed from. It is null for a table, and where the "
        "numbers differ: then the part `counts` has them."
    )
    preview_columns: tuple[str, ...] = Field(
        description="The columns of `preview`, among them floats as exact hexadecimal digits."
    )
    preview: tuple[tuple[JsonValue | StrictStr | None, ...], ...] = Field(
        description=f"The first {PREVIEWED} rows at most."
    )

    def part(self, name: str) -> ArtefactPart | None:
        """The part of that name, if there is one."""
        return next((part for part in self.parts if part.name == name), None)
