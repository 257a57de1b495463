"""Batches that know their client, of `Client` and of `AsyncClient`."""

from typing import Protocol, TypeVar

from pydantic import PrivateAttr

from warpfold.client import batches
from warpfold.client.exchange import Steps
from warpfold.client.job_results import Result
from warpfold.client.progress import batch_bar

T = TypeVar("T")


class Conversing(Protocol):
    """An object that runs conversations with a service, as `Client` does."""

    def _do(self, steps: Steps[T]) -> T: ...


class AsyncConversing(Protocol):
    """The same for asyncio: `AsyncClient`."""

    async def _do(self, steps: Steps[T]) -> T: ...


class LiveBatch(batches.Batch):
    """A batch that knows whom to ask: `refresh`, `wait` and `cancel` bring this very object up to date."""

    _client: Conversing = PrivateAttr()

    @classmethod
    def of(cls, batch: batches.Batch, client: Conversing) -> "LiveBatch":
        """A snapshot that can be asked again."""
        live = cls.model_construct(**dict(batch))
        live._client = client
        return live

    def refresh(self) -> "LiveBatch":
        """Ask how it is now."""
        return self._become(self._client._do(batches.get(self.id)))

    def wait(self, *, timeout_s: float | None = None, show_progress: bool | None = None) -> "LiveBatch":
        """Wait until all jobs have ended, with a progress bar where standard error is a terminal.

        Raises WaitedTooLong after `timeout_s` seconds; the jobs go on.
        """
        with batch_bar(show_progress) as follow:
            return self._become(self._client._do(batches.wait(self, timeout_s, follow)))

    def cancel(self) -> "LiveBatch":
        """Ask for the end of all of its jobs."""
        return self._become(self._client._do(batches.cancel(self.id)))

    def outcomes(self) -> list[batches.JobOutcome]:
        """The outcome of each job, in the order of the specs."""
        return self._client._do(batches.outcomes(self.id))

    def results(self, *, timeout_s: float | None = None) -> list[Result]:
        """Wait, and give all results in the order of the specs. Raises JobFailed for the first job without one."""
        self.wait(timeout_s=timeout_s)
        return [outcome.get() for outcome in self.outcomes()]

    def parquet(self) -> bytes:
        """The outcomes as a Parquet file."""
        return self._client._do(batches.parquet(self.id))


class AsyncLiveBatch(batches.Batch):
    """A batch that knows whom to ask: `refresh`, `wait` and `cancel` bring this very object up to date."""

    _client: AsyncConversing = PrivateAttr()

    @classmethod
    def of(cls, batch: batches.Batch, client: AsyncConversing) -> "AsyncLiveBatch":
        """A snapshot that can be asked again."""
        live = cls.model_construct(**dict(batch))
        live._client = client
        return live

    async def refresh(self) -> "AsyncLiveBatch":
        """Ask how it is now."""
        return self._become(await self._client._do(batches.get(self.id)))

    async def wait(self, *, timeout_s: float | None = None, show_progress: bool | None = None) -> "AsyncLiveBatch":
        """Wait until all jobs have ended, with a progress bar where standard error is a terminal.

        Raises WaitedTooLong after `timeout_s` seconds; the jobs go on.
        """
        with batch_bar(show_progress) as follow:
            return self._become(await self._client._do(batches.wait(self, timeout_s, follow)))

    async def cancel(self) -> "AsyncLiveBatch":
        """Ask for the end of all of its jobs."""
        return self._become(await self._client._do(batches.cancel(self.id)))

    async def outcomes(self) -> list[batches.JobOutcome]:
        """The outcome of each job, in the order of the specs."""
        return await self._client._do(batches.outcomes(self.id))

    async def results(self, *, timeout_s: float | None = None) -> list[Result]:
        """Wait, and give all results in the order of the specs. Raises JobFailed for the first job without one."""
        await self.wait(timeout_s=timeout_s)
        return [outcome.get() for outcome in await self.outcomes()]

    async def parquet(self) -> bytes:
        """The outcomes as a Parquet file."""
        return await self._client._do(batches.parquet(self.id))
