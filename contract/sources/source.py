"""The questions that every kind of source answers."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self
from uuid import UUID

from pydantic import BaseModel

from warpfold.contract.folders import Folders
from warpfold.contract.frozen import Frozen
from warpfold.contract.placement import Lies
from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.frames import Frame
from warpfold.kernels.places.place import NOWHERE, Places
from warpfold.kernels.sources.inputs import LocalFile
from warpfold.kernels.sources.sequential import Elements


class SourceSpec(Frozen, ABC):
    """A source of elements, as a request names it. Its field `type` tells it from the others.

    The api asks what can be known without the elements; a worker, which may be on another machine, opens them.
    """

    @property
    def known_dtype(self) -> DType | None:
        """The dtype of the elements; None of a file, which only a worker looks at."""
        return None

    @property
    def known_count(self) -> int | None:
        """How many elements there are; None of a file."""
        return None

    @property
    def known_shape(self) -> tuple[int, ...] | None:
        """The shape of the array that the elements are; None of a file."""
        return None

    def bytes_at_hand(self, folders: Folders | None) -> int | None:
        """How many bytes the elements have, or the one file in `folders` that they are read from; None where no folders
        are given, and where that takes more than a look at one file of this machine. Nothing is raised: a faulty file
        is refused when it is opened."""
        count, dtype = self.known_count, self.known_dtype
        return None if count is None or dtype is None else count * dtype.itemsize

    @property
    def lies(self) -> Lies:
        """Where the elements are before they are reduced."""
        return "host"

    @property
    def dataset_ids(self) -> Mapping[str, str]:
        """The uploaded files that must be there until the job has ended, each with the field of the source that names
        it."""
        return {}

    @property
    def read_job_id(self) -> UUID | None:
        """The job whose stored result is read; None for other sources."""
        return None

    @property
    def upload_id(self) -> str | None:
        """The id of the upload that is reduced while it comes; None for other sources."""
        return None

    @property
    def generator_seed(self) -> int | None:
        """The seed that the elements are made of; None of elements that are given."""
        return None

    @abstractmethod
    def identity(self) -> str:
        """The elements in words that name the same ones again, as far as the source can."""

    @property
    def called(self) -> str:
        """What errors call the source."""
        return self.identity()

    @staticmethod
    @abstractmethod
    def summary(stored: Mapping[str, Any]) -> str | None:
        """One line about a stored source or its brief form, as any version wrote it; None if it cannot be read."""

    @abstractmethod
    def open(self, folders: Folders) -> Elements:
        """The elements, to be called by a worker. Raises InvalidInput, whose field begins with "source", and
        Unavailable where a package is not installed that the source's format needs."""

    def open_table(self, folders: Folders) -> Frame:
        """The columns of the table, to be called by a worker. Raises InvalidInput, whose field begins with "source",
        where the source is no table, and Unavailable."""
        raise InvalidInput(f"{self.identity()} is no table with columns", "source")

    def dimensions(self, folders: Folders) -> tuple[str, ...]:
        """The names of the dimensions of the array that the elements are, to be called by a worker; empty where one has
        none. Raises InvalidInput naming "axis" where the source has no such names, and as `open`."""
        raise InvalidInput(f"{self.called} has no names of dimensions: name the number of an axis", "axis")

    def files(self, folders: Folders) -> Sequence[LocalFile]:
        """The files of this machine that `open` reads, in their order; none where it reads URLs or no files. Raises
        InvalidInput."""
        return ()

    def check(self, field: str, roots: tuple[Path, ...], most_values: int, places: Places = NOWHERE) -> None:
        """Refuse a source that this server does not offer or that is too long for a request. Raises InvalidInput, whose
        field begins with `field`."""

    def brief(self) -> BaseModel:
        """The source as lists show it: itself, unless it is long."""
        return self

    def shortened(self, most: int) -> Self:
        """The same source of at most `most` elements, if they are made; itself if they are given."""
        return self

    def refusing_nulls(self) -> Self:
        """The same source, of which a null is an error."""
        return self

    def in_place(self) -> Self:
        """The same source for an op that needs every element in its place: no null is left out."""
        return self

    @property
    def propagates_nulls(self) -> bool:
        """Whether a value of elements with a null among them is null."""
        return False

    def beside_floats(self) -> Self:
        """The source as `dot` reads it beside an array of floats. Raises InvalidInput if that does not hold it."""
        return self
