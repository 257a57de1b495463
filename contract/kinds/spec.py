"""The questions that the spec of every kind of job answers. A kind of job is a file of this folder: a spec, and its
result."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import ValidationError

from warpfold.contract.faults import first_fault
from warpfold.contract.fields import BackendName, JobOptions
from warpfold.contract.folders import Folders
from warpfold.contract.placement import Work
from warpfold.contract.sources.source import SourceSpec
from warpfold.kernels.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Changes:
    """What to change in every job of a preset; None changes nothing.

    `backend` is where to run. `max_n`: longer arrays are left out, or cut to that length where no array is shorter.
    `time_limit_s` bounds the sampling of one point.
    """

    backend: BackendName | None = None
    max_n: int | None = None
    time_limit_s: float | None = None
    timeout_s: float | None = None


class LeftOut(Exception):
    """A job cannot be changed as its preset asks; the message says why."""


class Spec(JobOptions, ABC):
    """A job as a request describes it. Its field `kind` tells it from the others."""

    if TYPE_CHECKING:
        kind: str  # each spec declares its own, among its own fields

    @staticmethod
    @abstractmethod
    def summary(stored: Mapping[str, Any]) -> Sequence[str]:
        """The parts of one line about `stored`, the JSON object of a stored spec of this kind or of its brief form, as
        any version wrote it."""

    def description(self) -> str:
        """The request in the words of a report."""
        parts = self.summary(self.model_dump(mode="json"))
        return f"{self.kind}: {' · '.join(part for part in parts if part) or self.kind}"

    def brief(self) -> JobOptions | None:
        """The form of the spec in lists; None if the spec is short enough as it is."""
        return None

    def sources(self) -> Iterator[tuple[str, SourceSpec]]:
        """The sources that the spec names, each with its field."""
        yield from ()

    def parts(self) -> "Sequence[tuple[str, Task]]":
        """The jobs that the spec consists of, by name; none if the spec is run itself."""
        return ()


class Task(Spec):
    """A job that a worker can be asked to run. While one that is `timed` takes its times, its slot uses the processor
    for nothing else."""

    timed: ClassVar[bool] = False

    @abstractmethod
    def needs(self) -> str:
        """The slots that can run the job, by a word of `contract.needs`."""

    @abstractmethod
    def moved(self, backend: BackendName) -> Mapping[str, Any]:
        """The fields to change so that the job runs on `backend`. Raises LeftOut if it cannot."""

    def shortened(self, max_n: int) -> Mapping[str, Any]:
        """The fields to change so that no array is longer than `max_n`."""
        return {}

    def hurried(self, time_limit_s: float) -> Mapping[str, Any]:
        """The fields to change so that sampling one point takes no longer than `time_limit_s`."""
        return {}

    def small(self) -> bool:
        """Whether the job takes a worker about a millisecond, once its kernel is compiled: a slot may hold many such
        jobs at a time and end several of them in one transaction."""
        return False

    def work(self, folders: Folders | None = None) -> Work | None:
        """The bytes that the job has to move, so far as they are known without opening files; None where they do not
        determine how long the job takes. With `folders`, the sizes of files are read."""
        return None

    def data_seed(self) -> int | None:
        """The seed that the data is made of; None where no data is made."""
        return None

    def changed(self, changes: Changes) -> Self:
        """The same job with `changes`. Raises LeftOut if it cannot run on the backend that is asked for."""
        values: dict[str, Any] = {}
        if changes.timeout_s is not None and changes.timeout_s < self.timeout_s:
            values["timeout_s"] = changes.timeout_s
        if changes.max_n is not None:
            values |= self.shortened(changes.max_n)
        if changes.time_limit_s is not None:
            values |= self.hurried(changes.time_limit_s)
        if changes.backend is not None:
            values |= self.moved(changes.backend)
        if not values:
            return self
        try:
            return type(self).model_validate({**self.model_dump(), **values})
        except ValidationError as error:
            raise LeftOut(str(first_fault(error))) from None


def check_states_of_nulls(sources: Iterable[tuple[str, SourceSpec]]) -> None:
    """Raise InvalidInput naming the field of the first of `sources`, each with its field, whose nulls propagate: no
    exact state stands for a null."""
    for field, source in sources:
        if source.propagates_nulls:
            raise InvalidInput(
                "a null has no exact state: give states with null_policy omit or raise", f"{field}.null_policy"
            )


def moved_from(own: str, backend: str) -> Mapping[str, Any]:
    """The change of a job that names its `own` backend. Raises LeftOut if that is another one than `backend`."""
    if own not in ("auto", backend):
        raise LeftOut(f"the job runs on {own}")
    return {"backend": backend}


def up_to(sizes: tuple[int, ...], most: int) -> tuple[int, ...]:
    """The sizes that are not larger than `most`; that one size where all are larger."""
    return tuple(size for size in sizes if size <= most) or ((most,) if sizes else ())
