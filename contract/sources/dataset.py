"""Arrays that were uploaded."""

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, BinaryIO, Literal

from pydantic import Field, StringConstraints

from warpfold.contract.folders import Folders
from warpfold.contract.sources.options import AnyOptions, read_of
from warpfold.contract.sources.source import SourceSpec
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.frames import Frame
from warpfold.kernels.formats.npy import read_head
from warpfold.kernels.formats.signature import Format, format_of
from warpfold.kernels.sources.inputs import LocalFile
from warpfold.kernels.sources.sequential import Elements

_TEXT = ".csv"
"""The endings of the names of tables of text. Other uploads are recognised by their first bytes, which text does not
have."""

_SHOWN = 12
"""How many digits of an id a line about a job shows."""


class DatasetSource(AnyOptions, SourceSpec):
    """An array or a table that a user uploaded to `/v1/datasets`, with the options of its format. A file of any other
    format is read as a table of text, whose columns are separated by commas unless `text` says otherwise."""

    type: Literal["dataset"]
    id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] = Field(
        description="The SHA-256 of the uploaded file."
    )

    @property
    def dataset_id(self) -> str:
        return self.id

    def identity(self) -> str:
        return f"the dataset {self.id}{self.described()}"

    @staticmethod
    def summary(stored: Mapping[str, Any]) -> str | None:
        chosen = stored.get("column") or stored.get("array")
        return f"dataset {stored['id'][:_SHOWN]}" + (f" {chosen}" if chosen else "") if "id" in stored else None

    def bytes_at_hand(self, folders: Folders | None) -> int | None:
        try:
            return None if folders is None else folders.dataset(self.id).stat().st_size
        except OSError:
            return None

    def files(self, folders: Folders) -> Sequence[LocalFile]:
        return (LocalFile(self.id, partial(self.begin, folders), sha256=self.id),)

    def open(self, folders: Folders) -> Elements:
        """The elements of the uploaded file; an array of a .npy file is mapped into memory for reading. Raises
        InvalidInput and Unavailable.

        A .npy file that is not as long as its head promises is refused. No file is hashed again: that would cost more
        than most reductions of it, and the file got its name only after its bytes had been hashed.
        """
        return read_of(f"dataset {self.id}", "source.id", partial(self.begin, folders), self._open_in)

    def open_table(self, folders: Folders) -> Frame:
        return read_of(f"dataset {self.id}", "source.id", partial(self.begin, folders), self._open_table_in)

    def _open_table_in(self, file: BinaryIO) -> Frame:
        return self.open_table_in(file, _TEXT if format_of(file) is None else "")

    def begin(self, folders: Folders) -> BinaryIO:
        """The uploaded file, to be closed by the caller. Raises InvalidInput and OSError."""
        try:
            return folders.dataset(self.id).open("rb")
        except FileNotFoundError:
            raise InvalidInput("is not there: it was deleted after the job was accepted") from None

    def _open_in(self, file: BinaryIO) -> Elements:
        kind = format_of(file)
        if kind is Format.NPY:
            head = read_head(file, wider=True)
            if os.fstat(file.fileno()).st_size != head.offset + head.data_bytes:
                raise InvalidInput("is damaged: its file is not as long as its head promises")
        return self.open_in(file, _TEXT if kind is None else "")
