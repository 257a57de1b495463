"""Measurements across jobs, as rows and as a data frame."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypedDict, overload

from warpfold.client import html
from warpfold.client.answer import Answer
from warpfold.client.exchange import Call, Steps, pages, send
from warpfold.client.http import httpx
from warpfold.contract.measurement import PointDetails, PointHead, PointShape, PointSpeed, arrow_schema
from warpfold.kernels.machine.extras import install

if TYPE_CHECKING:
    import pandas
    import pyarrow

_PAGE = 10_000


class Filter(TypedDict, total=False):
    """Selects measurements. A field that is left out does not restrict them. `n_min` and `n_max` are included in the
    range."""

    kind: str | None
    op: str | None
    dtype: str | None
    strategy: str | None
    backend: str | None
    device: str | None
    driver: str | None
    host: str | None
    cache: Literal["cold", "hot"] | None
    rows: int | None
    columns: int | None
    axis: Literal[0, 1] | None
    segments: int | None
    groups: int | None
    key_order: Literal["random", "sorted"] | None
    outcome: Literal["measured", "skipped", "failed"] | None
    flag: Literal["throttled", "contended", "unconverged", "suspect", "no_ceiling", "first_run"] | None
    job_id: str | None
    n_min: int | None
    n_max: int | None


class _Origin(Answer):
    id: int
    job_id: str
    created_at: datetime


class Measurement(PointShape, PointDetails, PointSpeed, PointHead, _Origin):
    """One measured point (`GET /v1/results` describes each field); times in milliseconds."""


@dataclass(frozen=True)
class Results(Sequence[Measurement]):
    """Measurements, newest first: a sequence that notebooks show as a table and data frames are made of."""

    rows: tuple[Measurement, ...]

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Measurement: ...
    @overload
    def __getitem__(self, index: slice) -> "Results": ...
    def __getitem__(self, index: int | slice) -> "Measurement | Results":
        return Results(self.rows[index]) if isinstance(index, slice) else self.rows[index]

    def __iter__(self) -> Iterator[Measurement]:
        return iter(self.rows)

    def to_arrow(self) -> "pyarrow.Table":
        """The rows as an Arrow table with the columns and types of the service's Parquet export.

        Raises ImportError without pyarrow, which the extra `frames` brings.
        """
        try:
            import pyarrow
        except ImportError as error:
            raise ImportError(f"data frames need pyarrow: {install('frames')}") from error
        return pyarrow.Table.from_pylist([row.model_dump() for row in self.rows], schema=arrow_schema(Measurement))

    def to_pandas(self) -> "pandas.DataFrame":
        """The rows as a pandas data frame. Raises ImportError without pandas, which `frames` brings."""
        return self.to_arrow().to_pandas()

    def _repr_html_(self) -> str:
        names = ("op", "dtype", "n", "strategy", "device", "cache", "kernel_ms", "gb_per_s", "flags")
        shown = [
            [getattr(row, name) for name in names[:2]]
            + [row.size_in_words(row.n), *(getattr(row, name) for name in names[3:-1]), " ".join(row.flags)]
            for row in self.rows[:50]
        ]
        more = f", the first {len(shown)} shown" if len(self.rows) > len(shown) else ""
        return html.grid(f"{len(self.rows):,} measurements{more}", names, shown)


def find(wanted: Filter, limit: int) -> Steps[Results]:
    """Up to `limit` measurements, newest first."""
    rows = yield from pages("/v1/results", Measurement, _without_none(wanted), limit=limit, page=_PAGE)
    return Results(tuple(rows))


def export(wanted: Filter, limit: int, how: Literal["csv", "parquet"]) -> Steps[bytes]:
    """Up to `limit` measurements as a file of that format; the service makes no larger ones than 10,000."""
    query = {**_without_none(wanted), "limit": limit, "format": how}
    return send(Call("GET", "/v1/results", lambda answer: answer.content, query))


def compare(baseline: str, candidate: str, *, across: bool) -> Steps[dict[str, Any]]:
    """Two benchmarks, or two strategies of one (`job:strategy`), case by case, as the service answers."""
    sides: dict[str, str | bool] = {"baseline": baseline, "candidate": candidate, "across": across}
    return send(Call("GET", "/v1/results/compare", httpx.Response.json, sides))


def report(job_id: str, media_type: str) -> Steps[str]:
    """The report of a job that has ended."""
    return send(Call("GET", f"/v1/reports/{job_id}", lambda answer: answer.text, headers={"Accept": media_type}))


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that a report in Markdown names by an address of the service."""

    words: str
    address: str
    name: str


_PICTURE = re.compile(r"!\[((?:[^\]\\]|\\.)*)\]\((/v1/reports/[^()\s]+/charts/([\w.-]+))\)")


def with_pictures(markdown: str, shown: Callable[[Picture], str]) -> str:
    """A report in Markdown in which the text that `shown` returns replaces each picture of the service."""
    return _PICTURE.sub(lambda match: shown(Picture(match[1], match[2], match[3])), markdown)


def picture(address: str) -> Steps[bytes]:
    """A picture of a report."""
    return send(Call("GET", address, lambda answer: answer.content))


def _without_none(wanted: Filter) -> dict[str, Any]:
    return {name: value for name, value in wanted.items() if value is not None}
