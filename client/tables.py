"""The methods of a client about tables, which `Client` and `AsyncClient` inherit; the answers of the latter have to be
awaited. What reads tables is imported by the first call.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from warpfold.client.exchange import Steps
from warpfold.client.models import Job
from warpfold.client.progress import shown

if TYPE_CHECKING:
    from warpfold.client.groupby import GroupBy, GroupByOptions, Ops
    from warpfold.client.merging import MergeOptions

T = TypeVar("T")


class HandlesTables(ABC):
    """A client that groups the rows of tables, and merges tables of states."""

    @abstractmethod
    def _do(self, steps: Steps[T]) -> Any:
        """Hold a conversation."""

    def groupby(self, data: object, by: "Ops", **options: "Unpack[GroupByOptions]") -> "GroupBy":
        """The groups of rows whose keys in the columns `by` are equal: `client.groupby(frame, "region").sum("price")`.

        `data` is a frame of pandas or Polars, a table of pyarrow or what offers itself as one, or a dict of columns;
        a Path to a file that is a table; or a URL, which the service reads if it may. A list of files is one table.
        """
        from warpfold.client.groupby import GroupBy

        return GroupBy(self._do, data, by, options)

    def describe(
        self,
        data: object,
        columns: Sequence[str] | None = None,
        *,
        q: Sequence[float] = (0.25, 0.5, 0.75),
        **options: "Unpack[GroupByOptions]",
    ) -> Any:
        """What the columns of a table hold, in one pass, as a frame with a row for each column: how many numbers,
        nulls, NaNs and zeros, mean, std, skew and kurtosis of a sample, min, the quantiles `q` and max.

        `data` is as `groupby` takes it, without URLs. Columns that hold no numbers, decimals, instants or durations are
        left out, and are refused where they are named."""
        from warpfold.client.describing import describe

        shows = options.get("show_progress")
        return self._do(shown(shows, lambda follow: describe(data, columns, q, options, follow)))

    def source(self, data: object, *, rehash: bool = False, show_progress: bool | None = None) -> Any:
        """The `source` of a spec for an array, or for files that are given as Paths or URLs, of which those of this
        machine are uploaded. Several files are one table, or one array. A terminal shows a progress bar."""
        from warpfold.client.sources import ManyFiles, source

        steps = source(ManyFiles.among(data) or data, rehash=rehash)
        return self._do(shown(show_progress, lambda _: steps))

    def groups(self, job: Job) -> Any:
        """All groups of a group-by, waiting for it, as a table of pyarrow. Raises JobFailed, and TypeError for another
        kind."""
        from warpfold.client.groupby import groups_of_job

        return self._do(groups_of_job(job))

    def merge_tables(self, tables: Iterable[object], **options: "Unpack[MergeOptions]") -> Any:
        """Add the exact states of tables group by group and round once: what one reduction of all their elements would
        have given, to the bit. Groups come as a table of pyarrow, the values of an array as a NumPy array.

        Each of the tables is a job with `states`, or its id; a Path to an Arrow or Parquet file; a table of pyarrow; or
        the URL of such a file. Raises JobFailed where they do not fit together.
        """
        from warpfold.client.merging import merged

        return self._do(merged(tables, options))

    def merged(self, job: Job) -> Any:
        """The result of a job of kind `merge`, waiting for it; see `merge_tables`. Raises JobFailed, and TypeError for
        another kind."""
        from warpfold.client.merging import merged_by

        return self._do(merged_by(job))
