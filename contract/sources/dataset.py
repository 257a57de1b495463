"""Arrays that were uploaded."""

import os
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from warpfold.contract.folders import Folders, dataset_file
from warpfold.contract.sources.roots import reason_of
from warpfold.contract.sources.source import SourceSpec
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.npy import open_array, read_head
from warpfold.kernels.source import ArraySource


class DatasetSource(SourceSpec):
    """An array that a user uploaded to `/v1/datasets`."""

    type: Literal["dataset"]
    id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] = Field(
        description="The SHA-256 of the .npy file."
    )

    @property
    def dataset_id(self) -> str:
        return self.id

    def identity(self) -> str:
        return f"the dataset {self.id}"

    @staticmethod
    def summary(stored: Mapping[str, Any]) -> str | None:
        return f"dataset {stored['id']}" if "id" in stored else None

    def open(self, folders: Folders) -> ArraySource:
        """The uploaded array, mapped into memory for reading. Raises InvalidInput.

        A file that is not as long as its head promises is refused. It is not hashed again: that would cost more than
        most reductions of it, and the file got its name only after its bytes had been hashed.
        """
        try:
            with dataset_file(folders.datasets, self.id).open("rb") as file:
                head = read_head(file)
                if os.fstat(file.fileno()).st_size == head.offset + head.data_bytes:
                    return open_array(file, head)
                why = "is damaged: its file is not as long as its head promises"
        except FileNotFoundError:
            why = "is not there: it was deleted after the job was accepted"
        except InvalidInput as error:
            why = str(error)
        except OSError as error:
            why = f"cannot be read: {reason_of(error)}"
        raise InvalidInput(f"dataset {self.id} {why}", "source.id")
