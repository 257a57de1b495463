"""What a client asks a service about itself and its past: the catalogue, measured points, comparisons and reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Unpack

from warpfold.client.connection import Connection
from warpfold.client.later import catalogue, results, tokens

if TYPE_CHECKING:
    from datetime import datetime

    from warpfold.client.catalogue import Device, Op, Preset, Strategy, Worker
    from warpfold.client.results import Filter, Results
    from warpfold.client.tokens import AuditEntry


class KnowsService(Connection):
    """A client that asks what the service has, and what it measured."""

    # --- results

    def results(self, *, limit: int = 1000, **wanted: Unpack[Filter]) -> Results:
        """Measured points across jobs, newest first; `.to_pandas()` and `.to_arrow()` make data frames of them."""
        return self._do(results.find(wanted, limit))

    def compare(self, baseline: str, candidate: str, *, across: bool = False) -> dict[str, Any]:
        """How much faster a benchmark is than another, case by case (`GET /v1/results/compare`). A side is a job's id,
        or `job:strategy`; `across` compares what ran on different devices, too."""
        return self._do(results.compare(baseline, candidate, across=across))

    def report(self, job_id: str, media_type: str = "text/markdown") -> str:
        """The report of an ended job: text/markdown (`picture` gives its pictures), text/html or application/json."""
        return self._do(results.report(job_id, media_type))

    def picture(self, address: str) -> bytes:
        """A picture that a report in Markdown names, as SVG."""
        return self._do(results.picture(address))

    def export(self, how: Literal["csv", "parquet"], *, limit: int = 10_000, **wanted: Unpack[Filter]) -> bytes:
        """Measurements as a CSV or Parquet file, 10,000 at most."""
        return self._do(results.export(wanted, limit, how))

    # --- catalogue

    def ops(self) -> list[Op]:
        """All reductions."""
        return self._do(catalogue.ops())

    def strategies(self) -> list[Strategy]:
        """All ways to reduce."""
        return self._do(catalogue.strategies())

    def presets(self) -> list[Preset]:
        """All studies that a job of kind "preset" can run."""
        return self._do(catalogue.presets())

    def devices(self) -> list[Device]:
        """All devices that workers hold."""
        return self._do(catalogue.devices())

    def workers(self) -> list[Worker]:
        """All workers with what they are doing."""
        return self._do(catalogue.workers())

    def whoami(self) -> catalogue.User:
        """Whom the token belongs to."""
        return self._do(catalogue.whoami())

    def rotate_token(self) -> str:
        """Replace the token by a new one, which is returned this once. This client's own is useless from then on."""
        return self._do(catalogue.rotate_token())

    def audit(
        self,
        *,
        actor: str | None = None,
        action: str | None = None,
        thing: str | None = None,
        since: datetime | None = None,
        limit: int = 50,
    ) -> list[AuditEntry]:
        """The newest entries of the audit log, which only admins read."""
        return self._do(tokens.audit(actor, action, thing, since, limit))
