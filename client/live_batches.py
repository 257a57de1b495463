"""Batches that know their client, of `Client` and of `AsyncClient`."""

from typing import Any, ClassVar, Self, TypeVar

from pydantic import PrivateAttr

from warpfold.client import batches
from warpfold.client.exchange import Steps, awaited, mapped
from warpfold.client.job_results import Result
from warpfold.client.progress import shown

T = TypeVar("T")


class _Live(batches.Batch):
    """A batch with the client that it came from."""

    _client: Any = PrivateAttr()

    @classmethod
    def of(cls, batch: batches.Batch, client: object) -> Self:
        """A snapshot that can be asked again."""
        live = cls.model_construct(**dict(batch))
        live._client = client
        return live  # type: ignore[return-value]  # Pydantic's plugin takes it for this very class

    def _do(self, steps: Steps[T]) -> T:
        answer: T = self._client._do(steps)
        return answer

    def _waited_for(self, timeout_s: float | None, show_progress: bool | None = None) -> Steps[Self]:
        return mapped(self._become, shown(show_progress, lambda follow: batches.wait(self, timeout_s, follow)))

    def _results(self, timeout_s: float | None) -> Steps[list[Result]]:
        yield from self._waited_for(timeout_s)
        return [outcome.get() for outcome in (yield from batches.outcomes(self.id))]


class LiveBatch(_Live):
    """A batch that knows whom to ask: `refresh`, `wait` and `cancel` bring this very object up to date."""

    def refresh(self) -> "LiveBatch":
        """Ask how it is now."""
        return self._do(mapped(self._become, batches.get(self.id)))

    def wait(self, *, timeout_s: float | None = None, show_progress: bool | None = None) -> "LiveBatch":
        """Wait until all jobs have ended, with a progress bar where standard error is a terminal.

        Raises WaitedTooLong after `timeout_s` seconds; the jobs go on.
        """
        return self._do(self._waited_for(timeout_s, show_progress))

    def cancel(self) -> "LiveBatch":
        """Ask for the end of all of its jobs."""
        return self._do(mapped(self._become, batches.cancel(self.id)))

    def outcomes(self) -> list[batches.JobOutcome]:
        """The outcome of each job, in the order of the specs."""
        return self._do(batches.outcomes(self.id))

    def results(self, *, timeout_s: float | None = None) -> list[Result]:
        """Wait, and give all results in the order of the specs. Raises JobFailed for the first job without one."""
        return self._do(self._results(timeout_s))

    def parquet(self) -> bytes:
        """The outcomes as a Parquet file."""
        return self._do(batches.parquet(self.id))


class AsyncLiveBatch(_Live):
    """A batch that knows whom to ask: `refresh`, `wait` and `cancel` bring this very object up to date."""

    refresh: ClassVar = awaited(LiveBatch.refresh)
    wait: ClassVar = awaited(LiveBatch.wait)
    cancel: ClassVar = awaited(LiveBatch.cancel)
    outcomes: ClassVar = awaited(LiveBatch.outcomes)
    results: ClassVar = awaited(LiveBatch.results)
    parquet: ClassVar = awaited(LiveBatch.parquet)
