"""An array or a column in a file, as a look into the file shows it."""

from pydantic import Field

from warpfold.contract.frozen import Frozen
from warpfold.kernels.formats.contents import Content

_MOST_LETTERS = 1024


class ContentView(Frozen):
    """An array or a column in a file."""

    name: str = Field(
        description="The name by which a source refers to the array or the column; empty for the only array of a .npy "
        "file, or of a Zarr array."
    )
    dtype: str = Field(description="The type, as the format of the file calls it.")
    reduced_as: str | None = Field(description="The dtype of the elements in a job; null where no job can reduce them.")
    shape: tuple[int, ...] | None = Field(
        description="The length along each axis; null where only reading the whole file would tell."
    )
    nulls: int | None = Field(description="The number of nulls; null where the file's metadata do not tell.")
    chunks: tuple[int, ...] | None = Field(
        description="The shape of the chunks, or the rows of the largest row group of a Parquet file; null "
        "without chunks."
    )
    bytes: int | None = Field(
        description="The bytes that the array or the column takes in the file, compressed or not; null where they are "
        "not known."
    )

    @classmethod
    def of(cls, content: Content) -> "ContentView":
        return cls(
            name=content.name[:_MOST_LETTERS],
            dtype=content.dtype[:_MOST_LETTERS],
            reduced_as=content.reduced_as,
            shape=content.shape,
            nulls=content.nulls,
            chunks=content.chunks,
            bytes=content.nbytes,
        )
