"""Batches: many jobs by one request, and the service's answers about them."""

import re
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, Field

from warpfold.client import html
from warpfold.client.answer import Answer
from warpfold.client.errors import JobFailed, WaitedTooLong
from warpfold.client.exchange import Call, Steps, pages, send
from warpfold.client.http import httpx
from warpfold.client.job_results import Result
from warpfold.contract.frozen import SHOW_SECRETS
from warpfold.contract.json_value import JsonValue
from warpfold.contract.wording import number_of

if TYPE_CHECKING:
    from warpfold.contract.jobs import JobSpec
    from warpfold.contract.webhook import Webhook

MOST_JOBS = 10_000
"""The most jobs of one batch."""

SPEC_FIELD = re.compile(r"specs\[(\d+)\]\.?(.*)")
"""The field of a refusal that names a spec of a batch by its number, and what of the spec."""

_LONG_POLL_S = 20.0
_PAGE = 200


class Counts(Answer):
    """The number of jobs of a batch by status; `done` jobs have ended."""

    total: int
    done: int
    queued: int
    running: int
    succeeded: int
    failed: int
    cancelled: int


class Batch(Answer):
    """A batch as the service saw it when it was asked. `jobs` are the ids of its jobs, if this client submitted the
    batch."""

    id: str
    name: str = ""
    owner: str
    tags: dict[str, str] = Field(default_factory=dict)
    status: str
    count: int
    progress: Counts
    cancel_requested: bool = False
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    jobs: tuple[str, ...] = ()

    @property
    def ended(self) -> bool:
        return self.status in ("succeeded", "failed", "cancelled")

    @property
    def succeeded(self) -> bool:
        return self.status == "succeeded"

    def _become(self, newer: "Batch") -> Self:
        """Take over the fields of `newer`, and keep the ids of the jobs."""
        self.__dict__.update({**newer.__dict__, "jobs": newer.jobs or self.jobs})
        # The models of this package are frozen.
        object.__setattr__(self, "__pydantic_extra__", newer.__pydantic_extra__)
        return self

    def __repr__(self) -> str:
        done = f"{self.progress.done:,} of {number_of('job', self.count)}"
        return f"<{type(self).__name__} {self.id}: {done}, {self.status}>"

    def _repr_html_(self) -> str:
        done = self.progress
        return html.properties(
            f"batch of {number_of('job', self.count)}",
            [
                ("id", self.id),
                ("name", self.name or None),
                ("status", self.status),
                ("ended", f"{done.done:,} of {done.total:,}"),
                ("failed", done.failed or None),
                ("owner", self.owner),
            ],
        )


class JobOutcome(Answer):
    """The outcome of one job of a batch; `index` is its number, from 0, in the order of the specs."""

    index: int
    id: str
    kind: str
    status: str
    spec: dict[str, Any]
    value: JsonValue | None = None
    result: Result | None = None
    reason: str | None = None
    error: str | None = None

    def get(self) -> Result:
        """The result. Raises JobFailed if the job has no result."""
        if self.result is None:
            raise JobFailed(self.id, self.status, self.reason, self.error)
        return self.result


Progress = Callable[[Batch], None]
"""Told each state of a batch that is waited for."""


def submit(
    specs: "Iterable[JobSpec | Mapping[str, Any]]",
    *,
    name: str,
    tags: Mapping[str, str],
    key: str | None,
    webhook: "Webhook | Mapping[str, Any] | None" = None,
) -> Steps[Batch]:
    """Hand in jobs: all of them, or none."""
    return _accepted({"specs": [_plain(spec) for spec in specs]}, name=name, tags=tags, key=key, webhook=webhook)


def sweep(
    spec: "JobSpec | Mapping[str, Any]",
    over: Mapping[str, Sequence[Any]],
    *,
    name: str,
    tags: Mapping[str, str],
    key: str | None,
    webhook: "Webhook | Mapping[str, Any] | None" = None,
) -> Steps[Batch]:
    """Hand in a job for each combination of values."""
    body = {"sweep": {"spec": _plain(spec), "over": {field: list(values) for field, values in over.items()}}}
    return _accepted(body, name=name, tags=tags, key=key, webhook=webhook)


def _accepted(
    body: Mapping[str, Any],
    *,
    name: str,
    tags: Mapping[str, str],
    key: str | None,
    webhook: "Webhook | Mapping[str, Any] | None",
) -> Steps[Batch]:
    options = {"name": name, "tags": dict(tags), "webhook": None if webhook is None else _plain(webhook)}
    whole = {**body, **{option: value for option, value in options.items() if value}}
    return send(Call("POST", "/v1/batches", _batch, body=whole, headers={"Idempotency-Key": key or str(uuid.uuid4())}))


def get(batch_id: str) -> Steps[Batch]:
    return send(Call("GET", f"/v1/batches/{batch_id}", _batch))


def cancel(batch_id: str) -> Steps[Batch]:
    return send(Call("POST", f"/v1/batches/{batch_id}/cancel", _batch))


def find(owner: str | None, beginning: str | None, limit: int) -> Steps[list[Batch]]:
    """Up to `limit` batches of a user, or whose ids start with `beginning`, newest first."""
    return pages("/v1/batches", Batch, {"owner": owner, "id": beginning}, limit=limit, page=_PAGE)


def wait(batch: Batch, timeout_s: float | None = None, follow: Progress | None = None) -> Steps[Batch]:
    """The batch once all of its jobs have ended. Raises WaitedTooLong after `timeout_s` seconds."""
    give_up = None if timeout_s is None else time.monotonic() + timeout_s
    tag: str | None = None
    if follow is not None:
        follow(batch)
    while not batch.ended:
        left = _LONG_POLL_S if give_up is None else min(_LONG_POLL_S, give_up - time.monotonic())
        if left <= 0:
            ended, jobs = batch.progress.done, batch.progress.total
            raise WaitedTooLong(
                f"batch {batch.id} is still {batch.status} after {timeout_s:g} s: {ended:,} of "
                f"{number_of('job', jobs)} {'has' if jobs == 1 else 'have'} ended"
            )
        headers = {"Prefer": f"wait={max(1, int(left))}"}  # whole seconds
        if tag is not None and follow is not None:
            headers["If-None-Match"] = tag
        seen: tuple[Batch | None, str | None] = yield Call(
            "GET", f"/v1/batches/{batch.id}", _batch_and_tag, headers=headers, expected=(304,)
        )
        if seen[0] is not None:
            batch, tag = seen[0], seen[1]
            if follow is not None:
                follow(batch)
    return batch


def outcomes(batch_id: str) -> Steps[list[JobOutcome]]:
    """The outcomes of all jobs, in the order of the specs."""

    def read(response: httpx.Response) -> list[JobOutcome]:
        return [JobOutcome.model_validate_json(line) for line in response.content.splitlines() if line]

    return send(Call("GET", f"/v1/batches/{batch_id}/results", read, {"format": "jsonl"}))


def parquet(batch_id: str) -> Steps[bytes]:
    """The outcomes of all jobs as a Parquet file."""
    return send(Call("GET", f"/v1/batches/{batch_id}/results", lambda answer: answer.content, {"format": "parquet"}))


def _plain(spec: BaseModel | Mapping[str, Any]) -> dict[str, Any]:
    return spec.model_dump(mode="json", context=SHOW_SECRETS) if isinstance(spec, BaseModel) else dict(spec)


def _batch(response: httpx.Response) -> Batch:
    return Batch.model_validate_json(response.content)


def _batch_and_tag(response: httpx.Response) -> tuple[Batch | None, str | None]:
    return (None if response.status_code == 304 else _batch(response)), response.headers.get("ETag")
