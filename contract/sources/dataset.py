"""Files that were uploaded."""

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, BinaryIO, Literal

from pydantic import Field, StringConstraints

from warpfold.contract.folders import Folders, dataset_in_words
from warpfold.contract.frozen import Frozen
from warpfold.contract.sources.options import AnyOptions, read_of
from warpfold.contract.sources.source import SourceSpec
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.frames import Frame
from warpfold.kernels.formats.npy import read_head
from warpfold.kernels.formats.signature import Format, format_of, is_text
from warpfold.kernels.sources.inputs import LocalFile
from warpfold.kernels.sources.sequential import Elements

_TEXT = ".csv"
"""What a table of text is called whose name does not say that it is text. Other uploads are recognised by their first
bytes, which text does not have."""


class UploadedFile(Frozen):
    """A file that a user uploaded to `/v1/datasets`."""

    id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] = Field(
        description="The SHA-256 of the uploaded file."
    )
    name: Annotated[str, StringConstraints(max_length=1024, pattern=r"^[^\x00]*$")] = Field(
        "",
        exclude_if=lambda name: not name,
        description="The name that the file has for its sender: errors and results call it so. The ending of the name "
        "tells the separator of a table of text.",
    )

    @property
    def called(self) -> str:
        """What errors call the file."""
        return repr(self.name) if self.name else dataset_in_words(self.id)

    @property
    def label(self) -> str:
        """What results call the file."""
        return self.name or self.id

    def local(self, folders: Folders) -> LocalFile:
        """The file on this machine."""
        return LocalFile(self.label, partial(self.begin, folders), sha256=self.id)

    def begin(self, folders: Folders) -> BinaryIO:
        """The file, to be closed by the caller. Raises InvalidInput and OSError."""
        try:
            return folders.dataset(self.id).open("rb")
        except FileNotFoundError:
            raise InvalidInput("is not there: it was deleted after the job was accepted") from None

    def elements_in(self, file: BinaryIO, options: AnyOptions) -> Elements:
        """The elements in the open file. Raises InvalidInput and Unavailable."""
        if format_of(file) is Format.NPY:
            head = read_head(file, wider=True)
            if os.fstat(file.fileno()).st_size != head.offset + head.data_bytes:
                raise InvalidInput("is damaged: its file is not as long as its head promises")
        return options.open_in(file, self._name_of_text(file))

    def frame_in(self, file: BinaryIO, options: AnyOptions) -> Frame:
        """The columns of the table in the open file. Raises InvalidInput and Unavailable."""
        return options.open_table_in(file, self._name_of_text(file))

    def _name_of_text(self, file: BinaryIO) -> str:
        """The name by which the separator is known where the file is text."""
        return self.name if is_text(self.name) else _TEXT if format_of(file) is None else ""


class DatasetSource(AnyOptions, UploadedFile, SourceSpec):
    """An array or a table that a user uploaded to `/v1/datasets`, with the options of its format. A file of any other
    format is read as a table of text, whose columns are separated by commas unless `name` or `text` says otherwise."""

    type: Literal["dataset"]

    @property
    def dataset_ids(self) -> Mapping[str, str]:
        return {self.id: "id"}

    def identity(self) -> str:
        called = f" ({self.name})" if self.name else ""
        return f"the dataset {self.id}{called}{self.described()}"

    @staticmethod
    def summary(stored: Mapping[str, Any]) -> str | None:
        if "id" not in stored:
            return None
        chosen = stored.get("column") or stored.get("array")
        return (stored.get("name") or dataset_in_words(stored["id"])) + (f" {chosen}" if chosen else "")

    def bytes_at_hand(self, folders: Folders | None) -> int | None:
        try:
            return None if folders is None else folders.dataset(self.id).stat().st_size
        except OSError:
            return None

    def files(self, folders: Folders) -> Sequence[LocalFile]:
        return (self.local(folders),)

    def open(self, folders: Folders) -> Elements:
        """The elements of the uploaded file; an array of a .npy file is mapped into memory for reading. Raises
        InvalidInput and Unavailable.

        A .npy file that is not as long as its head promises is refused. No file is hashed again: that would cost more
        than most reductions of it, and the file got its name only after its bytes had been hashed.
        """
        elements_in = partial(self.elements_in, options=self)
        return read_of(self.called, "source.id", partial(self.begin, folders), elements_in)

    def open_table(self, folders: Folders) -> Frame:
        frame_in = partial(self.frame_in, options=self)
        return read_of(self.called, "source.id", partial(self.begin, folders), frame_in)

    def dimensions(self, folders: Folders) -> tuple[str, ...]:
        return read_of(self.called, "source.id", partial(self.begin, folders), self.dimensions_in)
