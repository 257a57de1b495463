"""Jobs that know their client, of `Client` and of `AsyncClient`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, Unpack

from pydantic import PrivateAttr

from warpfold.client import artefacts, jobs
from warpfold.client.artefacts import Format
from warpfold.client.exchange import Steps, awaited, mapped
from warpfold.client.job_results import Result
from warpfold.client.jobs import JobEdit
from warpfold.client.models import Job
from warpfold.client.progress import shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

T = TypeVar("T")


class _Live(Job):
    """A job with the client that it came from."""

    _client: Any = PrivateAttr()

    @classmethod
    def of(cls, job: Job, client: object) -> Self:
        """A snapshot that can be asked again."""
        live = cls.model_construct(**dict(job))
        live._client = client
        return live  # type: ignore[return-value]  # Pydantic's plugin takes it for this very class

    def _do(self, steps: Steps[T]) -> T:
        answer: T = self._client._do(steps)
        return answer

    def _waited_for(self, timeout_s: float | None = None, show_progress: bool | None = None) -> Steps[Self]:
        return mapped(self._become, shown(show_progress, lambda follow: jobs.wait(self, timeout_s, follow)))


class LiveJob(_Live):
    """A job that knows whom to ask: `refresh`, `wait` and `cancel` bring this very object up to date."""

    def refresh(self) -> "LiveJob":
        """Ask how it is now."""
        return self._do(mapped(self._become, jobs.get(self.id)))

    def wait(self, *, timeout_s: float | None = None, show_progress: bool | None = None) -> "LiveJob":
        """Wait until it has ended, with a progress bar where standard error is a terminal.

        Raises WaitedTooLong after `timeout_s` seconds; the job goes on.
        """
        return self._do(self._waited_for(timeout_s, show_progress))

    def get(self, *, timeout_s: float | None = None) -> Result:
        """Wait for it, and give its result. Raises JobFailed if the job has no result."""
        return self._do(mapped(jobs.result_of, self._waited_for(timeout_s)))

    def cancel(self) -> "LiveJob":
        """Ask for its end."""
        return self._do(mapped(self._become, jobs.cancel(self.id)))

    def edit(self, **changed: Unpack[JobEdit]) -> "LiveJob":
        """Change its name, its note or its tags."""
        return self._do(mapped(self._become, jobs.edit(self.id, changed)))

    def delete(self) -> None:
        """Delete it, once it has ended, with its measurements and its stored result."""
        self._do(jobs.delete(self.id))

    def artefact(self, path: str | Path, format: Format | None = None) -> Path:
        """Wait for it, and download its stored result into a file: see `Client.artefact`."""
        return self._do(artefacts.save(self._waited_for(), Path(path), format))

    def array(self) -> "NDArray[Any]":
        """Wait for it, and give all values of a reduction along axes or by segments, however many there are."""
        return self._do(artefacts.array(self._waited_for()))


class AsyncLiveJob(_Live):
    """A job that knows whom to ask: `refresh`, `wait` and `cancel` bring this very object up to date."""

    refresh: ClassVar = awaited(LiveJob.refresh)
    wait: ClassVar = awaited(LiveJob.wait)
    get: ClassVar = awaited(LiveJob.get)
    cancel: ClassVar = awaited(LiveJob.cancel)
    edit: ClassVar = awaited(LiveJob.edit)
    delete: ClassVar = awaited(LiveJob.delete)
    artefact: ClassVar = awaited(LiveJob.artefact)
    array: ClassVar = awaited(LiveJob.array)
