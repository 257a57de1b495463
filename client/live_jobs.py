"""Jobs that know their client, of `Client` and of `AsyncClient`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import PrivateAttr

from warpfold.client import jobs
from warpfold.client.artefacts import Format
from warpfold.client.job_results import Result
from warpfold.client.models import Job
from warpfold.client.progress import bar

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpfold.client.api import Client
    from warpfold.client.async_api import AsyncClient


class LiveJob(Job):
    """A job that knows whom to ask: `refresh`, `wait` and `cancel` bring this very object up to date."""

    _client: "Client" = PrivateAttr()

    @classmethod
    def of(cls, job: Job, client: "Client") -> "LiveJob":
        """A snapshot that can be asked again."""
        live = cls.model_construct(**dict(job))
        live._client = client
        return live

    def refresh(self) -> "LiveJob":
        """Ask how it is now."""
        return self._become(self._client.job(self.id))

    def wait(self, *, timeout_s: float | None = None, show_progress: bool | None = None) -> "LiveJob":
        """Wait until it has ended, with a progress bar where standard error is a terminal.

        Raises WaitedTooLong after `timeout_s` seconds; the job goes on.
        """
        with bar(show_progress) as follow:
            return self._become(self._client.wait(self, timeout_s=timeout_s, progress=follow))

    def get(self, *, timeout_s: float | None = None) -> Result:
        """Wait for it, and give its result. Raises JobFailed if the job has no result."""
        return jobs.result_of(self.wait(timeout_s=timeout_s))

    def cancel(self) -> "LiveJob":
        """Ask for its end."""
        return self._become(self._client.cancel(self.id))

    def artefact(self, path: str | Path, format: Format | None = None) -> Path:
        """Wait for it, and download its stored result into a file: see `Client.artefact`."""
        return self._client.artefact(self.wait(), path, format)

    def array(self) -> "NDArray[Any]":
        """Wait for it, and give all values of a reduction along axes or by segments, however many there are."""
        return self._client.array(self.wait())


class AsyncLiveJob(Job):
    """A job that knows whom to ask: `refresh`, `wait` and `cancel` bring this very object up to date."""

    _client: "AsyncClient" = PrivateAttr()

    @classmethod
    def of(cls, job: Job, client: "AsyncClient") -> "AsyncLiveJob":
        """A snapshot that can be asked again."""
        live = cls.model_construct(**dict(job))
        live._client = client
        return live

    async def refresh(self) -> "AsyncLiveJob":
        """Ask how it is now."""
        return self._become(await self._client.job(self.id))

    async def wait(self, *, timeout_s: float | None = None, show_progress: bool | None = None) -> "AsyncLiveJob":
        """Wait until it has ended, with a progress bar where standard error is a terminal.

        Raises WaitedTooLong after `timeout_s` seconds; the job goes on.
        """
        with bar(show_progress) as follow:
            return self._become(await self._client.wait(self, timeout_s=timeout_s, progress=follow))

    async def get(self, *, timeout_s: float | None = None) -> Result:
        """Wait for it, and give its result. Raises JobFailed if the job has no result."""
        return jobs.result_of(await self.wait(timeout_s=timeout_s))

    async def cancel(self) -> "AsyncLiveJob":
        """Ask for its end."""
        return self._become(await self._client.cancel(self.id))

    async def artefact(self, path: str | Path, format: Format | None = None) -> Path:
        """Wait for it, and download its stored result into a file: see `Client.artefact`."""
        return await self._client.artefact(await self.wait(), path, format)

    async def array(self) -> "NDArray[Any]":
        """Wait for it, and give all values of a reduction along axes or by segments, however many there are."""
        return await self._client.array(await self.wait())
