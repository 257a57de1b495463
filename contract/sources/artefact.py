"""Tables of exact states that an earlier job stored."""

from collections.abc import Mapping
from functools import partial
from typing import Any, BinaryIO, Literal
from uuid import UUID

from pydantic import Field

from warpfold.contract.folders import Folders, placed_artefact
from warpfold.contract.sources.options import read_of
from warpfold.contract.sources.source import SourceSpec
from warpfold.kernels.errors import InvalidInput, Unavailable
from warpfold.kernels.formats.dialect import TextOptions
from warpfold.kernels.formats.frames import Frame, open_frame
from warpfold.kernels.sources.sequential import Elements


class ArtefactSource(SourceSpec):
    """The stored result of a job that was asked for `states`."""

    type: Literal["artefact"]
    job_id: UUID = Field(description="The id of the job.")

    @property
    def read_job_id(self) -> UUID:
        return self.job_id

    def identity(self) -> str:
        return f"the stored result of job {self.job_id}"

    @staticmethod
    def summary(stored: Mapping[str, Any]) -> str | None:
        return f"job {stored['job_id']}" if "job_id" in stored else None

    def open(self, folders: Folders) -> Elements:
        raise InvalidInput("is a table of states, which are merged and not reduced", "source")

    def open_table(self, folders: Folders) -> Frame:
        return read_of(
            self.identity(),
            "source.job_id",
            partial(self._begin, folders),
            lambda file: open_frame(file, None, TextOptions()),
        )

    def _begin(self, folders: Folders) -> BinaryIO:
        """The table, to be closed by the caller. Raises InvalidInput, Unavailable and OSError."""
        if folders.artefacts is None:
            raise Unavailable("this worker has no folder of results that are stored")
        folder = placed_artefact(folders.artefacts.path, self.job_id)
        if folder is None:
            raise InvalidInput("is not there: the job stored nothing, or what it stored was deleted or has expired")
        for name in ("states.arrow", "table.arrow"):
            if (folder / name).exists():
                return (folder / name).open("rb")
        raise InvalidInput('holds no states: run the job with "states": true')
